"""Readers of videos: which clips there are, of what frames, and what else is given."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests import videos
from tests.video_colors import exact

import penstock as ndd
from penstock.experimental.readers import Video as Experimental
from penstock.readers import Video, VideoResize

COUNT = 30
"""Frames of most files."""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Paths of files of the corpus."""
    folder = tmp_path_factory.mktemp("videos")
    return lambda name: videos.save(folder, name)[0]


def clips(reader, output=0):
    """The numbers of the frames of each clip, as their pixels say; or another output."""
    made = [outputs[output] for outputs in reader.next_epoch()]
    if output:
        return [np.asarray(one).tolist() for one in made]
    return [videos.numbers(one) for one in made]


def runs(*starts, length, stride=1):
    return [list(range(start, start + length * stride, stride)) for start in starts]


# Frames of every file


@pytest.mark.parametrize("name", videos.NAMES)
def test_clips_have_exactly_their_frames(file, name):
    """Whatever the codec, and in whatever order clips are read."""
    whole = videos.decoded(videos.video(name), "rgb24")
    expected = videos.numbers([frame for _, frame in whole])
    reader = Video(
        filenames=file(name),
        sequence_length=1,
        enable_frame_num="sequence",
        enable_timestamps=True,
        shuffle="global",
        seed=3,
    )
    found = {}
    for frames, numbers, times in reader.next_epoch():
        [at], [time] = np.asarray(numbers).tolist(), np.asarray(times).tolist()
        found[at] = (videos.number(np.asarray(frames)[0]), time)
    assert sorted(found) == list(range(len(whole)))
    assert [found[at][0] for at in sorted(found)] == expected
    times = [found[at][1] for at in sorted(found)]
    # AVI has no times of frames that are reordered; FFmpeg gives them those of their packets.
    assert times == pytest.approx(sorted(time for time, _ in whole), abs=1e-6)


@pytest.mark.parametrize("name", ["h264-bframes.mp4", "hevc-open.mp4", "vp9.webm", "mjpeg.avi"])
def test_clips_are_what_the_decoder_gives(file, name):
    [(clip,)] = Video(filenames=file(name), sequence_length=COUNT).next_epoch()
    assert (clip.dtype, clip.layout, clip.shape) == (ndd.uint8, "FHWC", (COUNT, 120, 160, 3))
    whole = ndd.decoders.video(np.frombuffer(videos.video(name), np.uint8))
    np.testing.assert_array_equal(clip, whole)


# Which clips there are


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"sequence_length": 10}, runs(0, 10, 20, length=10)),
        ({"sequence_length": 12}, runs(0, 12, length=12)),
        ({"sequence_length": 5, "stride": 3}, runs(0, 15, length=5, stride=3)),
        ({"sequence_length": 14, "stride": 2, "step": 1}, runs(0, 1, 2, 3, length=14, stride=2)),
        ({"sequence_length": 20, "step": 5}, runs(0, 5, 10, length=20)),
        ({"sequence_length": 31}, None),
    ],
)
def test_clips_of_readers_video(file, options, expected):
    if expected is None:
        with pytest.raises(ValueError, match=r"`sequence_length` asks for clips of 31 frames"):
            Video(filenames=file("h264.mp4"), **options)
    else:
        assert clips(Video(filenames=file("h264.mp4"), **options)) == expected


def test_the_experimental_reader_wants_room_for_the_last_stride(file):
    options = {"filenames": file("h264.mp4"), "sequence_length": 14, "stride": 2, "step": 1}
    assert clips(Experimental(**options)) == runs(0, 1, 2, length=14, stride=2)


def test_padded_clips_of_readers_video(file):
    options = {"enable_frame_num": "sequence", "enable_timestamps": True}
    reader = Video(
        filenames=file("h264.mp4"), sequence_length=3, step=28, pad_sequences=True, **options
    )
    (_, _, times), (clip, numbers, last) = list(reader.next_epoch())
    assert np.asarray(numbers).tolist() == [28, 29, -1]
    assert np.asarray(times).tolist() == pytest.approx([0, 1 / 30, 2 / 30], abs=1e-6)
    assert np.asarray(last).tolist() == pytest.approx([28 / 30, 29 / 30, -1], abs=1e-6)
    assert videos.numbers(clip)[:2] == [28, 29]
    assert not np.asarray(clip)[2].any()
    tails = Video(filenames=file("h264.mp4"), sequence_length=28, step=1, pad_sequences=True)
    assert tails.epoch_size == COUNT


