"""Arguments and operators under former names."""

import inspect

import numpy as np
import pytest
from tests.images import encoded, photograph

import penstock as ndd
from penstock import types

IMAGE = np.zeros((8, 8, 3), np.uint8)
JPEG = encoded(photograph(8, 8))

CALLS = {
    "memory_stats": lambda: ndd.decoders.image(JPEG, memory_stats=True),
    "split_stages": lambda: ndd.decoders.image_crop(JPEG, split_stages=True),
    "use_chunk_allocator": lambda: ndd.decoders.image(JPEG, use_chunk_allocator=False),
    "image_type": lambda: ndd.crop(IMAGE, crop=(2, 2), image_type=types.RGB),
    "output_dtype": lambda: ndd.crop(IMAGE, crop=(2, 2), output_dtype=ndd.float32),
    "output_dtype of rotate": lambda: ndd.rotate(IMAGE, angle=3, output_dtype=ndd.float32),
}


@pytest.mark.parametrize("name", CALLS)
def test_deprecated_arguments_warn_at_the_line_of_the_user(name):
    with pytest.warns(DeprecationWarning, match=f"`{name.split()[0]}` is deprecated") as caught:
        CALLS[name]()
    assert [warning.filename for warning in caught] == [__file__]


def test_nothing_warns_without_them():
    ndd.decoders.image(JPEG)
    ndd.crop(IMAGE, crop=(2, 2), dtype=ndd.float32)


@pytest.mark.parametrize(
    ("name", "former"),
    [
        ("decoders.image", ndd.experimental.decoders.image),
        ("peek_image_shape", ndd.experimental.peek_image_shape),
    ],
)
def test_former_names_of_operators_warn(name, former):
    text = f"`experimental.{name}` is the former name of `{name}`; use that one"
    with pytest.warns(DeprecationWarning, match=text) as caught:
        former(JPEG).evaluate()
    assert [warning.filename for warning in caught] == [__file__]


def test_former_names_have_the_signature_of_the_operator():
    former = inspect.signature(ndd.experimental.decoders.image)
    assert former == inspect.signature(ndd.decoders.image)
    assert ndd.experimental.decoders.image.__doc__ == ndd.decoders.image.__doc__


@pytest.mark.filterwarnings("ignore:.*former name:DeprecationWarning")
def test_errors_under_a_former_name_show_no_internal_frames():
    with pytest.raises(TypeError) as raised:
        ndd.experimental.decoders.image(JPEG, nonsense=1)
    files = {entry.path for entry in raised.traceback}
    assert not any("penstock/_operators" in str(file) for file in files)
