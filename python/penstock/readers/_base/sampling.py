"""Which samples an epoch has, where weights or a sampler of the user decide that."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from penstock._errors import messages
from penstock.readers._base.rows import Numbers

_MASK = 2**64 - 1
_KEPT = 8
"""How many turns of a sampler are kept, for loops over `prefetch` that go back."""


class Sampling(Protocol):
    """Decides which samples a turn of all shards has."""

    size: int
    """How many they are."""
    is_repeatable: bool
    """Whether a turn can be drawn again, in another process too."""

    def draw(self, seed: int, turn: int) -> Numbers:
        """The samples of a turn, in order."""

    def forget(self) -> None:
        """The reader starts over."""

    def fingerprint(self) -> bytes:
        """Changes when turns would have other samples."""


class Weighted:
    """Draws with replacement, each sample as often as its weight says."""

    is_repeatable = True

    def __init__(self, what: str, weights: Any, count: int) -> None:
        try:
            given = np.asarray(weights, np.float64).reshape(-1)
        except (TypeError, ValueError):
            wanted = "a number for each sample, or a dict with one for each class"
            raise messages.wrong_argument(what, "weights", weights, wanted) from None
        if len(given) != count:
            problem = f"has {len(given)} weights for {count} samples"
            raise messages.bad_argument(what, "weights", problem)
        wrong = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
        if len(wrong):
            problem = (
                f"must be finite and not negative, got {given[wrong[0]]} for sample {wrong[0]}"
            )
            raise messages.bad_argument(what, "weights", problem)
        if not given.any():
            raise messages.bad_argument(what, "weights", "are all zero")
        self.size = count
        self._ends = np.cumsum(given / given.max())
        self._last = int(np.flatnonzero(given)[-1])

    def draw(self, seed: int, turn: int) -> Numbers:
        """The samples of a turn: a function of seed and turn."""
        # Raw bits, which are the same in all versions of NumPy.
        bits = np.random.Philox(key=np.array([seed & _MASK, turn], np.uint64))
        fractions = (bits.random_raw(self.size) >> np.uint64(11)) * 2.0**-53
        drawn = np.searchsorted(self._ends, fractions * self._ends[-1], side="right")
        numbers: Numbers = np.minimum(drawn, self._last).astype(np.int64)
        return numbers

    def forget(self) -> None:
        """Nothing is kept."""

    def fingerprint(self) -> bytes:
        """The weights."""
        return b"weights" + self._ends.tobytes()


class Sampled:
    """Takes the samples that an iterable names, anew for each turn."""

    def __init__(self, what: str, sampler: Any, count: int) -> None:
        if isinstance(sampler, str | bytes) or not isinstance(sampler, Iterable):
            raise messages.wrong_argument(what, "sampler", sampler, "an iterable of indices")
        if iter(sampler) is sampler:
            problem = "is an iterator, which has one epoch only; pass a list, or a sampler"
            raise messages.bad_argument(what, "sampler", problem)
        is_fixed = isinstance(sampler, Sequence | np.ndarray)
        self.is_repeatable = is_fixed or hasattr(sampler, "set_epoch")
        self._what, self._sampler, self._count = what, sampler, count
        self._turns: dict[int, Numbers] = {}
        self._fixed: Numbers | None = None
        first = self._indices(0)
        self.size = len(first)
        if not self.size:
            raise messages.bad_argument(what, "sampler", "has no indices")
        if is_fixed:
            self._fixed = first
        else:
            self._turns[0] = first

    def draw(self, seed: int, turn: int) -> Numbers:
        """The indices of a turn. The seed is the sampler's own matter."""
        if self._fixed is not None:
            return self._fixed
        found = self._turns.get(turn)
        if found is None:
            found = self._indices(turn)
            if len(found) != self.size:
                raise RuntimeError(
                    f"{self._what}: `sampler` must have as many indices in each epoch: it had "
                    f"{self.size} at first, and {len(found)} in epoch {turn}."
                )
            while len(self._turns) >= _KEPT:
                self._turns.pop(next(iter(self._turns)))
            self._turns[turn] = found
        return found

    def forget(self) -> None:
        """Iterate over the sampler again."""
        self._turns.clear()

    def fingerprint(self) -> bytes:
        """The indices if they are fixed, or else how many there are."""
        kept = b"" if self._fixed is None else self._fixed.tobytes()
        return b"sampler %d " % self.size + kept

    def _indices(self, turn: int) -> Numbers:
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(turn)
        given = np.asarray(list(self._sampler))
        if not given.size:
            return np.zeros(0, np.int64)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            problem = "must have whole numbers, one per sample"
            raise messages.bad_argument(self._what, "sampler", problem)
        wrong = given[(given < -self._count) | (given >= self._count)]
        if len(wrong):
            raise IndexError(
                f"{self._what}: `sampler` has the index {wrong[0]}, but there are {self._count} "
                "samples."
            )
        return given.astype(np.int64) % self._count


def mixed(fingerprint: str, sampling: Sampling) -> str:
    """The fingerprint of a data set together with that of how it is sampled."""
    text = fingerprint.encode() + sampling.fingerprint()
    return hashlib.blake2b(text, digest_size=8).hexdigest()