@pytest.mark.parametrize(
    ("pad_mode", "tail"),
    [
        ("constant", [-1, -1, -1]),
        ("edge", [29, 29, 29]),
        ("repeat", [29, 29, 29]),
        ("reflect_1001", [29, 28, 27]),
        ("symmetric", [29, 28, 27]),
        ("reflect_101", [28, 27, 26]),
        ("reflect", [28, 27, 26]),
    ],
)
def test_ways_of_padding(file, pad_mode, tail):
    reader = Experimental(
        filenames=file("h264.mp4"),
        sequence_length=8,
        pad_mode=pad_mode,
        fill_value=[10, 20, 30],
        enable_frame_num="sequence",
    )
    *_, (clip, numbers) = list(reader.next_epoch())
    expected = [*range(24, 30), *tail[:2]]
    assert np.asarray(numbers).tolist() == expected
    if pad_mode == "constant":
        assert (np.asarray(clip)[6:] == [10, 20, 30]).all()
    else:
        assert videos.numbers(clip) == expected


def test_frames_over_the_whole_video(file):
    reader = Experimental(filenames=file("h264.mp4"), sequence_length=4, uniform_sample=True)
    assert clips(reader) == [[0, 10, 19, 29]]
    with pytest.warns(UserWarning, match="have no effect"):
        Experimental(filenames=file("h264.mp4"), sequence_length=4, uniform_sample=True, stride=2)


def test_clips_that_are_evenly_distributed(file):
    options = {"filenames": file("h264.mp4"), "sequence_length": 10}
    assert clips(Video(**options, clips_per_video=3)) == runs(0, 10, 20, length=10)
    assert clips(Video(**options, clips_per_video=1)) == runs(10, length=10)


def test_clips_at_random_places_differ_with_the_epoch(file):
    files = [file("h264.mp4"), file("vp9.webm"), file("h264-one.mp4")]
    options = {"filenames": files, "labels": [], "sequence_length": 8, "sampling": "random"}
    reader = Video(**options, clips_per_video=3, seed=7)
    epochs = []
    for _ in range(2):
        state = reader.get_state()
        epoch = [(videos.numbers(clip), int(label[0])) for clip, label in reader.next_epoch()]
        # The last one is too short.
        assert [label for _, label in epoch] == [0, 0, 0, 1, 1, 1]
        for numbers, _ in epoch:
            assert numbers == list(range(numbers[0], numbers[0] + 8))
        again = Video(**options, clips_per_video=3, seed=7)
        again.set_state(state)
        assert [
            (videos.numbers(clip), int(label[0])) for clip, label in again.next_epoch()
        ] == epoch
        epochs.append(epoch)
    assert epochs[0] != epochs[1]
    shuffled = Video(**options, clips_per_video=20, seed=7, shuffle="global")
    labels = [int(label[0]) for _, label in shuffled.next_epoch()]
    assert sorted(labels) == [0] * 20 + [1] * 20 != labels
    starts = {
        numbers[0]
        for numbers, _ in ((videos.numbers(clip), 0) for clip, _ in shuffled.next_epoch())
    }
    assert min(starts) < 6
    assert max(starts) > 16


def test_frames_at_another_rate(file):
    """Each moment gets the frame that is shown then, also where the rate varies."""
    taken = Video(filenames=file("h264.mp4"), sequence_length=3, fps=10)
    assert clips(taken) == [[0, 3, 6], [9, 12, 15], [18, 21, 24]]
    more = Video(filenames=file("h264.mp4"), sequence_length=6, fps=60)
    assert clips(more)[:2] == [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]
    name = "h264-vfr.mkv"
    times = [time for time, _ in videos.decoded(videos.video(name))]
    [frames] = clips(Video(filenames=file(name), sequence_length=18, fps=10))
    expected = [
        max(n for n, time in enumerate(times) if time <= at / 10 + 1e-6) for at in range(18)
    ]
    assert frames == expected


def test_clips_of_seconds(file):
    options = {"filenames": file("h264.mp4")}
    reader = Video(**options, clip_duration=0.4, fps=10)
    assert clips(reader) == [[0, 3, 6, 9], [12, 15, 18, 21]]
    reader = Video(**options, clip_duration=0.4, sequence_length=4)
    assert clips(reader) == [[0, 3, 6, 9], [12, 15, 18, 21]]


# Files, lists, labels


