"""Videos, decoded as by DALI, for the codecs that it has without a GPU: VP8, VP9 and MJPEG."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same, oracle, ours
from tests.video_colors import exact, stored
from tests.videos import BY_DALI, video

EXCUSED: dict[str, str] = {}

COUNTED_WRONG = {
    "vp8-altref.webm": "DALI takes pictures that are never shown for frames",
}
"""Files whose frames DALI doesn't count right, and why."""


def file(name):
    return np.frombuffer(video(name), np.uint8)


def tolerance(name):
    """None where results are equal, 1 where both round on their own."""
    if "odd" in name:
        return drift(name) + 1
    return None if not any(word in name for word in ("10bit", "422", "444")) else 1


def drift(name):
    """How far colors are from what is right because DALI's chroma drifts in odd sizes."""
    frames = stored(video(name))
    return max(np.abs(exact(*frame, drifts=True) - exact(*frame)).max() for frame in frames)


def test_in_odd_sizes_only_dali_s_chroma_drifts():
    """Each is the exact arithmetic of its own places, up to rounding."""
    name, source = "vp9-odd.webm", "ndd.decoders.video(x)"
    (dali,), (made,) = (who.run(source, x=file(name)).samples for who in (oracle, ours))
    frames = list(stored(video(name)))
    assert drift(name) > 5
    for at, frame in enumerate(frames):
        assert np.abs(made[at] - exact(*frame)).max() <= 0.53, f"frame {at}"
        assert np.abs(dali[at] - exact(*frame, drifts=True)).max() <= 0.53, f"frame {at}"


@pytest.mark.parametrize("name", [name for name in BY_DALI if name not in COUNTED_WRONG])
def test_all_frames_agree(name):
    assert_same("ndd.decoders.video(x)", tol=tolerance(name), x=file(name))


PADDING = (
    "none",
    "constant",
    "edge",
    "repeat",
    "reflect_1001",
    "symmetric",
    "reflect_101",
    "reflect",
)


@pytest.mark.parametrize("mode", PADDING)
@pytest.mark.parametrize(
    "arguments",
    [
        "start_frame=26, sequence_length=8",
        "start_frame=20, sequence_length=3, stride=4",
        "start_frame=20, sequence_length=30, stride=3",
        "start_frame=25, end_frame=34",
        "start_frame=3, end_frame=29, stride=5",
        "end_frame=4",
        "sequence_length=0",
        "frames=[3, 1, 1, 29]",
    ],
)
def test_ranges_agree(arguments, mode):
    source = f'ndd.decoders.video(x, {arguments}, pad_mode="{mode}")'
    assert_same(source, x=file("vp9.webm"))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect_1001", "reflect_101"])
@pytest.mark.parametrize(
    "arguments", ["frames=[29, 30, 31, 100, -1, -40]", "start_frame=-2, sequence_length=5"]
)
def test_frames_outside_agree(arguments, mode):
    source = f'ndd.decoders.video(x, {arguments}, pad_mode="{mode}", fill_value=[7, 250, 0])'
    assert_same(source, x=file("mjpeg.mkv"))


@pytest.mark.parametrize(
    "arguments",
    [
        "frames=7",
        "frames=[]",
        "stride=7",
        "start_frame=3.7, sequence_length=2",
        "frames=[40], fill_value=9",
        "frames=[40], fill_value=[9]",
        "frames=[0], build_index=False, affine=False",
        'frames=[2, 4], pad_mode="none"',
    ],
)
@pytest.mark.parametrize("name", ["vp8.webm", "mjpeg.mp4"])
def test_other_forms_agree(name, arguments):
    assert_same(f"ndd.decoders.video(x, {arguments})", x=file(name))


@pytest.mark.parametrize(
    "arguments",
    [
        "frames=[1], stride=2",
        "sequence_length=3, end_frame=9",
        "start_frame=30",
        "start_frame=5, end_frame=5",
        "sequence_length=-1",
        'frames=[30], pad_mode="none"',
        'frames=[-1], pad_mode="none"',
        'pad_mode="mirror"',
        "fill_value=[1, 2]",
        "fill_value=256",
    ],
)
def test_errors_agree(arguments):
    assert_same(f"ndd.decoders.video(x, {arguments})", x=file("vp8.webm"))


@pytest.mark.parametrize(
    "source",
    [
        "ndd.decoders.video(ndd.batch([x, y]), frames=[0, 5])",
        "ndd.decoders.video(ndd.batch([x, y]), start_frame=ndd.batch([2, 9]), sequence_length=4)",
        "ndd.decoders.video(ndd.batch([x, y]), frames=ndd.batch([[1, 2], [7, 29]]))",
        "ndd.decoders.video(ndd.batch([x, y]), sequence_length=3, stride=ndd.batch([5, 2]))",
        "ndd.decoders.video(ndd.batch([x, y]), sequence_length=ndd.batch([2, 3]))",
        "ndd.decoders.video(x.reshape(2, -1)[:, :40])",
        "ndd.decoders.video(x.astype(np.float32))",
        "ndd.decoders.video(x[:0])",
        "ndd.decoders.video(x[:500])",
        "ndd.decoders.video(np.full(3000, 65, np.uint8))",
    ],
)
def test_batches_and_bad_inputs_agree(source):
    x, y = file("vp9.webm"), file("mjpeg.avi")
    assert_same(source, x=x[: len(x) // 2 * 2], y=y)


DIFFERENT = [
    Differs("ndd.decoders.video(x, stride=0)", "RuntimeError", "DALI crashes", ask=False),
    Differs("ndd.decoders.video(x, stride=-1)", "RuntimeError", "DALI crashes", ask=False),
    Differs(
        'mode = "edge"; ndd.decoders.video(x, frames=[40], pad_mode=mode)',
        'ndd.decoders.video(x, frames=[40], pad_mode="edge")',
        "DALI takes a mode that is not a literal in the call for something else",
    ),
]


@pytest.mark.parametrize("row", DIFFERENT, ids=str)
def test_where_dali_is_not_followed(row, make_folder):
    path = make_folder("video") / "vp8.webm"
    path.write_bytes(video("vp8.webm"))
    row.after(f"x = np.fromfile({str(path)!r}, np.uint8)").check()
