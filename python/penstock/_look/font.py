"""A small fixed-width font for captions in picture files."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

WIDTH = 6
HEIGHT = 9
"""The size of a character in pixels, with the space around it."""

# Seven rows of five pixels per glyph, each row a number from 0 to 31 written in base 32.
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_GLYPHS = {
    " ": "0000000", "!": "4444404", '"': "aa00000", "#": "aavavaa", "$": "4fke5u4",
    "%": "oq248bj", "&": "8k8liid", "'": "4400000", "(": "2488842", ")": "8422248",
    "*": "0aevea0", "+": "044v440", ",": "0000448", "-": "000v000", ".": "0000066",
    "/": "01248g0", "0": "ehjlphe", "1": "4c4444e", "2": "eh1248v", "3": "v1261he",
    "4": "26aiv22", "5": "vgu11he", "6": "68guhhe", "7": "v124888", "8": "ehhehhe",
    "9": "ehhf12c", ":": "0660660", ";": "0660448", "<": "1248421", "=": "00v0v00",
    ">": "g84248g", "?": "eh12404", "@": "ehlnmge", "A": "ehhvhhh", "B": "uhhuhhu",
    "C": "ehggghe", "D": "uhhhhhu", "E": "vgguggv", "F": "vgguggg", "G": "ehgjhhf",
    "H": "hhhvhhh", "I": "e44444e", "J": "72222ic", "K": "hikokih", "L": "ggggggv",
    "M": "hrllhhh", "N": "hhpljhh", "O": "ehhhhhe", "P": "uhhuggg", "Q": "ehhhlid",
    "R": "uhhukih", "S": "fgge11u", "T": "v444444", "U": "hhhhhhe", "V": "hhhhha4",
    "W": "hhhllla", "X": "hha4ahh", "Y": "hhha444", "Z": "v1248gv", "[": "e88888e",
    "\\": "0g84210", "]": "e22222e", "^": "4ah0000", "_": "000000v", "`": "8400000",
    "a": "00e1fhf", "b": "ggmphhu", "c": "00egghe", "d": "11djhhf", "e": "00ehvge",
    "f": "698s888", "g": "00fhf1e", "h": "ggmphhh", "i": "40c444e", "j": "20622ic",
    "k": "ggikoki", "l": "c44444e", "m": "00qllll", "n": "00mphhh", "o": "00ehhhe",
    "p": "00uhugg", "q": "00fhf11", "r": "00mpggg", "s": "00fge1u", "t": "88s8896",
    "u": "00hhhjd", "v": "00hhha4", "w": "00hhlla", "x": "00ha4ah", "y": "00hhf1e",
    "z": "00v248v", "{": "2448442", "|": "4444444", "}": "8442448", "~": "008l200",
}  # fmt: skip
_UNKNOWN = "vhhhhhv"


def text(line: str, columns: int) -> Any:
    """A mask of a line of text, at most so many characters wide; the middle is left out if need
    be. Characters that the font lacks are boxes.
    """
    if len(line) > columns:
        head = max(columns - 2, 0) // 2
        line = line[:head] + ".." + line[len(line) - max(columns - 2 - head, 0) :]
        line = line[:columns]
    mask = np.zeros((HEIGHT, WIDTH * len(line)), np.bool_)
    for place, letter in enumerate(line):
        mask[1:8, place * WIDTH : place * WIDTH + 5] = _glyph(letter)
    return mask


@lru_cache(maxsize=256)
def _glyph(letter: str) -> Any:
    rows = [_DIGITS.index(digit) for digit in _GLYPHS.get(letter, _UNKNOWN)]
    return np.array([[row >> (4 - x) & 1 for x in range(5)] for row in rows], np.bool_)
