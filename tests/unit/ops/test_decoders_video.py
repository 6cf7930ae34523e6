"""Videos of all kinds: which frames come, their colors, and what is said of bad ones."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.video_colors import enlarged, exact, stored
from tests.videos import NAMES, damaged, fields, number, numbers, two_streams, video

import penstock as ndd
from penstock.errors import DecodeError


def data(name):
    return np.frombuffer(video(name), np.uint8)


@pytest.mark.parametrize("name", NAMES)
def test_frames_and_colors_are_those_of_a_decode_in_a_row(name):
    made = np.asarray(ndd.decoders.video(data(name)))
    expected = [exact(*frame) for frame in stored(video(name))]
    assert made.shape == (len(expected), *expected[0].shape)
    for at, (frame, wanted) in enumerate(zip(made, expected, strict=True)):
        # Values of twelve bits are rounded to ten first.
        limit = 1.0 if "12bit" in name else 0.53
        assert np.abs(frame - wanted).max() <= limit, f"frame {at}"


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_is_the_same_by_itself(name):
    made = np.asarray(ndd.decoders.video(data(name)))
    order = np.random.default_rng(5).permutation(len(made)).tolist()
    for at in order:
        alone = np.asarray(ndd.decoders.video(data(name), frames=[at]))
        assert np.array_equal(alone[0], made[at]), f"frame {at}"


@pytest.mark.parametrize("name", NAMES)
def test_frames_in_any_order_and_with_strides(name):
    made = np.asarray(ndd.decoders.video(data(name)))
    count = len(made)
    picked = [at % count for at in (7, 3, 3, 20, 11, 0, count - 1, 7)]
    assert np.array_equal(np.asarray(ndd.decoders.video(data(name), frames=picked)), made[picked])
    for stride in (2, 3, 7):
        strided = np.asarray(ndd.decoders.video(data(name), start_frame=count // 3, stride=stride))
        assert np.array_equal(strided, made[count // 3 :: stride]), stride


def test_times_pick_the_frame_that_is_shown():
    file = data("h264-vfr.mp4")
    info = ndd.io.video_info(file)
    assert info.frames == 30
    assert np.allclose(info.times[:16], np.arange(16) * 0.033)
    assert info.times[16] == pytest.approx(0.595)
    times = [0.0, 0.032, 0.034, 0.5, 0.594, 0.596, info.times[29]]
    made = ndd.decoders.video(file, times=times)
    assert numbers(np.asarray(made)) == [0, 0, 1, 15, 15, 16, 29]
    # Each frame by its own time.
    made = ndd.decoders.video(file, times=info.times.tolist())
    assert numbers(np.asarray(made)) == list(range(30))


def test_a_constant_rate_repeats_and_leaves_out_frames():
    file = data("h264-vfr.mp4")
    info = ndd.io.video_info(file)
    made = numbers(np.asarray(ndd.decoders.video(file, fps=20)))
    shown = [
        int(np.searchsorted(info.times, at / 20 + 1e-9, "right")) - 1 for at in range(len(made))
    ]
    assert made == shown
    assert len(made) == int(np.ceil(info.duration * 20 - 1e-6))
    made = ndd.decoders.video(file, fps=10, start_time=0.5, sequence_length=4)
    assert numbers(np.asarray(made)) == [15, 16, 17, 18]


def test_clips_by_seconds():
    file = data("h264-late.mkv")  # 25 frames a second, from 2 s on
    assert ndd.io.video_info(file).start == pytest.approx(2.0)
    made = ndd.decoders.video(file, start_time=0.4, duration=0.2)
    assert numbers(np.asarray(made)) == [10, 11, 12, 13, 14]
    made = ndd.decoders.video(file, start_time=0.41, end_time=0.5)
    assert numbers(np.asarray(made)) == [10, 11, 12]
    made = ndd.decoders.video(file, start_time=ndd.batch([0.0, 0.8]), duration=0.08, batch_size=2)
    assert [numbers(clip) for clip in made] == [[0, 1], [20, 21]]


def test_edit_lists_and_hidden_pictures_count_what_is_shown():
    assert numbers(np.asarray(ndd.decoders.video(data("h264-edited.mp4")))) == list(range(13, 30))
    assert len(np.asarray(ndd.decoders.video(data("vp8-altref.webm")))) == 30


def test_rotation():
    file = data("h264-rotated.mp4")
    upright = np.asarray(ndd.decoders.video(file, frames=[4], adjust_orientation=True))
    as_stored = np.asarray(ndd.decoders.video(file, frames=[4]))
    assert as_stored.shape == (1, 120, 160, 3)
    assert np.array_equal(upright, np.rot90(as_stored, -1, axes=(1, 2)))
    assert ndd.io.video_info(file).orientation == 6
    small = ndd.decoders.video(file, frames=[4], adjust_orientation=True, size=[80, 60])
    assert small.shape == (1, 80, 60, 3)
    resized = np.asarray(ndd.resize(ndd.as_tensor(upright, layout="FHWC"), size=[80, 60]))
    assert np.abs(np.asarray(small).astype(int) - resized).mean() < 1.5


@pytest.mark.parametrize(
    "name",
    [
        "h264.mp4",
        "h264-444.mp4",
        "h264-10bit.mp4",
        "vp9-odd.webm",
        "h264-gray.mp4",
        "mjpeg-422.mov",
    ],
)
@pytest.mark.parametrize("size", [[64, 64], [60, 0], [240, 320]])
def test_sizes_are_close_to_resizing_afterwards(name, size):
    made = ndd.decoders.video(data(name), frames=[0, 9], size=size)
    wanted = np.asarray(ndd.resize(ndd.decoders.video(data(name), frames=[0, 9]), size=size))
    assert made.shape == wanted.shape
    difference = np.abs(np.asarray(made).astype(int) - wanted)
    assert difference.mean() < 1.5


@pytest.mark.parametrize(
    "arguments",
    [
        {"size": [64, 64]},
        {"size": [60, 0], "interp_type": ndd.types.INTERP_CUBIC},
        {"size": [50, 50], "mode": "not_larger"},
        {"size": [50, 50], "mode": "not_smaller", "interp_type": "lanczos3"},
        {"size": [33, 45], "antialias": False},
        {"size": [200, 300], "interp_type": "nn"},
    ],
    ids=str,
)
def test_what_is_stored_is_resized_exactly_as_by_resize(arguments):
    file, frames = data("h264-444.mp4"), [0, 9]
    options = {"frames": frames, "output_type": ndd.types.YCbCr}
    made = ndd.decoders.video(file, **options, **arguments)
    wanted = ndd.resize(ndd.decoders.video(file, **options), **arguments)
    assert np.array_equal(np.asarray(made), np.asarray(wanted))
    rgb = np.asarray(ndd.decoders.video(file, frames=frames, **arguments))
    for frame, planes in zip(rgb, np.asarray(wanted), strict=True):
        colors = exact(np.moveaxis(planes, -1, 0), 8, (0, 0), 0, False)
        assert np.abs(frame - colors).max() <= 0.53


def test_color_formats():
    file, frames = data("h264.mp4"), [3, 4]
    rgb = np.asarray(ndd.decoders.video(file, frames=frames))
    bgr = np.asarray(ndd.decoders.video(file, frames=frames, output_type=ndd.types.BGR))
    assert np.array_equal(bgr, rgb[..., ::-1])
    planes, *_ = list(stored(video("h264.mp4")))[3]
    stored_as = np.asarray(ndd.decoders.video(file, frames=frames, output_type=ndd.types.YCbCr))
    assert np.array_equal(stored_as[0, ..., 0], planes[0])
    wanted = enlarged(planes[1], (1, 1), 120, 160)
    assert np.abs(stored_as[0, ..., 1] - wanted).max() <= 0.5
    gray = np.asarray(ndd.decoders.video(file, frames=frames, output_type=ndd.types.GRAY))
    wanted = np.clip((planes[0].astype(float) - 16) * 255 / 219, 0, 255)
    assert gray.shape == (2, 120, 160, 1)
    assert np.abs(gray[0, ..., 0] - wanted).max() <= 0.51


def test_floats_are_from_0_to_1_as_those_of_images():
    file = data("h264.mp4")
    made = np.asarray(ndd.decoders.video(file, frames=[3, 99], fill_value=51))
    floats = ndd.decoders.video(file, frames=[3, 99], fill_value=51, dtype=ndd.float32)
    assert (floats.dtype, floats.layout) == (ndd.float32, "FHWC")
    assert np.array_equal(np.asarray(floats), made.astype(np.float32) / np.float32(255))
    assert np.unique(np.asarray(floats)[1]).tolist() == pytest.approx([0.2])
    small = ndd.decoders.video(
        file, frames=[3], size=[30, 40], dtype=ndd.float32, output_type=ndd.types.GRAY
    )
    assert (small.shape, small.dtype) == ((1, 30, 40, 1), ndd.float32)
    with pytest.raises(ValueError, match="uint8 or float32, got i16"):
        ndd.decoders.video(file, dtype=ndd.int16)


def test_streams_by_number():
    file = np.frombuffer(two_streams(), np.uint8)
    first, second = (np.asarray(ndd.decoders.video(file, stream=number)) for number in (0, 1))
    assert (first.shape, second.shape) == ((30, 120, 160, 3), (10, 64, 96, 3))
    assert numbers(first) == list(range(30))
    assert numbers(second) == list(range(10))
    # FFmpeg prefers the larger one.
    assert np.array_equal(np.asarray(ndd.decoders.video(file)), first)
    assert np.array_equal(np.asarray(ndd.decoders.video(file, frames=[7], stream=1))[0], second[7])
    infos = [ndd.io.video_info(file, stream=number) for number in (None, 0, 1)]
    assert [(info.frames, info.width) for info in infos] == [(30, 160), (30, 160), (10, 96)]
    with pytest.raises(RuntimeError, match="`stream` must be below 2, the number of video streams"):
        ndd.decoders.video(file, stream=2).evaluate()
    with pytest.raises(RuntimeError, match="`stream` must be below 2"):
        ndd.io.video_info(file, stream=5)
    for call in (ndd.decoders.video, ndd.io.video_info):
        with pytest.raises(ValueError, match="`stream` must be at least 0"):
            call(file, stream=-1)


@pytest.mark.parametrize("format", ["matroska", "mp4", "mov", "mpegts", "avi"])
def test_two_fields_in_two_packets_are_one_frame(format):
    file = np.frombuffer(fields(format), np.uint8)
    info = ndd.io.video_info(file)
    assert info.frames == 12
    if format != "avi":  # which has no times of frames
        assert np.allclose(info.times, np.arange(12) / 25)
        assert info.duration == pytest.approx(12 / 25)
        assert info.key_frames.tolist() == [0, 4, 8]
    whole = np.asarray(ndd.decoders.video(file))
    assert numbers(whole) == list(range(12))
    for at in (7, 0, 11, 4, 3):
        alone = np.asarray(ndd.decoders.video(file, frames=[at]))
        assert np.array_equal(alone[0], whole[at]), f"frame {at}"
    assert numbers(np.asarray(ndd.decoders.video(file, stride=3))) == [0, 3, 6, 9]


def test_the_tag_of_colors_can_be_overruled():
    def made(**arguments):
        return np.asarray(ndd.decoders.video(data("h264-bt709.mp4"), frames=[0], **arguments))

    assert np.array_equal(made(), made(color_space="bt709"))
    assert not np.array_equal(made(), made(color_space="bt601"))


def test_gray_padding_has_one_value():
    made = ndd.decoders.video(
        data("h264.mp4"), frames=[99], output_type=ndd.types.GRAY, fill_value=9
    )
    assert np.unique(np.asarray(made)).tolist() == [9]


FAULTS = {
    "empty": "0 bytes",
    "text": "not a video",
    "sound only": "no video",
    "no index": "not a video",
    "head only": "not a video|no video",
    "flipped": r"frame \d+ \(at \d.\d+ s\)",
    "cut fragments": r"frame 13 \(at 0.433 s\) can't be decoded",
    "resized midway": r"frame 10 \(at 0.333 s\) has 64 x 96 pixels, but the first",
}


@pytest.mark.parametrize(("kind", "text"), FAULTS.items())
def test_bad_files_are_errors(kind, text):
    file = np.frombuffer(damaged()[kind], np.uint8)
    with pytest.raises(DecodeError, match=text):
        ndd.decoders.video(file).evaluate()


@pytest.mark.parametrize("kind", ["cut webm", "cut mkv"])
def test_files_that_were_cut_off_have_the_frames_that_are_there(kind):
    file = damaged()[kind]
    made = numbers(np.asarray(ndd.decoders.video(np.frombuffer(file, np.uint8))))
    assert 5 < len(made) < 30
    # Frames are stored in another order than they are shown in, so some before the last may lack.
    assert made[:10] == list(range(10))
    assert made == sorted(set(made))


def test_a_change_of_size_is_fine_with_a_size_or_before_it():
    file = np.frombuffer(damaged()["resized midway"], np.uint8)
    assert ndd.decoders.video(file, size=[32, 48]).shape == (20, 32, 48, 3)
    assert ndd.decoders.video(file, end_frame=10).shape == (10, 120, 160, 3)


def test_bad_samples_can_be_skipped():
    bad = np.frombuffer(damaged()["text"], np.uint8)
    batch = ndd.batch([data("vp9.webm"), bad, data("h264.mp4")])
    made, labels = ndd.decoders.video(
        batch, frames=[0], on_error="skip", along=ndd.batch([1, 2, 3])
    )
    assert len(made) == 2
    assert [int(np.asarray(label)) for label in labels] == [1, 3]
    good = ndd.decoders.video(batch, frames=[5])
    assert number(np.asarray(good.tensors[2])[0]) == 5


def test_too_much_is_refused_before_it_is_allocated():
    with pytest.raises(DecodeError, match="more than the limit"):
        ndd.decoders.video(data("h264.mp4"), sequence_length=200_000).evaluate()
    with pytest.raises(RuntimeError, match="sequence_length"):
        ndd.decoders.video(data("h264.mp4"), sequence_length=10**12).evaluate()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"frames": [1], "times": [0.5]}, "`frames` can't be given together with `times`"),
        ({"start_frame": 1, "start_time": 0.5}, "`start_frame` can't be given"),
        ({"end_time": 1.0, "duration": 0.5}, "`end_time` can't be given"),
        ({"fps": 10, "stride": 2}, "`stride` can't be given"),
        ({"start_time": 9.0}, "`start_time` must be before the end of the video, at 1 s, got 9"),
        ({"start_time": 0.5, "end_time": 0.5}, "`end_time` must be after the start"),
        ({"times": [2.0], "pad_mode": "none"}, "`times` must be before the end"),
        ({"times": [float("nan")]}, "`times` must be finite"),
        ({"fps": 0.0}, "`fps` must be"),
        ({"stride": 0}, "`stride` must be at least 1"),
        ({"frames": [30], "pad_mode": "none"}, r"`frames` must be in \[0, 30\)"),
        ({"color_space": "rec709"}, '`color_space` must be "auto"'),
        ({"fill_value": [1, 2]}, "`fill_value`"),
        ({"stream": 1}, "`stream` must be below 1"),
    ],
)
def test_bad_arguments(arguments, text):
    # At the call it is also a ValueError; later, when the file is known, it is this.
    with pytest.raises(RuntimeError, match=text):
        ndd.decoders.video(data("h264.mp4"), **arguments).evaluate()


def test_io_video_info(tmp_path):
    path = tmp_path / "bframes.mkv"
    path.write_bytes(video("h264-bframes.mkv"))
    info = ndd.io.video_info(path)
    assert info.frames == 30
    assert (info.height, info.width, info.codec) == (120, 160, "h264")
    assert info.fps == pytest.approx(30, abs=0.1)
    assert info.duration == pytest.approx(1, abs=0.01)
    assert info.key_frames.tolist() == [0, 10, 20]
    assert ndd.io.video_info(str(path))[:8] == ndd.io.video_info(path.read_bytes())[:8] == info[:8]
    with pytest.raises(OSError, match=r"missing\.mp4"):
        ndd.io.video_info(tmp_path / "missing.mp4")
    with pytest.raises(DecodeError, match="not a video"):
        ndd.io.video_info(b"nothing of the kind" * 9)


def test_the_file_replaced_under_the_same_name_is_read_anew(tmp_path):
    path = tmp_path / "video"
    path.write_bytes(video("h264.mp4"))
    assert ndd.io.video_info(path).codec == "h264"
    path.write_bytes(video("vp9.webm"))
    assert ndd.io.video_info(path).codec == "vp9"


def test_threads_decode_the_same():
    names = ["h264-bframes.mp4", "vp9.webm", "hevc.mp4", "mjpeg.avi"]
    wanted = {name: np.asarray(ndd.decoders.video(data(name))) for name in names}
    wrong = []

    def decode(seed):
        rng = np.random.default_rng(seed)
        for _ in range(10):
            name = names[rng.integers(len(names))]
            frames = rng.integers(30, size=4).tolist()
            made = np.asarray(ndd.decoders.video(data(name), frames=frames))
            if not np.array_equal(made, wanted[name][frames]):
                wrong.append((name, frames))

    threads = [threading.Thread(target=decode, args=[seed]) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_a_forked_child_decodes():
    wanted = np.asarray(ndd.decoders.video(data("h264-bframes.mp4"), frames=[25]))
    child = os.fork()
    if child == 0:
        try:
            made = np.asarray(ndd.decoders.video(data("h264-bframes.mp4"), frames=[25]))
            os._exit(0 if np.array_equal(made, wanted) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def resident():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_memory_does_not_grow_with_files_that_are_opened():
    good, bad = data("h264-bframes.mp4"), np.frombuffer(damaged()["flipped"], np.uint8)

    def some(count):
        for _ in range(count):
            ndd.decoders.video(good, frames=[3]).evaluate()
            with pytest.raises(DecodeError):
                ndd.decoders.video(bad).evaluate()

    some(30)
    before = resident()
    some(500)
    assert resident() - before < 16 << 20


PROGRAM = """
import sys, numpy as np
if {hidden}:
    import importlib.util
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == "av" else find(name, *rest)
import penstock as ndd
try:
    frames = ndd.decoders.video(np.fromfile({path!r}, np.uint8), frames=[0])
    print(frames.shape, "av" in sys.modules)
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("hidden", [False, True])
def test_without_ffmpeg_the_error_names_the_extra(hidden, tmp_path):
    path = Path(__file__).parents[2] / "data" / "videos" / "vp9-10bit.webm"
    program = PROGRAM.format(hidden=hidden, path=str(path))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    if not hidden:
        # Only its libraries are loaded, not the package.
        assert done.stdout.strip() == "(1, 120, 160, 3) False"
    elif "(1, 120, 160, 3)" not in done.stdout:  # the system has none
        assert "pip install 'penstock[video]'" in done.stdout, done.stdout + done.stderr
