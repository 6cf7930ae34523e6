"""Text representation of values: the same text as DALI's, character by character."""

import pytest

from tests.conformance.oracle import assert_same

TENSORS = [
    "ndd.tensor(3)",
    "ndd.tensor(1.5)",
    "ndd.tensor(True)",
    "ndd.tensor(np.float64(1 / 3))",
    "ndd.tensor(np.float32(0.1))",
    "ndd.tensor([1, 2])",
    "ndd.tensor([[1, 2], [3, 4]], layout='HW')",
    "ndd.tensor([True, False])",
    "ndd.tensor(np.float16([1.5, 2]))",
    "ndd.tensor(np.float32([1, 1e10, 1e-5, np.nan, np.inf]))",
    "ndd.tensor(np.float64([1 / 3, 100]))",
    "ndd.tensor(np.uint64([2**64 - 1, 0]))",
    "ndd.tensor([])",
    "ndd.tensor(np.zeros((0, 3), np.uint8))",
    "ndd.tensor(np.zeros((3, 0), np.uint8), layout='HW')",
    "ndd.tensor(np.arange(24).reshape(2, 3, 4))",
    "ndd.tensor(np.arange(16).reshape(2, 2, 2, 2), layout='FHWC')",
    # 1000 elements are still shown in full
    "ndd.tensor(np.arange(1000))",
    "ndd.tensor(np.arange(1001))",
    "ndd.tensor(np.arange(2000).reshape(40, 50))",
    "ndd.tensor(np.arange(1005).reshape(5, 201))",
    "ndd.tensor(np.arange(1206).reshape(3, 402))",
    "ndd.tensor(np.zeros((6, 6, 40), np.float32), layout='HWC')",
    "ndd.tensor([1, 2]) + 1",
    "ndd.batch([[1, 2], [3]], layout='X').tensors[0]",
]

BATCHES = [
    "ndd.batch([1, 2, 3])",
    "ndd.batch([1.5, 2.0, 1 / 3])",
    "ndd.batch([np.float64(1 / 3), np.float64(2)])",
    "ndd.batch([True, False])",
    "ndd.batch([[1, 2], [3, 4]])",
    "ndd.batch([[1, 2], [3, 4, 5]], layout='X')",
    "ndd.batch([np.float32([1.25, 3]), np.float32([100, 2, 1e-7])])",
    "ndd.batch([np.arange(6).reshape(2, 3)])",
    "ndd.batch([np.arange(6).reshape(2, 3), np.arange(4).reshape(2, 2)], layout='HW')",
    "ndd.batch([np.arange(12).reshape(2, 3, 2)] * 2)",
    "ndd.batch([np.zeros((2, 1, 1, 1), np.float32)] * 2)",
    "ndd.batch([np.zeros((0, 3)), np.zeros((2, 3))])",
    "ndd.batch([np.zeros(0, np.float32)] * 2)",
    "ndd.batch([], dtype=ndd.int32)",
    # long samples are shortened one by one
    "ndd.batch([np.arange(1000)] * 3)",
    "ndd.batch([np.arange(1001)] * 3)",
    "ndd.batch([np.arange(2), np.arange(2000)])",
    "ndd.batch([np.arange(2000).reshape(2, 1000)] * 2)",
    "ndd.batch([np.arange(1010).reshape(2, 5, 101)] * 2)",
    # samples are left out when there are more than five and more than 1000 elements
    "ndd.batch([np.arange(201)] * 5)",
    "ndd.batch([np.arange(166)] * 6)",
    "ndd.batch([np.arange(167)] * 6)",
    "ndd.batch([np.arange(100)] * 10)",
    "ndd.batch([np.arange(101)] * 10)",
    "ndd.batch([np.arange(1001)] * 7)",
    "ndd.batch([np.arange(6).reshape(2, 3)] * 200)",
    "ndd.batch([np.arange(8).reshape(2, 2, 2)] * 200)",
    "ndd.batch(list(range(1000)))",
    "ndd.batch(list(range(1001)))",
    # more than 16 shapes are shortened
    "ndd.batch(list(range(16)))",
    "ndd.batch(list(range(17)))",
    "ndd.batch([[0] * n for n in range(1, 19)])",
    "ndd.batch([[1, 2], [3]]) + 1",
]

OTHERS = [
    "str(ndd.Device.CPU), repr(ndd.Device.CPU)",
    "[(str(d), repr(d)) for d in (ndd.bool, ndd.int8, ndd.uint64, ndd.float16, ndd.float32)]",
    "[(str(d), repr(d)) for d in (ndd.float64, ndd.bfloat16, ndd.ImageType)]",
    "[(str(m), repr(m)) for m in ndd.EvalMode]",
    "[(str(x), repr(x)) for x in (types.RGB, types.INTERP_CUBIC, types.FLOAT)]",
]


@pytest.mark.parametrize("source", TENSORS + BATCHES)
def test_values_look_the_same(source):
    assert_same(f"repr({source})")


@pytest.mark.parametrize("source", TENSORS[:6] + BATCHES[:6])
def test_str_is_repr(source):
    assert_same(f"x = {source}\nstr(x), f'{{x}}', str(x) == repr(x)")


@pytest.mark.parametrize("source", OTHERS)
def test_other_objects_look_the_same(source):
    assert_same(source)


def test_numpys_print_options_count_alike():
    assert_same(
        """
        with np.printoptions(precision=3, threshold=5, edgeitems=1, linewidth=60):
            texts = [
                repr(ndd.tensor(np.float64([1 / 3] * 20))),
                repr(ndd.tensor(np.arange(2000))),
                repr(ndd.batch([np.float64([1 / 3] * 20)] * 2)),
            ]
        texts
        """
    )


def test_showing_a_failed_value_raises_its_error():
    assert_same("repr(ndd.tensor([1, 2])[5])")
