"""An import that was interrupted, as by Ctrl-C, is made again as a whole."""

import subprocess
import sys

PROGRAM = """
import sys
import penstock as ndd

def stop(frame, event, argument):
    # In the middle of the module, after its first class.
    if frame.f_code.co_name == "Samples":
        sys.settrace(None)
        raise KeyboardInterrupt
    return None

sys.settrace(stop)
try:
    ndd.ones(shape=[1], batch_size=2)
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    pass
reader = ndd.readers.File(files=[sys.argv[1]])
[(files, labels)] = reader.next_epoch(batch_size=1)
print([sample.shape for sample in files])
"""


def test_values_work_after_their_import_was_interrupted(tmp_path):
    (tmp_path / "data").write_bytes(b"12")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "data")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[(2,)]"
