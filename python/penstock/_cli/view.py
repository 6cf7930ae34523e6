"""`penstock view`: a local web page of a data set and of augmentations."""

from __future__ import annotations

import argparse
import os
import webbrowser

from penstock._cli.files import images
from penstock._cli.terminal import Problem, count, first_line

HELP = "Show the images of a folder, and augmentations of them, in the browser (this machine only)."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("path", metavar="DIR", help="a folder of images")
    parser.add_argument("--port", type=int, default=0, help="default: any that is free")
    parser.add_argument("--no-open", action="store_true", help="don't open the browser")
    parser.add_argument(
        "--augment",
        metavar="FILE.py:FUNCTION",
        help="also show your own augmentation: a function of a batch of images",
    )


def run(given: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    files = images(given.path)
    root = os.path.realpath(given.path)
    # What links lead to is not in the folder.
    inside = [file.path for file in files if _is_inside(file.path, root)]
    if not inside:
        raise Problem(f"the folder has no images, only links to other folders: {given.path}")
    # Loaded after the checks, which are quick.
    from penstock._viewer.augmentations import AUGMENTATIONS, load
    from penstock._viewer.server import Server

    augmentations = dict(AUGMENTATIONS)
    if given.augment is not None:
        try:
            name, function = load(given.augment)
        except Exception as error:
            raise Problem(f"--augment {given.augment}: {first_line(error)}") from None
        augmentations = {name: function, **augmentations}
    if not 0 <= given.port < 65536:
        raise Problem(f"--port must be from 0 to 65535, got {given.port}")
    server = Server(given.path, inside, augmentations, given.port)
    print(f"{count(len(inside), 'image')}: {server.url} (Ctrl-C ends it)", flush=True)
    if not given.no_open:
        webbrowser.open(server.url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0


def _is_inside(path: str, root: str) -> bool:
    return os.path.commonpath([os.path.realpath(path), root]) == root
