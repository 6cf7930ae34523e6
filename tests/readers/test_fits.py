"""FITS images as Astropy writes and reads them."""

import numpy as np
import pytest
from astropy.io import fits
from tests.data_sets import contents

import penstock as ndd
from penstock.experimental.readers import Fits

TYPES = [
    "uint8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "int8",
    "uint16",
    "uint32",
    "uint64",
]


def write(path, *units):
    fits.HDUList([fits.PrimaryHDU(), *units]).writeto(path, overwrite=True)
    return path


def by_astropy(path, unit=1):
    with fits.open(path) as file:
        found = np.asarray(file[unit].data)
        return found.astype(found.dtype.newbyteorder("="))


def assert_same(path, unit=1, **options):
    wanted = by_astropy(path, unit)
    found = np.asarray(Fits(files=[path], hdu_indices=unit + 1, **options)[0][0])
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


def noise(dtype, shape=(13, 17), seed=0):
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return (100 + rng.normal(0, 5, shape)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5,), (13, 17), (2, 3, 4)], ids=str)
def test_every_element_type_is_that_of_astropy(tmp_path, dtype, shape):
    assert_same(write(tmp_path / "a.fits", fits.ImageHDU(noise(dtype, shape))))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_scaled_elements_are_floats(tmp_path, dtype):
    unit = fits.ImageHDU(np.arange(-3 if dtype[0] == "i" else 0, 9, dtype=dtype).reshape(3, -1))
    path = write(tmp_path / "a.fits", unit)
    content = path.read_bytes()
    cards = b"BSCALE  =                  0.5".ljust(80) + b"BZERO   =               10.0D0".ljust(
        80
    )
    cards += b"BLANK   =                    4 / missing".ljust(80)
    at = content.index(b"XTENSION")
    end = content.index(b"END ", at)
    content = content[:end] + cards + b"END".ljust(80) + content[end + 80 + len(cards) :]
    path.write_bytes(content)
    assert np.isnan(by_astropy(path)).sum() == 1
    assert_same(path)