def listed(tmp_path, *lines):
    path = tmp_path / "list.txt"
    path.write_text("".join(line + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        (None, (10, 20)),
        ("start_down_end_up", (10, 20)),
        ("start_up_end_down", (11, 19)),
        ("all_up", (11, 20)),
        ("all_down", (10, 19)),
    ],
)
@pytest.mark.parametrize("unit", ["frames", "timestamps"])
def test_bounds_of_a_list_are_rounded(tmp_path, file, rounding, expected, unit):
    bounds = "10.4 20.6" if unit == "frames" else f"{10.4 / 30} {20.6 / 30}"
    reader = Experimental(
        file_list=listed(tmp_path, f"{file('h264.mp4')} 3 {bounds}"),
        file_list_format=unit,
        file_list_rounding=rounding,
        sequence_length=1,
        enable_frame_num="scalar",
    )
    numbers = [int(number[0]) for _, _, number in reader.next_epoch()]
    assert (numbers[0], numbers[-1]) == expected
    assert numbers == list(range(expected[0], expected[1] + 1))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("", (0, 29)),
        ("12", (12, 29)),
        ("0 -1", (0, 28)),
        ("-5", (25, 29)),
        ("5 1000", (5, 29)),
        ("5 8 and more words", (5, 7)),
    ],
)
def test_bounds_of_a_list_in_frames(tmp_path, file, bounds, expected):
    reader = Experimental(
        file_list=listed(tmp_path, "", f"{file('h264.mp4')}\t3 {bounds}  "),
        file_list_format="frames",
        sequence_length=1,
        enable_frame_num=True,
    )
    numbers = [int(number[0]) for _, _, number in reader.next_epoch()]
    assert (numbers[0], numbers[-1]) == expected


def test_times_of_a_list_are_from_the_first_frame_on(tmp_path, file):
    path = listed(tmp_path, f"{file('h264-late.mkv')} 0 0.4 0.8")
    assert clips(Experimental(file_list=path, sequence_length=10)) == runs(10, length=10)
    path = listed(tmp_path, f"{file('h264-late.mkv')} 0 2.4 2.8")
    reader = Experimental(file_list=path, sequence_length=10, file_list_times="pts")
    assert clips(reader) == runs(10, length=10)


def test_lists_of_readers_video(tmp_path, file):
    name = file("h264.mp4")
    whole = {"sequence_length": 1, "enable_frame_num": True}

    def ends(bounds, **options):
        reader = Video(file_list=listed(tmp_path, f"{name} 7 {bounds}"), **whole, **options)
        made = [(int(label[0]), int(number[0])) for _, label, number in reader.next_epoch()]
        assert {label for label, _ in made} == {7}
        return made[0][1], made[-1][1]

    assert ends("0.35 0.69") == (11, 19)
    assert ends("0.35 0.69", file_list_include_preceding_frame=True) == (10, 20)
    assert ends("10.9 20.9", file_list_frame_num=True) == (10, 19)
    assert ends("5 0", file_list_frame_num=True) == (5, 29)
    assert ends("5 -3", file_list_frame_num=True) == (5, 26)
    assert ends("-3 0", file_list_frame_num=True) == (27, 29)


def test_lines_without_frames_are_left_out_with_a_warning(tmp_path, file):
    name = file("h264.mp4")
    path = listed(tmp_path, f"{name} 1 5 5", f"{name} 2 0 1", f"{name} 3 9 5")
    with pytest.warns(
        UserWarning, match=r"lines of the list .* 2, the first one is line 1: '.* 5'"
    ):
        reader = Experimental(file_list=path, file_list_format="frames", sequence_length=1)
    assert clips(reader, 1) == [[2]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("a.mp4", "line 2 has no label"),
        ("a.mp4 x", "line 2 has a label that is not a whole number"),
        ("a.mp4 -1", "line 2 has a negative label"),
        ("a.mp4 99999999999", "line 2 has a label that does not fit"),
        ("a.mp4 1 later", "line 2 has a start or end that is not a number: 'later'"),
    ],
)
def test_bad_lines_are_named(tmp_path, file, line, problem):
    path = listed(tmp_path, f"{file('h264.mp4')} 1", line)
    for kind in (Video, Experimental):
        with pytest.raises(ValueError, match=problem):
            kind(file_list=path, sequence_length=1)


def test_an_end_beyond_that_of_the_video_can_be_an_error(tmp_path, file):
    path = listed(tmp_path, f"{file('h264.mp4')} 1 0 31")
    options = {"file_list": path, "file_list_format": "frames", "sequence_length": 1}
    assert Experimental(**options).epoch_size == COUNT
    with pytest.raises(ValueError, match="line 1 ends with frame 31, but the video has 30 frames"):
        Experimental(**options, file_list_include_end=False)


