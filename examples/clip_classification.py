"""Clip classification: read videos, augment clips, train a model that has to see motion.

Creates folders of short videos, at several frame rates and sizes, in which a disc moves to the
left, to the right, up or down across a landscape; no single frame tells which. Trains a small torch
model on random clips of them, prints its accuracy on videos that it has not seen, and writes the
frames of a clip to clip_classification.png. Needs `pip install penstock[video]`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import av
import numpy as np
import torch
from photographs import landscape
from PIL import Image, ImageDraw

import penstock as ndd

DIRECTIONS = {"down": (0, 1), "left": (-1, 0), "right": (1, 0), "up": (0, -1)}
FRAMES = 8
SIZE = 56
CODECS = (("h264", "mp4"), ("mpeg4", "mp4"), ("libvpx", "webm"))


def make_videos(folder: Path, per_class: int, seed: int) -> None:
    """Write a folder of videos for each direction."""
    rng = np.random.default_rng(seed)
    for direction, (dx, dy) in DIRECTIONS.items():
        (folder / direction).mkdir(parents=True)
        for number in range(per_class):
            codec, container = CODECS[number % len(CODECS)]
            rate = int(rng.choice([15, 25, 30]))
            path = folder / direction / f"{number:04d}.{container}"
            write_video(path, codec, rate, pictures(rng, dx, dy, count=2 * rate))


def pictures(rng: np.random.Generator, dx: int, dy: int, count: int) -> list[Image.Image]:
    """Two seconds of a disc that moves; what leaves the picture enters it on the other side."""
    ground = landscape(rng, waves=2).resize((int(rng.integers(40, 60)) * 2, 80))
    x, y = rng.uniform(0, ground.width), rng.uniform(0, ground.height)
    speed, radius = rng.uniform(50, 80) / count, rng.uniform(8, 14)
    color = tuple(int(channel) for channel in rng.integers(0, 256, 3))
    made = []
    for frame in range(count):
        picture = ground.copy()
        left = (x + dx * speed * frame) % ground.width
        top = (y + dy * speed * frame) % ground.height
        corners = (left - radius, top - radius, left + radius, top + radius)
        ImageDraw.Draw(picture).ellipse(corners, fill=color)
        made.append(picture)
    return made


def write_video(path: Path, codec: str, rate: int, frames: list[Image.Image]) -> None:
    """Encode pictures."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = frames[0].size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = 1
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_image(frame)))
        container.mux(stream.encode(None))


def reader_of(folder: Path, **options: object) -> ndd.readers.Video:
    """Clips of a second, with eight frames, whatever the frame rate of a video."""
    return ndd.readers.Video(
        file_root=folder,
        sequence_length=FRAMES,
        clip_duration=1.0,
        size=[SIZE + 8, SIZE + 8],
        **options,  # type: ignore[arg-type]
    )


def augmented(clips: ndd.Batch) -> ndd.Batch:
    """Another part of the picture and other colors for each clip, the same in all of its frames."""
    count = clips.batch_size
    clips = ndd.color_twist(
        clips,
        brightness=ndd.random.uniform(range=[0.7, 1.3], batch_size=count),
        hue=ndd.random.uniform(range=[-40.0, 40.0], batch_size=count),
    )
    x, y = (ndd.random.uniform(range=[0.0, 1.0], batch_size=count) for _ in "xy")
    return normalized(clips, x, y)


def normalized(
    clips: ndd.Batch, x: ndd.Batch | float = 0.5, y: ndd.Batch | float = 0.5
) -> ndd.Batch:
    """Clips as models want them: of one size, with channels in front of time, around 0."""
    clips = ndd.crop_mirror_normalize(
        clips,
        crop=[SIZE, SIZE],
        crop_pos_x=x,
        crop_pos_y=y,
        mean=[127.5],
        std=[64.0],
        output_layout="FCHW",
    )
    return ndd.transpose(clips, perm=[1, 0, 2, 3])


def make_model() -> torch.nn.Module:
    """Convolutions over space and time."""

    def block(inputs: int, outputs: int, stride: int) -> torch.nn.Module:
        steps = (1, stride, stride)
        convolution = torch.nn.Conv3d(inputs, outputs, 3, stride=steps, padding=1)
        return torch.nn.Sequential(convolution, torch.nn.BatchNorm3d(outputs), torch.nn.ReLU())

    return torch.nn.Sequential(
        block(3, 12, 2),
        block(12, 24, 2),
        block(24, 32, 2),
        torch.nn.AdaptiveAvgPool3d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(32, len(DIRECTIONS)),
    )


def train(
    model: torch.nn.Module,
    reader: ndd.readers.Video,
    batch_size: int,
    optimizer: torch.optim.Optimizer,
) -> float:
    """One epoch; the share of right answers."""
    model.train()
    correct = seen = 0
    batches = ((augmented(x), y) for x, y in reader.next_epoch(batch_size=batch_size))
    # The next two batches are decoded and augmented while the model trains on one.
    for clips, labels in ndd.prefetch(batches, depth=2):
        scores, y = model(clips.torch()), labels.torch().long().flatten()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores, y).backward()
        optimizer.step()
        correct += int((scores.argmax(1) == y).sum())
        seen += len(y)
    return correct / seen


@torch.no_grad()
def accuracy_on(model: torch.nn.Module, reader: ndd.readers.Video, clips_per_video: int) -> float:
    """The share of videos that are recognized, by the average over their clips."""
    model.eval()
    correct = seen = 0
    for clips, labels in reader.next_epoch(batch_size=clips_per_video):
        score = model(normalized(clips).torch()).softmax(1).mean(0)
        correct += int(score.argmax() == int(labels.torch()[0]))
        seen += 1
    return correct / seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--per-class", type=int, default=60, help="number of videos per class")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("clip_classification.png"))
    args = parser.parse_args()
    ndd.random.set_seed(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_videos(folder / "train", args.per_class, seed=1)
        make_videos(folder / "test", max(2, args.per_class // 4), seed=2)
        # Two clips of each video, at other places in each epoch.
        reader = reader_of(
            folder / "train", sampling="random", clips_per_video=2, shuffle="global", seed=1
        )
        unseen = reader_of(folder / "test", clips_per_video=3)
        print(f"{len(DIRECTIONS)} classes of {args.per_class} videos")
        model = make_model()
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for epoch in range(args.epochs):
            begin = time.perf_counter()
            accuracy = train(model, reader, args.batch_size, optimizer)
            rate = reader.epoch_size / (time.perf_counter() - begin)
            print(f"  epoch {epoch + 1}: accuracy {accuracy:4.0%}, {rate:6,.0f} clips/s")
        print(f"accuracy on videos that it has not seen: {accuracy_on(model, unseen, 3):.0%}")
        clips, _ = next(iter(unseen.next_epoch(batch_size=3)))
        Image.fromarray(np.hstack(list(np.asarray(clips.tensors[0])))).save(args.out)
    print(f"the frames of a clip: {args.out}")


if __name__ == "__main__":
    main()
