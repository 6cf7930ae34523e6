import copy
import pickle

import pytest

from penstock import types


def test_numbers_are_those_of_the_api():
    assert {member.name: int(member) for member in types.DALIImageType} == {
        "RGB": 0,
        "BGR": 1,
        "GRAY": 2,
        "YCbCr": 3,
        "ANY_DATA": 4,
    }
    assert [int(types.DALIInterpType(number)) for number in range(6)] == list(range(6))
    assert (types.NO_TYPE, types.FLOAT, types.BOOL, types.PYTHON_OBJECT) == (-1, 9, 11, 24)


@pytest.mark.parametrize("enum", [types.DALIDataType, types.DALIInterpType, types.DALIImageType])
def test_every_member_is_a_flat_constant(enum):
    for name, member in enum.__members__.items():
        assert getattr(types, name) is member


def test_prints_by_name_on_every_python():
    assert repr(types.INT32) == "<DALIDataType.INT32: 6>"
    assert str(types.INT32) == f"{types.INT32}" == "DALIDataType.INT32"
    assert f"{types.RGB:>20}" == "   DALIImageType.RGB"


def test_equals_its_number_but_no_constant_of_another_kind():
    assert types.RGB == 0
    assert types.RGB != 1
    assert types.RGB != types.INTERP_NN
    assert (types.RGB == types.INTERP_NN) is False
    assert types.UINT8 != types.RGB
    assert {6: "int"}[types.INT32] == "int"


def test_copies_are_the_same_object():
    assert copy.deepcopy(types.RGB) is types.RGB
    assert pickle.loads(pickle.dumps(types.INTERP_CUBIC)) is types.INTERP_CUBIC


def test_unknown_number_is_an_error():
    with pytest.raises(ValueError, match="99"):
        types.DALIDataType(99)


def test_layout_names_leave_out_the_batch_axis():
    assert (types.NHWC, types.NCHW, types.NFHWC, types.NFCHW) == ("HWC", "CHW", "FHWC", "FCHW")