@pytest.mark.parametrize("method", ["RICE_1", "GZIP_1", "GZIP_2"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint16", "uint32"])
def test_compressed_integers_are_exact(tmp_path, method, dtype):
    small = noise("uint8", (33, 21)).astype(dtype) + noise("uint8", (33, 21), 1) // 7
    for number, (data, tile) in enumerate(
        [(small, None), (noise(dtype), (5, 6)), (small, (33, 21))]
    ):
        unit = fits.CompImageHDU(data, compression_type=method, tile_shape=tile)
        path = write(tmp_path / f"{number}.fits", unit)
        assert_same(path)
        np.testing.assert_array_equal(np.asarray(Fits(files=[path])[0][0]), data)


@pytest.mark.parametrize("method", ["RICE_1", "GZIP_1", "GZIP_2"])
@pytest.mark.parametrize("dither", [-1, 1, 2], ids=["none", "first", "second"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantized_floats_are_those_of_astropy(tmp_path, method, dither, dtype):
    data = noise(dtype, (40, 300))
    data[3, :50] = 0
    data[7, 9] = np.nan
    unit = fits.CompImageHDU(
        data, compression_type=method, quantize_method=dither, dither_seed=77, tile_shape=(1, 300)
    )
    path = write(tmp_path / "a.fits", unit)
    wanted, found = by_astropy(path), np.asarray(Fits(files=[path])[0][0])
    assert found.dtype == wanted.dtype
    # Rounded differently at the last bit.
    np.testing.assert_allclose(found, wanted, rtol=2e-7)


@pytest.mark.parametrize("method", ["GZIP_1", "GZIP_2"])
def test_floats_without_loss_are_exact(tmp_path, method):
    data = noise("float32", (9, 31))
    unit = fits.CompImageHDU(data, compression_type=method, quantize_level=0)
    path = write(tmp_path / "a.fits", unit)
    np.testing.assert_array_equal(np.asarray(Fits(files=[path])[0][0]), data)


def test_cubes_are_compressed_in_tiles(tmp_path):
    data = noise("int16", (5, 12, 11))
    unit = fits.CompImageHDU(data, compression_type="RICE_1", tile_shape=(2, 5, 11))
    assert_same(write(tmp_path / "a.fits", unit))


def test_several_units_are_several_outputs(tmp_path):
    one, two = noise("float32"), noise("int16", (4,))
    fits.HDUList([fits.PrimaryHDU(one), fits.ImageHDU(two)]).writeto(tmp_path / "a.fits")
    reader = Fits(file_root=tmp_path, hdu_indices=[2, 1])
    for first, second in reader.next_epoch(batch_size=1):
        np.testing.assert_array_equal(np.asarray(first.torch())[0], two)
        np.testing.assert_array_equal(np.asarray(second.torch())[0], one)
    assert first.source_info == ["a.fits"] or first.source_info


def test_element_types_can_be_asked_for(tmp_path):
    path = write(tmp_path / "a.fits", fits.ImageHDU(np.array([[-5.0, 2.6, 300.0]])))
    reader = Fits(files=[path], dtypes=ndd.uint8)
    assert np.asarray(reader[0][0]).tolist() == [[0, 3, 255]]
    assert reader[0][0].dtype == ndd.uint8
    with pytest.raises(ValueError, match="`dtypes` has 2 types for 1 HDUs"):
        Fits(files=[path], dtypes=[ndd.uint8, ndd.float32])


def test_files_come_from_lists_folders_and_patterns(tmp_path):
    for number in range(3):
        write(tmp_path / f"{number}.fits", fits.ImageHDU(np.array([number])))
    (tmp_path / "list.txt").write_text("2.fits\n0.fits\n")

    def numbers(**arguments):
        return [int(np.asarray(image)[0]) for (image,) in Fits(**arguments).next_epoch()]

    assert numbers(file_list=tmp_path / "list.txt") == [2, 0]
    assert numbers(file_root=tmp_path) == [0, 1, 2]
    assert numbers(file_root=tmp_path, file_filter="1*") == [1]
    assert numbers(file_root=tmp_path, files=["1.fits"]) == [1]
    with pytest.raises(ValueError, match="hold none that match"):
        Fits(file_root=tmp_path, file_filter="*.fit")
    with pytest.raises(ValueError, match="`file_root` is needed"):
        Fits()
    with pytest.raises(ValueError, match="give one of them"):
        Fits(files=["a"], file_list="b")


def test_images_go_to_the_gpu(tmp_path, emulated):
    path = write(tmp_path / "a.fits", fits.ImageHDU(np.array([1, 2])))
    (image,) = Fits(files=[path], device="gpu")[0]
    assert image.device.device_type == "gpu"


def test_what_cant_be_read_is_named(tmp_path):
    table = fits.BinTableHDU.from_columns([fits.Column("x", "J", array=[1, 2])])
    path = write(tmp_path / "a.fits", table)
    plain = write(tmp_path / "b.fits", fits.ImageHDU(np.arange(3000)))
    wrong = {
        "HDU 2 is a table": (path, 2),
        "it has 2 HDUs, so there is none with number 3": (path, 3),
        "HDU 1 has no data": (path, 1),
    }
    for problem, (file, unit) in wrong.items():
        with pytest.raises(RuntimeError, match=problem):
            np.asarray(Fits(files=[file], hdu_indices=[unit])[0][0])
    content = plain.read_bytes()
    for problem, data in {
        "the file ends after": content[:-2880],
        "has no END": content[:4000],
        "not a FITS file": b"SIMPLY" + content[6:],
        "BITPIX is 17": content.replace(
            b"BITPIX  =                   64", b"BITPIX  =                   17"
        ),
    }.items():
        (tmp_path / "c.fits").write_bytes(data)
        with pytest.raises(RuntimeError, match=problem):
            np.asarray(Fits(files=[tmp_path / "c.fits"])[0][0])
    plio = fits.CompImageHDU(np.arange(9, dtype=np.int16).reshape(3, 3), compression_type="PLIO_1")
    with pytest.raises(RuntimeError, match="compressed with 'PLIO_1'; RICE_1, GZIP_1 and GZIP_2"):
        np.asarray(Fits(files=[write(tmp_path / "d.fits", plio)])[0][0])


@pytest.mark.parametrize("given", [0, -1, [], [1, 0], "x", [1.5]], ids=str)
def test_wrong_numbers_of_units(tmp_path, given):
    with pytest.raises((ValueError, TypeError), match="`hdu_indices`"):
        Fits(files=["a.fits"], hdu_indices=given)


@pytest.mark.parametrize("method", ["RICE_1", "GZIP_2", None])
def test_every_damaged_byte_is_an_error_or_harmless(tmp_path, method):
    data = noise("float32", (12, 40))
    unit = (
        fits.ImageHDU(data) if method is None else fits.CompImageHDU(data, compression_type=method)
    )
    path = write(tmp_path / "a.fits", unit)
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for place in rng.integers(0, len(whole), 300):
        content = bytearray(whole)
        content[place] ^= 1 << rng.integers(0, 8)
        path.write_bytes(content)
        for batch in Fits(files=[path, path], on_error="skip").next_epoch(batch_size=2):
            contents(batch)
