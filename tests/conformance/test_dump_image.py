"""Images as files."""

import numpy as np
import pytest

import penstock as ndd
from tests.conformance.on_purpose import assert_refused
from tests.conformance.oracle import assert_same

IMAGE = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)

WRITTEN = """
    import os, pathlib, tempfile
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            made = {call}
            made.evaluate()
            files = {{name: pathlib.Path(name).read_text() for name in sorted(os.listdir())}}
        finally:
            os.chdir(here)
    made, files
"""


@pytest.mark.parametrize(
    "call",
    [
        "ndd.dump_image(x)", "ndd.dump_image(ndd.tensor(x, layout='HWC'))",
        "ndd.dump_image(x, suffix='some')", "ndd.dump_image(x, input_layout='HWC')",
        "ndd.dump_image(np.ascontiguousarray(x[..., :1]))",
        "ndd.dump_image(ndd.batch([x, x[:2]], layout='HWC'))", "ndd.dump_image(x[:0])",
    ],
)  # fmt: skip
def test_files_and_results_are_dalis(call):
    assert_same(WRITTEN.format(call=call), x=IMAGE)


@pytest.mark.parametrize(
    "call",
    [
        "np.ones((4, 5, 4), 'u1')", "np.ones((4, 5, 2), 'u1')", "np.ones((4, 5), 'u1')",
        "np.ones((2, 4, 5, 3), 'u1')", "np.ones((4, 5, 3), 'f4')",
        "np.ones((4, 5, 3), 'u1'), input_layout='CHW'", "np.ones((4, 5, 3), 'u1'), suffix='a/b'",
    ],
)  # fmt: skip
def test_refuses(call):
    assert_refused(f"ndd.dump_image({call})")


def test_files_are_written_though_nobody_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ndd.dump_image(ndd.tensor(IMAGE, layout="HWC"), suffix="unread")
    ndd.flip(ndd.tensor(IMAGE, layout="HWC")).evaluate()
    with ndd.EvalMode.sync_cpu:
        ndd.dump_image(ndd.tensor(IMAGE, layout="HWC"), suffix="last")
    assert (tmp_path / "0-unread-0.ppm").read_text().startswith("P3\n5 4\n255\n0 1 2 ")
    assert (tmp_path / "0-last-0.ppm").exists()