@pytest.mark.parametrize("kind", [Video, Experimental])
def test_folders_are_labels(tmp_path, kind):
    videos.save(tmp_path / "walk", "h264.mp4", "vp9.webm")
    videos.save(tmp_path / "run", "mjpeg.avi")
    videos.save(tmp_path, "h264.mkv")
    reader = kind(file_root=tmp_path, sequence_length=30)
    assert clips(reader, 1) == [[0], [1], [1]]
    names = [clip.source_info for clip, _ in reader.next_epoch()]
    assert names == [
        f"{tmp_path}/run/mjpeg.avi",
        *[f"{tmp_path}/walk/{n}" for n in ("h264.mp4", "vp9.webm")],
    ]


@pytest.mark.parametrize("kind", [Video, Experimental])
def test_labels_of_files(file, kind):
    names = [file("h264.mp4"), file("vp9.webm")]
    assert len(next(iter(kind(filenames=names, sequence_length=30).next_epoch()))) == 1
    assert clips(kind(filenames=names, sequence_length=30, labels=[5, -3]), 1) == [[5], [-3]]
    assert clips(kind(filenames=names, sequence_length=30, labels=[]), 1) == [[0], [1]]
    for labels, problem in (([1], "has 1 labels for 2 files"), ([1, 2**31], "fit into 32 bits")):
        with pytest.raises(ValueError, match=problem):
            kind(filenames=names, sequence_length=30, labels=labels)


# Outputs


@pytest.mark.parametrize("kind", [Video, Experimental])
def test_outputs_come_in_order(file, kind):
    reader = kind(
        filenames=[file("h264.mp4"), file("vp9.webm")],
        labels=[4, 5],
        sequence_length=10,
        enable_frame_num="sequence",
        enable_timestamps=True,
    )
    clip, label, numbers, times = next(iter(reader.next_epoch(batch_size=6)))
    assert [one.dtype for one in (clip, label, numbers, times)] == [
        ndd.uint8,
        ndd.int32,
        ndd.int32,
        ndd.float64,
    ]
    assert clip.torch().shape == (6, 10, 120, 160, 3)
    assert label.torch().flatten().tolist() == [4, 4, 4, 5, 5, 5]
    assert numbers.torch()[1].tolist() == list(range(10, 20))
    np.testing.assert_allclose(times.torch()[1], np.arange(10, 20) / 30, atol=1e-6)


def test_elements_and_colors(file):
    options = {"filenames": file("h264.mp4"), "sequence_length": 2, "step": 100}
    [(bytes_,)] = Video(**options).next_epoch()
    [(floats,)] = Video(**options, dtype=ndd.float32).next_epoch()
    [(parts,)] = Video(**options, dtype=ndd.float32, normalized=True).next_epoch()
    np.testing.assert_array_equal(np.asarray(bytes_), np.asarray(floats))
    np.testing.assert_allclose(np.asarray(parts), np.asarray(bytes_) / 255, rtol=1e-6)
    assert parts.layout == "FHWC"
    [(gray,)] = Experimental(**options, image_type=ndd.types.GRAY).next_epoch()
    assert gray.shape == (2, 120, 160, 1)
    [(stored,)] = Video(**options, image_type=ndd.types.YCbCr).next_epoch()
    luma = videos.decoded(videos.video("h264.mp4"))[0][1][:120]
    np.testing.assert_array_equal(np.asarray(stored)[0, :, :, 0], luma)


@pytest.mark.parametrize(
    "size",
    [
        {"size": [60, 80]},
        {"size": [48, 0]},
        {"resize_x": 40},
        {"resize_shorter": 64, "interp_type": ndd.types.INTERP_CUBIC},
        {"resize_longer": 80, "antialias": False},
        {"size": [50, 50], "mode": "not_larger"},
        {"size": [40, 40], "roi_start": [0.25, 0.25], "roi_end": [0.75, 1], "roi_relative": True},
        {"size": [240, 320], "mag_filter": ndd.types.INTERP_NN},
    ],
)
def test_frames_are_resized_as_by_resize(file, size):
    """What is stored is resized, exactly as by `resize`, and its colors are converted then."""
    options = {"filenames": file("h264-444.mp4"), "sequence_length": 3, "step": 100}
    [(stored,)] = Video(**options, image_type=ndd.types.YCbCr).next_epoch()
    expected = np.asarray(ndd.resize(stored, **size))
    [(made,)] = VideoResize(**options, **size, image_type=ndd.types.YCbCr).next_epoch()
    assert made.layout == "FHWC"
    np.testing.assert_array_equal(made, expected)
    [(made,)] = VideoResize(**options, **size).next_epoch()
    for frame, planes in zip(np.asarray(made), expected, strict=True):
        wanted = exact(np.moveaxis(planes, -1, 0), 8, (0, 0), 0, False)
        assert np.abs(frame - wanted).max() <= 0.53


