"""Pictures of operators: what goes in, and what comes out, computed by the library itself.

`PICTURES` has a function for each operator that has something to show; `python -m
tools.docs.pictures FOLDER` writes them all.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from tools.docs.drawing import photograph, side_by_side, spectrogram, waveform

import penstock as ndd

Picture = Callable[[], Image.Image]

RATE = 16000
SIZE = (150, 225)
"""Height and width of the photographs that operators are shown on."""


@cache
def photographs() -> list[np.ndarray]:
    """Two photographs: those that come with scikit-learn, a temple and a flower."""
    from sklearn.datasets import load_sample_images

    made = []
    for pixels in load_sample_images().images:
        small = Image.fromarray(pixels).resize(SIZE[::-1], Image.Resampling.LANCZOS)
        made.append(np.asarray(small))
    return made


@cache
def sound() -> np.ndarray:
    """A second of something like speech: harmonics that move, with pauses."""
    t = np.arange(RATE) / RATE
    pitch = 2 * np.pi * np.cumsum(140 + 60 * np.sin(2 * np.pi * 1.3 * t)) / RATE
    loud = np.clip(np.sin(2 * np.pi * 2.5 * t - 0.6), 0, 1) ** 0.7
    tones = np.zeros_like(t)
    for k in range(1, 40):
        distances = (k * 180 - np.array([600, 2400, 4200])) / np.array([500, 700, 900])
        tones += np.sin(k * pitch) * np.sum([1, 0.4, 0.2] * np.exp(-(distances**2)))
    made = loud * tones + 0.002 * np.random.default_rng(0).normal(size=t.shape)
    return (0.6 * made / np.abs(made).max()).astype(np.float32)


def decibels(samples: Any) -> np.ndarray:
    power = ndd.spectrogram(samples, nfft=512, window_length=400, window_step=160)
    return np.asarray(ndd.to_decibels(power, multiplier=10.0, cutoff_db=-70.0))


def encoded(pixels: np.ndarray) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return np.frombuffer(file.getvalue(), np.uint8)


def images(count: int = 1) -> Any:
    return ndd.batch([photographs()[0]] * count, layout="HWC")


def result(value: Any) -> list[np.ndarray]:
    """The samples of a result as HWC arrays of numbers from 0 to 255."""
    value = value[0] if isinstance(value, tuple) else value
    return [np.asarray(sample) for sample in value]


def on_images(name: str, variants: int = 1, **arguments: Any) -> Picture:
    """A call on a photograph; with several variants, arguments in lists differ between them."""

    def draw() -> Image.Image:
        given = {
            key: ndd.batch(value)
            if isinstance(value, list) and len(value) == variants > 1
            else value
            for key, value in arguments.items()
        }
        made = result(operator(name)(images(variants), **given))
        same_size = all(pixels.shape == made[0].shape for pixels in made)
        parts = [photograph(pixels, enlarge=same_size) for pixels in made]
        return side_by_side([photograph(photographs()[0]), *parts])

    return draw


def operator(name: str) -> Callable[..., Any]:
    found: Any = ndd
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def on_sounds(name: str, **arguments: Any) -> Picture:
    """A call on a sound, as a line before and after."""

    def draw() -> Image.Image:
        made = np.asarray(operator(name)(sound(), **arguments))
        width = round(300 * len(made) / len(sound())) if len(made) != len(sound()) else 300
        return side_by_side([waveform(sound()), waveform(made, width=min(width, 420))])

    return draw


def heard(name: str, **arguments: Any) -> Picture:
    """A call on a sound, as spectrograms before and after."""

    def draw() -> Image.Image:
        made = operator(name)(sound(), **arguments)
        width = round(300 * made.shape[0] / len(sound()))
        return side_by_side(
            [spectrogram(decibels(sound())), spectrogram(decibels(made), width=width)]
        )

    return draw


def on_spectrograms(name: str, **arguments: Any) -> Picture:
    """A call on a spectrogram."""

    def draw() -> Image.Image:
        before = decibels(sound())
        made = operator(name)(ndd.tensor(before, layout="ft"), **arguments)
        after = np.asarray(made)
        bounds = (before.min(), before.max()) if name.endswith("mask") else (None, None)
        return side_by_side([spectrogram(before), spectrogram(after, *bounds)])

    return draw


def _spectrogram() -> Image.Image:
    return side_by_side([waveform(sound()), spectrogram(decibels(sound()))])


def _mel() -> Image.Image:
    power = ndd.spectrogram(sound(), nfft=512, window_length=400, window_step=160)
    mels = ndd.mel_filter_bank(power, sample_rate=RATE, nfilter=40)
    after = np.asarray(ndd.to_decibels(mels, multiplier=10.0, cutoff_db=-70.0))
    return side_by_side([spectrogram(decibels(sound())), spectrogram(after)])


def _to_decibels() -> Image.Image:
    power = np.asarray(ndd.spectrogram(sound(), nfft=512, window_length=400, window_step=160))
    return side_by_side([spectrogram(power), spectrogram(decibels(sound()))])


def _nonsilent_region() -> Image.Image:
    begin, length = (int(np.asarray(v)) for v in ndd.nonsilent_region(sound(), cutoff_db=-30.0))
    kept = np.zeros_like(sound())
    kept[begin : begin + length] = sound()[begin : begin + length]
    return side_by_side([waveform(sound()), waveform(kept)])


def _mixed(name: str) -> Picture:
    def draw() -> Image.Image:
        pair = ndd.batch(photographs(), layout="HWC")
        labels = ndd.batch([0, 1])
        rng = ndd.random.RNG(seed=4)
        made, _ = operator(name)(pair, labels, num_classes=2, alpha=1.0, rng=rng)
        return side_by_side([photograph(photographs()[0]), *map(photograph, result(made))])

    return draw


def _decoded(name: str, **arguments: Any) -> Picture:
    def draw() -> Image.Image:
        jpeg = ndd.batch([encoded(photographs()[0])])
        parts = [
            photograph(pixels, enlarge=False)
            for pixels in result(operator(name)(jpeg, **arguments))
        ]
        return side_by_side([photograph(photographs()[0]), *parts])

    return draw


def _remap() -> Image.Image:
    height, width = SIZE
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    wave_x, wave_y = x + 8 * np.sin(y / 12), y + 6 * np.sin(x / 15)
    made = ndd.experimental.remap(images(), ndd.batch([wave_x]), ndd.batch([wave_y]))
    return side_by_side([photograph(photographs()[0]), *map(photograph, result(made))])


def _paste() -> Image.Image:
    made = ndd.multi_paste(
        ndd.batch(photographs(), layout="HWC"),
        in_ids=ndd.batch([[0, 1], [1, 0]]),
        output_size=list(SIZE),
        shapes=ndd.batch([[[150, 112], [150, 112]]] * 2),
        in_anchors=ndd.batch([[[0, 0], [0, 56]]] * 2),
        out_anchors=ndd.batch([[[0, 0], [0, 112]]] * 2),
    )
    return side_by_side([photograph(photographs()[0]), photograph(result(made)[0])])


def _debayer() -> Image.Image:
    pixels = photographs()[0]
    raw = pixels[..., 1].copy()
    raw[0::2, 0::2] = pixels[0::2, 0::2, 0]
    raw[1::2, 1::2] = pixels[1::2, 1::2, 2]
    made = ndd.debayer(ndd.batch([raw], layout="HW"), blue_position=[0, 0])
    return side_by_side([photograph(raw[..., None]), *map(photograph, result(made))])


def _optical_flow() -> Image.Image:
    pixels = photographs()[0]
    moved = np.asarray(ndd.rotate(pixels, angle=4.0, keep_size=True, fill_value=0))
    flow = np.asarray(
        ndd.optical_flow(ndd.tensor(np.stack([pixels, moved]), layout="FHWC"), output_grid=1)
    )[0]
    angle = np.arctan2(flow[..., 1], flow[..., 0]) / (2 * np.pi) % 1
    size = np.hypot(flow[..., 0], flow[..., 1])
    hsv = np.stack([angle, np.clip(size / size.max(), 0, 1), np.ones_like(angle)], axis=-1)
    colored = Image.fromarray((hsv * 255).astype(np.uint8), "HSV").convert("RGB")
    return side_by_side([photograph(pixels), photograph(np.asarray(colored))])


def _filter() -> Image.Image:
    emboss = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
    made = ndd.filter(images(), emboss, dtype=ndd.uint8)
    return side_by_side([photograph(photographs()[0]), *map(photograph, result(made))])


def _laplacian() -> Image.Image:
    made = ndd.laplacian(images(), window_size=3, dtype=ndd.float32)
    edges = [128 + 2 * pixels for pixels in result(made)]
    return side_by_side([photograph(photographs()[0]), *map(photograph, edges)])


def _normalize() -> Image.Image:
    made = ndd.normalize(images(), axes=[0, 1], scale=50.0, shift=128.0, dtype=ndd.uint8)
    return side_by_side([photograph(photographs()[0]), *map(photograph, result(made))])


def _crop_mirror_normalize() -> Image.Image:
    made = ndd.crop_mirror_normalize(
        images(), crop=[100, 100], mirror=1, mean=[124, 116, 104], std=[58, 57, 57]
    )
    shown = [128 + 50 * pixels.transpose(1, 2, 0) for pixels in result(made)]
    return side_by_side(
        [photograph(photographs()[0]), *(photograph(p, enlarge=False) for p in shown)]
    )


def _color_space() -> Image.Image:
    made = ndd.color_space_conversion(
        images(), image_type=ndd.types.RGB, output_type=ndd.types.GRAY
    )
    return side_by_side([photograph(photographs()[0]), *map(photograph, result(made))])


def _lookup_table() -> Image.Image:
    curve = (255 * (np.arange(256) / 255) ** 0.5).astype(np.float32)
    made = ndd.lookup_table(images(), keys=list(range(256)), values=curve.tolist(), dtype=ndd.uint8)
    return side_by_side([photograph(photographs()[0]), *map(photograph, result(made))])


def _slice() -> Image.Image:
    made = ndd.slice(images(), start=[30, 40], shape=[90, 120], axes=[0, 1])
    return side_by_side(
        [photograph(photographs()[0]), *(photograph(p, enlarge=False) for p in result(made))]
    )


def _pad() -> Image.Image:
    made = ndd.pad(images(), axes=[0, 1], align=[64, 64], fill_value=90)
    return side_by_side(
        [photograph(photographs()[0]), *(photograph(p, enlarge=False) for p in result(made))]
    )


def _random(name: str, seed: int = 1, **arguments: Any) -> Picture:
    """Three draws of a random operator."""

    def draw() -> Image.Image:
        made = result(operator(name)(images(3), rng=ndd.random.RNG(seed=seed), **arguments))
        return side_by_side([photograph(photographs()[0]), *map(photograph, made)])

    return draw


PICTURES: dict[str, Picture] = {
    "add_noise": on_sounds("add_noise", snr_db=10.0),
    "auto_aug.apply": on_images("auto_aug.apply", operations=[5, 8], magnitudes=[20.0, 0.5]),
    "auto_aug.augmix": _random("auto_aug.augmix", severity=6),
    "auto_aug.auto_augment": _random("auto_aug.auto_augment", seed=4),
    "auto_aug.rand_augment": _random("auto_aug.rand_augment", magnitude=12),
    "auto_aug.trivial_augment_wide": _random("auto_aug.trivial_augment_wide", seed=3),
    "autocontrast": on_images("autocontrast"),
    "brightness": on_images("brightness", 2, brightness=[0.6, 1.4]),
    "brightness_contrast": on_images(
        "brightness_contrast", 2, brightness=[0.9, 1.2], contrast=[1.6, 0.5]
    ),
    "clahe": on_images("clahe", tiles_x=4, tiles_y=4, clip_limit=3.0),
    "color_space_conversion": _color_space,
    "color_twist": on_images(
        "color_twist", 2, hue=[60.0, 0.0], saturation=[1.3, 0.2], contrast=[1.2, 1.0]
    ),
    "contrast": on_images("contrast", 2, contrast=[0.5, 1.6]),
    "crop": on_images("crop", crop=[100, 120]),
    "crop_mirror_normalize": _crop_mirror_normalize,
    "cutmix": _mixed("cutmix"),
    "debayer": _debayer,
    "decoders.image": _decoded("decoders.image", min_size=[70, 100]),
    "decoders.image_crop": _decoded("decoders.image_crop", crop=[90, 120], crop_pos_x=0.3),
    "decoders.image_random_crop": _decoded(
        "decoders.image_random_crop", rng=ndd.random.RNG(seed=2)
    ),
    "decoders.image_slice": _decoded(
        "decoders.image_slice", start=[20, 30], shape=[100, 90], axes=[0, 1]
    ),
    "delta": on_spectrograms("delta"),
    "elastic_transform": _random("elastic_transform", alpha=60.0, sigma=5.0),
    "equalize": on_images("equalize"),
    "erase": on_images("erase", anchor=[40, 60], shape=[60, 90], axes=[0, 1]),
    "experimental.dilate": on_images("experimental.dilate", mask_size=[5, 5]),
    "experimental.erode": on_images("experimental.erode", mask_size=[5, 5]),
    "experimental.median_blur": on_images("experimental.median_blur", window_size=[7, 7]),
    "experimental.remap": _remap,
    "experimental.warp_perspective": on_images(
        "experimental.warp_perspective",
        matrix=[1.0, 0.15, -10.0, 0.05, 1.1, -8.0, 0.0, 0.0015, 1.0],
    ),
    "fade": on_sounds("fade", fade_in_len=6000, fade_out_len=6000),
    "filter": _filter,
    "flip": on_images("flip", 2, horizontal=[1, 0], vertical=[0, 1]),
    "frequency_mask": on_spectrograms(
        "frequency_mask", max_width=60, num_masks=2, fill_value=-70.0, rng=ndd.random.RNG(seed=5)
    ),
    "gain": on_sounds("gain", gain_db=-8.0),
    "gaussian_blur": on_images("gaussian_blur", sigma=3.0),
    "grid_mask": on_images("grid_mask", tile=40, ratio=0.5, angle=0.3),
    "hsv": on_images("hsv", 2, hue=[90.0, 0.0], value=[1.0, 1.3], saturation=[1.0, 1.6]),
    "hue": on_images("hue", 2, hue=[60.0, 180.0]),
    "invert": on_images("invert"),
    "jitter": on_images("jitter", nDegree=7),
    "jpeg_compression_distortion": on_images("jpeg_compression_distortion", quality=8),
    "laplacian": _laplacian,
    "lookup_table": _lookup_table,
    "mel_filter_bank": _mel,
    "mfcc": on_spectrograms("mfcc", n_mfcc=20),
    "mixup": _mixed("mixup"),
    "motion_blur": on_images("motion_blur", 2, kernel_size=15, angle=[0.0, 60.0]),
    "multi_paste": _paste,
    "noise.gaussian": on_images("noise.gaussian", stddev=30.0, rng=ndd.random.RNG(seed=1)),
    "noise.salt_and_pepper": on_images(
        "noise.salt_and_pepper", prob=0.08, rng=ndd.random.RNG(seed=1)
    ),
    "noise.shot": on_images("noise.shot", factor=40.0, rng=ndd.random.RNG(seed=1)),
    "nonsilent_region": _nonsilent_region,
    "normalize": _normalize,
    "optical_flow": _optical_flow,
    "pad": _pad,
    "paste": on_images("paste", ratio=1.6, fill_value=[60, 90, 120], paste_x=0.3, paste_y=0.7),
    "pitch_shift": heard("pitch_shift", n_steps=5.0, nfft=512),
    "posterize": on_images("posterize", bits=2),
    "preemphasis_filter": heard("preemphasis_filter"),
    "random_erasing": _random("random_erasing", p=1.0, fill_value=128),
    "random_perspective": _random("random_perspective", p=1.0, distortion_scale=0.5),
    "random_resized_crop": _random("random_resized_crop", size=[150, 150], random_area=[0.1, 0.6]),
    "resize": on_images("resize", size=[90, 90]),
    "resize_crop_mirror": on_images(
        "resize_crop_mirror", size=[150, 225], crop=[110, 110], mirror=1
    ),
    "rotate": on_images("rotate", 2, angle=[20.0, -35.0], keep_size=True, fill_value=0),
    "saturation": on_images("saturation", 2, saturation=[0.2, 2.0]),
    "sharpness": on_images("sharpness", 2, sharpness_factor=[0.0, 6.0]),
    "shear_x": on_images("shear_x", shear=0.3, fill_value=0),
    "shear_y": on_images("shear_y", shear=0.3, fill_value=0),
    "slice": _slice,
    "solarize": on_images("solarize", threshold=128),
    "spectrogram": _spectrogram,
    "sphere": on_images("sphere", fill_value=0.0),
    "tensor_resize": on_images("tensor_resize", sizes=[60, 200, 3]),
    "time_mask": on_spectrograms(
        "time_mask", max_width=25, num_masks=2, fill_value=-70.0, rng=ndd.random.RNG(seed=2)
    ),
    "time_stretch": heard("time_stretch", rate=0.75, nfft=512),
    "to_decibels": _to_decibels,
    "translate_x": on_images("translate_x", offset=50, fill_value=0),
    "translate_y": on_images("translate_y", offset=40, fill_value=0),
    "warp_affine": on_images("warp_affine", matrix=[1.0, 0.3, -20.0, 0.0, 1.0, 0.0], fill_value=0),
    "water": on_images("water", ampl_x=5.0, ampl_y=5.0, freq_x=0.06, freq_y=0.06, fill_value=0.0),
}
"""How to draw each operator's picture, by its name."""


def file_name(name: str) -> str:
    return f"{name}.webp"


def write(folder: Path) -> None:
    """All pictures. Nothing is drawn that the folder has already."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        path = folder / file_name(name)
        if not path.exists():
            try:
                draw().save(path, quality=85)
            except Exception as error:
                raise RuntimeError(f"the picture of {name} can't be drawn: {error}") from error


if __name__ == "__main__":
    write(Path(sys.argv[1]))
