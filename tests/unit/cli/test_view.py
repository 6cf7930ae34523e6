"""`penstock view`: the server, and the page in a real browser where there is one."""

from __future__ import annotations

import http.client
import io
import json
import os
import shutil
import subprocess
import threading
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from tests.images import encoded, photograph

from penstock._cli import main, view
from penstock._viewer.augmentations import AUGMENTATIONS, load
from penstock._viewer.server import Server

COUNT = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("view") / "mit Leerzeichen é"
    for number in range(COUNT):
        group = root / f"class{number % 2}"
        group.mkdir(parents=True, exist_ok=True)
        picture = encoded(photograph(64, 80, seed=number), "PNG")
        (group / f"{number:02d}.png").write_bytes(picture.tobytes())
    (root.parent / "secret.png").write_bytes(encoded(photograph(64, 64), "PNG").tobytes())
    return root


@pytest.fixture(scope="module")
def server(folder):
    files = sorted(str(path) for path in folder.rglob("*.png"))
    broken = folder.parent / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    made = Server(str(folder), [*files, str(broken)], AUGMENTATIONS)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def ask(server: Server, path: str, host: str | None = None) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type") or "", answer.read()
    finally:
        connection.close()


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)))


def test_only_this_machine_can_connect(server):
    assert server.server_address[0] == "127.0.0.1"


def test_page_and_listing(server):
    status, kind, body = ask(server, "/")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert b"penstock view" in body
    listing = json.loads(ask(server, "/list?start=24")[2])
    assert listing["total"] == COUNT + 1
    assert len(listing["images"]) == COUNT + 1 - 24
    assert listing["images"][0]["class"] == "class1"
    assert listing["augmentations"] == list(AUGMENTATIONS)


def test_images_are_shown_as_they_are(server):
    status, kind, body = ask(server, "/image?number=0")
    assert (status, kind) == (200, "image/png")
    assert np.array_equal(pixels(body), photograph(64, 80, seed=0))


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentations_depend_on_the_seed_alone(server, name):
    query = f"/image?number=1&augmentation={name}&seed="
    first, again, other = (ask(server, query + seed)[2] for seed in ("5", "5", "6"))
    assert np.array_equal(pixels(first), pixels(again))
    # A coin may show the same side twice.
    assert name == "flip" or pixels(first).tobytes() != pixels(other).tobytes()


@pytest.mark.parametrize(
    "path",
    [
        "/secret.png",
        "/../secret.png",
        "/image?number=" + quote("../secret.png"),
        f"/image?number={COUNT + 1}",
        "/image?number=-1",
        "/image?number=1e0",
        "/image?number=" + quote("\N{ARABIC-INDIC DIGIT ONE}"),
        "/image?number=" + "9" * 5000,
        "/image?number=0&augmentation=__class__",
        "/list?start=99999999999",
        "/etc/passwd",
    ],
)
def test_nothing_else_is_served(server, path):
    status, _, body = ask(server, path)
    assert (status, body) == (404, b"not found")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.org:80", ""])
def test_other_names_for_this_machine_are_refused(server, host):
    assert ask(server, "/list", host)[0] == 403


def test_images_that_cant_be_decoded_say_why(server):
    status, _, body = ask(server, f"/image?number={COUNT}")
    assert status == 500
    assert b"decoders.image" in body


def test_links_to_files_outside_are_left_out(folder, capsys, monkeypatch):
    link = folder / "link.png"
    link.symlink_to(folder.parent / "secret.png")
    served = []
    monkeypatch.setattr(Server, "serve_forever", lambda self: served.extend(self.files))
    try:
        assert main(["view", str(folder), "--no-open"]) == 0
    finally:
        link.unlink()
    assert len(served) == COUNT
    assert f"{COUNT} images: http://127.0.0.1:" in capsys.readouterr().out


def test_own_augmentations(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def one(images): return ('one', images)\ndef two(images, rng): return rng\n")
    assert load(f"{file}:one")[1](3, None) == ("one", 3)
    assert load(f"{file}:two")[1](3, 4) == 4
    for place, words in [
        (f"{file}:three", "no function `three`"),
        (str(tmp_path / "no.py") + ":f", "no such file"),
        ("own", "give a file and a function"),
    ]:
        with pytest.raises(ValueError, match=words):
            load(place)


def test_bad_arguments(folder, capsys):
    assert main(["view", str(folder), "--port", "70000"]) == 2
    assert "--port" in capsys.readouterr().err
    assert main(["view", str(folder), "--augment", "nowhere.py:f"]) == 2
    assert "no such file: nowhere.py" in capsys.readouterr().err
    assert view._is_inside(str(folder / "class0"), str(folder))
    assert not view._is_inside("/etc", str(folder))


def test_page_in_a_browser(server, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("neither chromium nor google-chrome is installed")
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000"),
        *(f"--user-data-dir={tmp_path}", "--dump-dom", server.url),
    ]
    env = {**os.environ, "HOME": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, env=env)
    page = ran.stdout
    assert page.count("<figure>") == 24
    assert 'data-ready="yes"' in page
    assert "1 to 24 of 31" in page
    assert "class0/00.png" in page
    assert page.count("<option") == 1 + len(AUGMENTATIONS)