def test_resizing_first_differs_from_resizing_last_by_rounding_and_clipping(file):
    """By 3 levels: half a level of each plane, times the largest sum of factors of a color (2.4),
    and the rounding of both results. More only where colors leave the range of RGB, since those
    that were converted first have been clipped.
    """
    options = {"filenames": file("h264-444.mp4"), "sequence_length": 3, "step": 100}
    [(clip,)] = Video(**options).next_epoch()
    last = np.asarray(ndd.resize(clip, size=[60, 80])).astype(int)
    [(first,)] = Video(**options, size=[60, 80]).next_epoch()
    [(stored,)] = Video(**options, image_type=ndd.types.YCbCr).next_epoch()
    planes = [np.moveaxis(frame, -1, 0) for frame in np.asarray(stored)]
    free = np.stack([exact(*[p, 8, (0, 0), 0, False], clipped=False) for p in planes])
    clipped = ((free < 0) | (free > 255)).any(axis=-1)
    # Pixels of the result that no such color contributes to: antialiasing reaches two pixels.
    blocks = np.pad(clipped, ((0, 0), (2, 2), (2, 2)))
    near = np.lib.stride_tricks.sliding_window_view(blocks, (6, 6), axis=(1, 2))[:, ::2, ::2]
    inside = ~near.any(axis=(-1, -2))[:, :60, :80]
    assert inside.mean() > 0.3
    assert abs(np.asarray(first).astype(int) - last)[inside].max() <= 3


@pytest.mark.parametrize("kind", [Video, VideoResize, Experimental])
def test_frames_are_turned_upright(file, kind):
    sized = {"size": [80, 60]} if kind is VideoResize else {}
    options = {"filenames": file("h264-rotated.mp4"), "sequence_length": 3, "step": 100, **sized}
    [(upright,)] = kind(**options, adjust_orientation=True).next_epoch()
    whole = ndd.decoders.video(
        np.frombuffer(videos.video("h264-rotated.mp4"), np.uint8),
        sequence_length=3,
        adjust_orientation=True,
        **sized,
    )
    assert upright.shape == ((3, 80, 60, 3) if sized else (3, 160, 120, 3))
    np.testing.assert_array_equal(upright, whole)
    if not sized:
        [(as_stored,)] = kind(**options).next_epoch()
        np.testing.assert_array_equal(upright, np.rot90(np.asarray(as_stored), -1, axes=(1, 2)))
    # In a batch with others, whose frames then have another shape.
    names = [file("h264-rotated.mp4"), file("h264.mp4")]
    reader = kind(**{**options, "filenames": names}, adjust_orientation=True)
    [(batch,)] = reader.next_epoch(batch_size=2)
    assert len({clip.shape for clip in batch}) == (1 if sized else 2)


@pytest.mark.parametrize("format", ["matroska", "mp4", "mpegts", "avi"])
def test_two_fields_in_two_packets_are_one_frame(tmp_path, format):
    path = tmp_path / "fields"
    path.write_bytes(videos.fields(format))
    reader = Video(filenames=path, sequence_length=3, enable_frame_num="sequence")
    assert reader.epoch_size == 4
    assert clips(reader) == runs(0, 3, 6, 9, length=3)
    shuffled = Video(filenames=path, sequence_length=2, step=1, shuffle="global", seed=5)
    assert sorted(clips(shuffled)) == runs(*range(11), length=2)


def test_all_readers_take_a_size(file):
    options = {"filenames": file("h264.mp4"), "sequence_length": 3, "step": 100}
    [(made,)] = VideoResize(**options, size=[60, 80]).next_epoch()
    for kind in (Video, Experimental):
        [(same,)] = kind(**options, size=[60, 80]).next_epoch()
        np.testing.assert_array_equal(made, same)


