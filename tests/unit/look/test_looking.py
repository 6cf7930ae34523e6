"""Pictures of tensors and batches: `_repr_html_`, `show` and `save_grid`."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.images import encoded, photograph

import penstock as ndd
from penstock._look import font, html, png, show
from penstock._look.file_kinds import kind_of_bytes
from penstock._look.pictures import picture


def pictures_of(page: str) -> list[np.ndarray]:
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))) for data in found]


def grid(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path))


@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 7, 1), (64, 33, 3), (9, 2, 4)])
def test_png_holds_exactly_the_pixels(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    decoded = np.asarray(Image.open(io.BytesIO(png.encode(pixels))))
    assert np.array_equal(decoded.reshape(shape), pixels)


def test_png_refuses_pictures_without_pixels():
    with pytest.raises(ValueError, match="0 x 4 pixels"):
        png.encode(np.zeros((0, 4, 3), np.uint8))


def test_font_has_all_of_ascii_and_a_box_for_the_rest():
    assert {chr(code) for code in range(32, 127)} == font._GLYPHS.keys()
    assert font.text("abc", 10).shape == (font.HEIGHT, 3 * font.WIDTH)
    assert font.text("ü", 1).any()
    shapes = {font.text(chr(code), 1).tobytes() for code in range(32, 127)}
    assert len(shapes) == 95, "two characters look the same"


def test_long_captions_lose_their_middle():
    assert np.array_equal(font.text("abcdefghij", 6), font.text("ab..ij", 6))
    assert font.text("abc", 0).shape[1] == 0


def test_batch_of_images_is_a_row_of_figures():
    images = ndd.batch([photograph(40, 60), photograph(300, 200)], layout="HWC")
    page = images._repr_html_()
    first, second = pictures_of(page)
    assert np.array_equal(first, photograph(40, 60))
    assert second.shape == (150, 100, 3), "large images are made smaller"
    assert "Batch of 2 samples, u8" in page
    assert "shapes differ" in page
    assert "1: 300 x 200 x 3" in page


def test_channel_first_images_look_the_same():
    pixels = photograph(70, 80)
    [shown] = pictures_of(ndd.tensor(pixels.transpose(2, 0, 1), layout="CHW")._repr_html_())
    assert np.array_equal(shown, pixels)


def test_numbers_become_visible():
    unit = picture(np.full((64, 64, 1), 0.5, np.float32), "HWC", 64)
    assert unit.pixels[0, 0].tolist() == [128, 128, 128]
    assert unit.note == ""
    scaled = picture(np.linspace(-2, 2, 64 * 64, dtype=np.float32).reshape(64, 64), "HW", 64)
    assert (scaled.pixels.min(), scaled.pixels.max()) == (0, 255)
    assert scaled.note == "scaled from -2 to 2"
    mask = picture(np.eye(64, dtype=np.bool_), "HW", 64)
    assert mask.pixels[3, 3, 0] == 255
    broken = picture(np.full((64, 64), np.nan, np.float32), "HW", 64)
    assert "NaN" in broken.note


def test_dark_images_stay_dark_when_made_smaller():
    assert picture(np.ones((512, 512, 3), np.uint8), "HWC", 64).pixels.max() == 1


@pytest.mark.parametrize("shape", [(1000, 3, 3), (3, 1000, 3), (1, 1, 3)])
def test_extreme_shapes_can_be_shown(shape):
    shown = picture(np.zeros(shape, np.uint8), "HWC", 64)
    assert min(shown.pixels.shape[:2]) >= 1


def test_sequences_are_strips_of_frames():
    frames = np.zeros((30, 64, 64, 3), np.uint8)
    frames[29] = 255
    shown = picture(frames, "FHWC", 64)
    assert shown.pixels.shape == (64, 6 * 64 + 5 * 2, 3)
    assert shown.pixels[0, 0, 0] == 0
    assert shown.pixels[0, -1, 0] == 255
    assert shown.note == "frames 0, 6, 12, 17, 23, 29 of 30"


def test_sound_is_a_waveform():
    sound = ndd.tensor(np.sin(np.arange(8000) / 20).astype(np.float32))
    [shown] = pictures_of(sound._repr_html_())
    assert shown.shape == (80, 320, 3)
    assert (shown[[0, -1]] != 255).any(), "the loudest samples reach the edges"
    stereo = picture(np.zeros((1000, 2), np.int16), None, 160)
    assert stereo.pixels.shape == (160, 320, 3)


def test_spectrograms_have_low_frequencies_at_the_bottom():
    power = np.zeros((128, 200), np.float32)
    power[0] = 1
    shown = picture(power, "ft", 160)
    assert shown.pixels[-1].sum() > shown.pixels[0].sum()
    assert shown.note == "in decibels"


def test_other_data_is_a_table():
    page = ndd.batch([[1.5, 2], [3]])._repr_html_()
    assert "<table>" in page
    assert "1.5, 2" in page
    assert "1.5 to 2" in page
    assert "empty" not in ndd.batch([np.zeros((0, 3), np.float32)])._repr_html_()


def test_files_in_memory_say_their_format():
    page = ndd.batch([encoded(photograph(20, 20))])._repr_html_()
    assert "JPEG file" in page
    assert kind_of_bytes(encoded(photograph(8, 8), "PNG").tobytes()[:64]) == "PNG"
    assert kind_of_bytes(bytes(64)) is None


def test_large_batches_are_cut_short():
    images = ndd.batch(np.zeros((40, 8, 8, 3), np.uint8), layout="HWC")
    page = images._repr_html_()
    assert len(pictures_of(page)) == 16
    assert "and 24 more samples" in page
    assert "and 30 more samples" in ndd.batch(np.zeros((40, 2)))._repr_html_()


def test_empty_batches_have_a_page():
    assert "Batch of 0 samples" in ndd.batch([], dtype=ndd.uint8)._repr_html_()


def test_names_of_files_are_escaped(tmp_path):
    name = "<script>alert(1)</script>"
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / (name.replace("/", "") + ".jpg")).write_bytes(encoded(photograph(8, 8)).tobytes())
    jpegs, _ = next(iter(ndd.readers.File(file_root=str(tmp_path)).next_epoch(batch_size=1)))
    for page in (jpegs._repr_html_(), ndd.decoders.image(jpegs)._repr_html_()):
        assert "<script>" not in page
        assert "&lt;script&gt;" in page


def test_errors_are_shown_not_raised():
    failed = ndd.decoders.image(ndd.batch([np.zeros(50, np.uint8)]))
    page = failed._repr_html_()
    assert "failed" in page
    assert "decoders.image" in page
    assert failed._repr_mimebundle_()["text/plain"].startswith(
        "<Batch of 1 sample, failed: decoders.image: sample 0: "
    )


def test_notebooks_can_choose_text():
    batch = ndd.batch([[1, 2]])
    bundle = batch._repr_mimebundle_(include=None, exclude=None)
    assert bundle == {"text/html": batch._repr_html_(), "text/plain": repr(batch)}


def test_unfinished_values_say_so(monkeypatch):
    monkeypatch.setattr(html, "_PATIENCE", 0.01)
    go_on = threading.Event()

    def slow(x):
        go_on.wait(30)
        return x

    late = ndd.map(slow, ndd.batch(np.zeros((2, 4), np.float32)))
    try:
        assert "still being computed" in late._repr_html_()
        assert late._repr_mimebundle_()["text/plain"] == "<Batch of 2 samples>"
    finally:
        go_on.set()
    late.evaluate()
    assert "<table>" in late._repr_html_()


def test_deferred_values_are_computed_to_be_shown():
    with ndd.EvalMode.deferred:
        flipped = ndd.flip(ndd.tensor(photograph(70, 70), layout="HWC"))
        assert len(pictures_of(flipped._repr_html_())) == 1


def test_values_on_the_gpu_can_be_shown(recwarn):
    assert len(pictures_of(ndd.tensor(photograph(70, 70), layout="HWC").gpu()._repr_html_())) == 1


def test_grid_has_all_samples(tmp_path):
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    images = ndd.batch([np.full((64, 64, 3), color, np.uint8) for color in colors], layout="HWC")
    images.save_grid(tmp_path / "grid.png", columns=2)
    sheet = grid(tmp_path / "grid.png")
    assert sheet.shape == (2 * 68 + 4, 2 * 68 + 4, 3)
    for color, (y, x) in zip(colors, [(30, 30), (30, 100), (100, 30)], strict=True):
        assert tuple(sheet[y, x]) == color
    assert tuple(sheet[100, 100]) == (255, 255, 255)


def test_grid_has_labels_below_the_pictures(tmp_path):
    images = ndd.batch(np.full((2, 64, 64, 3), 200, np.uint8), layout="HWC")
    for labels in (["cat", "dog"], ndd.batch([[3], [4]]), [3, 4], np.array([0.5, 1.25])):
        images.save_grid(tmp_path / "grid.png", labels=labels, columns=2)
        sheet = grid(tmp_path / "grid.png")
        assert sheet.shape[0] == 64 + font.HEIGHT + 2 + 2 * 4
        assert (sheet[68:, :70] == 0).any()
        assert (sheet[68:, 70:] == 0).any()


@pytest.mark.parametrize(
    ("boxes", "options"),
    [
        ([[[10, 20, 40, 50]]], {}),
        ([[[10, 20, 30, 30]]], {"box_format": "xywh"}),
        ([[[10 / 128, 20 / 128, 40 / 128, 50 / 128]]], {}),
    ],
)
def test_grid_has_boxes(tmp_path, boxes, options):
    images = ndd.batch(np.zeros((1, 128, 128, 3), np.uint8), layout="HWC")
    images.save_grid(tmp_path / "grid.png", boxes=ndd.batch(boxes, dtype=ndd.float32), **options)
    sheet = grid(tmp_path / "grid.png")[4:-4, 4:-4]
    colored = np.argwhere(sheet.any(2))
    assert colored.min(0).tolist() == [20, 10]
    assert colored.max(0).tolist() == [50, 40]
    assert not sheet[35, 25].any(), "the inside is left alone"


def test_boxes_of_smaller_pictures_are_scaled(tmp_path):
    image = ndd.tensor(np.zeros((512, 512, 3), np.uint8), layout="HWC")
    image.save_grid(tmp_path / "grid.png", boxes=[[100, 200, 300, 400]])
    colored = np.argwhere(grid(tmp_path / "grid.png")[4:-4, 4:-4].any(2))
    assert colored.min(0).tolist() == [100, 50]
    assert colored.max(0).tolist() == [200, 150]


def test_images_without_boxes_and_boxes_outside_are_fine(tmp_path):
    images = ndd.batch(np.zeros((2, 64, 64, 3), np.uint8), layout="HWC")
    images.save_grid(tmp_path / "g.png", boxes=[np.zeros((0, 4)), [[-50, -50, 900, 900]]])
    assert grid(tmp_path / "g.png").any()


def test_grid_says_what_is_wrong(tmp_path):
    images = ndd.batch(np.zeros((2, 8, 8, 3), np.uint8), layout="HWC")
    with pytest.raises(ValueError, match=r"must end with \.png"):
        images.save_grid(tmp_path / "grid.jpg")
    with pytest.raises(ValueError, match="2 samples, but 3 `labels`"):
        images.save_grid(tmp_path / "grid.png", labels=[1, 2, 3])
    with pytest.raises(ValueError, match="has boxes for 1"):
        images.save_grid(tmp_path / "grid.png", boxes=[[[0, 0, 1, 1]]])
    with pytest.raises(ValueError, match=r"`boxes` of sample 0 must have the shape"):
        images.save_grid(tmp_path / "grid.png", boxes=[[1, 2, 3], []])
    with pytest.raises(ValueError, match="`columns` must be a positive integer"):
        images.save_grid(tmp_path / "grid.png", columns=0)
    with pytest.raises(ValueError, match="`box_format`"):
        images.save_grid(tmp_path / "grid.png", boxes=[[], []], box_format="yxhw")
    with pytest.raises(ValueError, match="can't be shown as pictures"):
        ndd.batch([[1], [2]]).save_grid(tmp_path / "grid.png")
    with pytest.raises(FileNotFoundError):
        images.save_grid(tmp_path / "missing" / "grid.png")
    assert not list(tmp_path.iterdir())


def test_show_without_a_desktop_says_where_the_file_is(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(show, "_open_viewer", lambda name: False)
    monkeypatch.setattr(show.tempfile, "tempdir", str(tmp_path))
    ndd.tensor(photograph(70, 70), layout="HWC").show()
    said = capsys.readouterr().out
    assert said.startswith("Saved to ")
    assert grid(Path(said.removeprefix("Saved to ").strip())).shape == (78, 78, 3)


def test_show_prints_what_is_not_visual(capsys):
    ndd.tensor([1, 2, 3]).show()
    assert "[1 2 3]" in capsys.readouterr().out


def test_viewers_are_looked_for_only_on_desktops(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not show._open_viewer("x.png")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("PATH", "")
    assert not show._open_viewer("x.png"), "no xdg-open"


def test_import_loads_none_of_this():
    code = "import sys, penstock as ndd; ndd.batch([1]); print('penstock._look' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
