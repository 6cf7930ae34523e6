"""Whether an installed penstock-remote works. Needs penstock and nothing else."""

import functools
import http.server
import tempfile
import threading
from pathlib import Path

import numpy as np

import penstock as ndd


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


with tempfile.TemporaryDirectory() as folder:
    Path(folder, "a.bin").write_bytes(b"contents")
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/a.bin"
        assert np.asarray(ndd.io.file.read(url)).tobytes() == b"contents"
        server.shutdown()
print("penstock-remote works")