def test_a_call_can_give_sizes(file):
    reader = VideoResize(filenames=file("h264.mp4"), sequence_length=3, size=[60, 80])
    assert reader()[0].shape == (3, 60, 80, 3)
    with pytest.raises(ValueError, match="`size` was given to the reader already"):
        reader(size=[10, 10])
    reader = VideoResize(filenames=file("h264.mp4"), sequence_length=3)
    with pytest.raises(ValueError, match="`size` is needed"):
        reader(batch_size=2)
    made = reader(batch_size=2, size=ndd.batch([[24.0, 32.0], [60.0, 80.0]]))
    assert [clip.shape for clip in made[0]] == [(3, 24, 32, 3), (3, 60, 80, 3)]
    # What failed above was not given.
    assert videos.numbers(next(iter(reader(batch_size=2, resize_x=160)[0]))) == [6, 7, 8]


def test_videos_of_different_sizes_are_batches_of_them(file):
    names = [file("h264.mp4"), file("vp9-odd.webm")]
    [(batch,)] = Video(filenames=names, sequence_length=30).next_epoch(batch_size=2)
    assert [one.shape for one in batch] == [(30, 120, 160, 3), (30, 91, 161, 3)]
    [(batch,)] = Video(filenames=names, sequence_length=30, size=[24, 32]).next_epoch(batch_size=2)
    assert batch.torch().shape == (2, 30, 24, 32, 3)


@pytest.mark.usefixtures("emulated")
def test_programs_for_a_gpu_run(file):
    reader = Video(device="gpu", filenames=file("h264.mp4"), sequence_length=10)
    assert reader(batch_size=2)[0].device.device_type == "gpu"


# Arguments


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "`sequence_length` is needed"),
        ({"sequence_length": 0}, "`sequence_length` must be from 1"),
        ({"sequence_length": -3}, "`sequence_length` must be from 1"),
        ({"sequence_length": 3, "stride": 0}, "`stride` must be from 1"),
        ({"sequence_length": 3, "fps": 0}, "`fps` must be positive"),
        ({"sequence_length": 3, "fps": 5, "clip_duration": 1}, "give two of the three"),
        ({"sequence_length": 3, "clips_per_video": 0}, "`clips_per_video` must be from 1"),
        ({"sequence_length": 3, "sampling": "some"}, "`sampling` must be"),
        (
            {"sequence_length": 3, "sampling": "dense", "clips_per_video": 2},
            "`clips_per_video` needs",
        ),
        ({"sequence_length": 3, "enable_frame_num": "all"}, "`enable_frame_num` must be"),
        ({"sequence_length": 3, "image_type": ndd.types.BGR}, "`image_type` must be"),
        ({"sequence_length": 3, "dtype": ndd.int16}, "`dtype` must be uint8 or float32"),
        ({"sequence_length": 3, "normalized": True}, "`normalized` needs"),
        ({"sequence_length": 3, "file_root": "x"}, "both name the files"),
    ],
)
@pytest.mark.parametrize("kind", [Video, Experimental])
def test_wrong_arguments_are_named(file, kind, options, problem):
    where = "experimental.readers.Video" if kind is Experimental else "readers.Video"
    with pytest.raises(ValueError, match=f"^{where}: .*{problem}"):
        kind(filenames=file("h264.mp4"), **options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pad_mode": "mirror"}, "`pad_mode` must be"),
        ({"fill_value": [1, 2]}, "`fill_value` must be one or three integers"),
        ({"fill_value": 256}, "`fill_value` must be one or three integers"),
        ({"file_list_format": "ticks"}, "`file_list_format` must be"),
        ({"file_list_rounding": "up"}, "`file_list_rounding` must be"),
    ],
)
def test_wrong_arguments_of_the_experimental_reader(file, options, problem):
    with pytest.raises(ValueError, match=problem):
        Experimental(filenames=file("h264.mp4"), sequence_length=3, **options)


def test_wrong_arguments_of_the_resizing_reader(file):
    options = {"filenames": file("h264.mp4"), "sequence_length": 3}
    with pytest.raises(ValueError, match="`size` is needed"):
        next(iter(VideoResize(**options).next_epoch()))
    with pytest.raises(ValueError, match="both give the size"):
        VideoResize(**options, size=[3, 4], resize_x=5)
    with pytest.raises(ValueError, match="`channels` must be 3"):
        Video(**options, channels=4)
    with pytest.raises(TypeError, match="did you mean `sequence_length`"):
        Video(filenames=file("h264.mp4"), sequence_lenght=3)


