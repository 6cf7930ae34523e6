"""Readers of videos: which clips there are, of what frames, and what else is given."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests import videos

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
    options = {"filenames": file("h264-444.mp4"), "sequence_length": 3, "step": 100}
    [(clip,)] = Video(**options).next_epoch()
    expected = np.asarray(ndd.resize(clip, **size)).astype(int)
    [(made,)] = VideoResize(**options, **size).next_epoch()
    assert (made.layout, made.shape) == ("FHWC", expected.shape)
    # Planes are resized before colors are converted, so that rounding differs.
    difference = abs(np.asarray(made).astype(int) - expected)
    assert difference.mean() < 1
    assert difference.max() <= 24


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


def test_clips_come_through_the_torch_loader(file):
    reader = Video(
        filenames=[file("h264.mp4")], labels=[2], sequence_length=5, random_shuffle=True, seed=1
    )
    loader = ndd.torch.Loader(reader, lambda clip, label: (clip, label), batch_size=3)
    shapes = [tuple(clip.shape) for clip, _ in loader]
    assert shapes == [(3, 5, 120, 160, 3)] * 2