# Files that can't be read


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    paths = {}
    for name, content in videos.damaged().items():
        paths[name] = folder / f"{name.replace(' ', '-')}.bin"
        paths[name].write_bytes(content)
    return paths


UNREADABLE = ("empty", "text", "sound only", "no index", "head only")


@pytest.mark.parametrize("name", [*UNREADABLE, "missing"])
def test_files_that_are_no_videos_are_left_out(file, damaged, name, tmp_path):
    bad = damaged.get(name, tmp_path / "nowhere.mp4")
    names = [file("h264.mp4"), bad]
    with pytest.warns(UserWarning, match=f"a file is left out, because it can't be read: {bad}"):
        reader = Video(filenames=names, labels=[0, 1], sequence_length=30)
    assert clips(reader, 1) == [[0]]
    with pytest.raises(ValueError, match=f"`filenames` can't be used: {bad}"):
        Video(filenames=names, sequence_length=30, on_error="raise")
    reader = Video(filenames=[bad, *names], sequence_length=30, on_error="skip")
    assert clips(reader) == runs(0, length=30)
    assert [(error.file, error.sample) for error in reader.errors] == [(str(bad), 0), (str(bad), 2)]
    reader = Video(filenames=names, sequence_length=30, on_error="substitute")
    assert clips(reader) == runs(0, 0, length=30)


def test_nothing_that_can_be_read_is_an_error(damaged):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="no video"):
            Video(filenames=damaged["text"], sequence_length=1)


@pytest.mark.parametrize("name", ["cut webm", "cut mkv", "cut fragments", "flipped"])
def test_of_damaged_files_all_that_is_whole_can_be_read(damaged, name):
    reader = Video(
        filenames=damaged[name], sequence_length=1, on_error="skip", enable_frame_num=True
    )
    found = [(videos.number(np.asarray(clip)[0]), int(at[0])) for clip, at in reader.next_epoch()]
    assert len(found) >= 10
    if name == "cut webm":
        assert [number for number, _ in found] == [at for _, at in found]


def test_a_size_that_changes_is_an_error_unless_frames_are_resized(damaged):
    path = damaged["resized midway"]
    reader = Video(filenames=path, sequence_length=20)
    with pytest.raises(OSError, match=r"(?s)frame 10.*resized-midway"):
        np.asarray(next(iter(reader.next_epoch()))[0])
    [(clip,)] = Video(filenames=path, sequence_length=20, size=[60, 80]).next_epoch()
    assert clip.shape == (20, 60, 80, 3)


def test_a_file_that_shrinks_later_is_a_bad_sample(tmp_path):
    (path,) = videos.save(tmp_path, "h264.mp4")
    reader = Video(filenames=path, sequence_length=10, prefetch_queue_depth=1)
    (tmp_path / "h264.mp4").write_bytes(videos.video("h264-one.mp4"))
    with pytest.raises(OSError, match="it has 1 frames, but had at least"):
        np.asarray(reader[1][0])


# From files to a framework


def test_sequences_pass_through_operators_to_torch(file):
    """Each frame with arguments of its own, in the layout that models want."""
    import torch

    reader = Video(filenames=[file("h264.mp4"), file("vp9.webm")], sequence_length=6, step=100)
    [(clip,)] = reader.next_epoch(batch_size=2)
    angles = ndd.per_frame(ndd.batch([np.arange(6, dtype=np.float32)] * 2))
    turned = ndd.rotate(clip, angle=angles, keep_size=True)
    by_hand = [
        torch.stack(
            [
                ndd.rotate(frame, angle=float(n), keep_size=True).torch()
                for n, frame in enumerate(
                    ndd.tensor(one, layout="HWC") for one in np.asarray(sample)
                )
            ]
        )
        for sample in clip
    ]
    assert torch.equal(turned.torch(), torch.stack(by_hand))
    normal = ndd.crop_mirror_normalize(turned, output_layout="FCHW", mean=[128], std=[64])
    assert (normal.torch().shape, normal.torch().dtype) == ((2, 6, 3, 120, 160), torch.float32)
    few = ndd.sequence_rearrange(clip, new_order=[5, 0])
    assert videos.numbers(next(iter(few))) == [5, 0]


PER_FRAME = {
    "flip": lambda draw: {"horizontal": draw(2), "vertical": draw(2)},
    "rotate": lambda draw: {"angle": draw(90.0)},
    "warp_affine": lambda draw: {"matrix": draw.matrices()},
    "brightness_contrast": lambda draw: {"brightness": draw(2.0), "contrast": draw(2.0)},
    "resize": lambda draw: {"roi_start": draw.places(0, 30), "roi_end": draw.places(60, 120)},
    # These have the same arguments for all frames, as in DALI.
    "crop": lambda draw: {},
    "normalize": lambda draw: {},
}
"""Operators, and arguments of theirs with one for each frame of each clip."""

FIXED = {
    "rotate": {"keep_size": True, "fill_value": 7},
    "warp_affine": {"fill_value": 9},
    "crop": {"crop": [60, 80], "crop_pos_x": 0.3},
    "resize": {"size": [48, 64]},
    "normalize": {"axes": [1, 2]},
}
ALONE = {"normalize": {"axes": [0, 1]}}
"""Other arguments, for one frame: it has one axis less."""


class Draw:
    """Draws arguments for two clips of a few frames."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, most):
        if isinstance(most, int):
            return [self.rng.integers(most, size=6) for _ in range(2)]
        return [self.rng.uniform(0, most, 6).astype(np.float32) for _ in range(2)]

    def matrices(self):
        identity = np.float32([[1, 0, 0], [0, 1, 0]])
        noise = self.rng.normal(size=(2, 6, 2, 3)).astype(np.float32)
        return [identity + each * np.float32([0.1, 0.1, 9]) for each in noise]

    def places(self, low, high):
        return [self.rng.uniform(low, high, (6, 2)).astype(np.float32) for _ in range(2)]


@pytest.mark.parametrize("name", PER_FRAME)
def test_operators_on_clips_are_those_on_frames(file, name):
    """From files to torch, each frame with arguments of its own."""
    import torch

    reader = Video(filenames=[file("h264.mp4"), file("vp9.webm")], sequence_length=6, step=100)
    [(batch,)] = reader.next_epoch(batch_size=2)
    drawn = PER_FRAME[name](Draw(3))
    fixed = FIXED.get(name, {})
    alone = ALONE.get(name, fixed)
    operator = getattr(ndd, name)
    per_frame = {key: ndd.per_frame(ndd.batch(value)) for key, value in drawn.items()}
    made = operator(batch, **per_frame, **fixed).torch()
    for sample, clip in enumerate(batch):
        for at, frame in enumerate(np.asarray(clip)):
            own = {key: value[sample][at] for key, value in drawn.items()}
            wanted = operator(ndd.tensor(frame, layout="HWC"), **own, **alone).torch()
            assert torch.equal(made[sample, at], wanted), f"clip {sample}, frame {at}"


def test_a_chain_of_operators_on_clips_is_that_on_frames(file):
    import torch

    def chain(images, arguments, layout):
        images = ndd.flip(images, horizontal=arguments["horizontal"])
        images = ndd.rotate(images, angle=arguments["angle"], keep_size=True)
        images = ndd.crop(images, crop=[90, 100], crop_pos_x=0.2)
        images = ndd.brightness_contrast(images, brightness=arguments["brightness"])
        images = ndd.resize(images, size=[56, 64])
        return ndd.crop_mirror_normalize(
            images, mean=[120.0, 110.0, 100.0], std=[60.0], output_layout=layout
        ).torch()

    reader = Video(filenames=[file("h264.mp4"), file("vp9.webm")], sequence_length=6, step=100)
    [(batch,)] = reader.next_epoch(batch_size=2)
    draw = Draw(8)
    drawn = {"horizontal": draw(2), "angle": draw(90.0), "brightness": draw(2.0)}
    per_frame = {key: ndd.per_frame(ndd.batch(value)) for key, value in drawn.items()}
    made = chain(batch, per_frame, "FCHW")
    assert made.shape == (2, 6, 3, 56, 64)
    for sample, clip in enumerate(batch):
        for at, frame in enumerate(np.asarray(clip)):
            own = {key: value[sample][at] for key, value in drawn.items()}
            wanted = chain(ndd.tensor(frame, layout="HWC"), own, "CHW")
            assert torch.equal(made[sample, at], wanted), f"clip {sample}, frame {at}"


def test_clips_come_through_the_torch_loader(file):
    reader = Video(
        filenames=[file("h264.mp4")], labels=[2], sequence_length=5, random_shuffle=True, seed=1
    )
    loader = ndd.torch.Loader(reader, lambda clip, label: (clip, label), batch_size=3)
    shapes = [tuple(clip.shape) for clip, _ in loader]
    assert shapes == [(3, 5, 120, 160, 3)] * 2
