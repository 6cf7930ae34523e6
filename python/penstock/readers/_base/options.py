"""The arguments that all readers share: what they mean, which values they take, what they default
to. One place, so that no format has to name them, and all refuse the same things in the same words.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex, TypedDict, TypeVar

from penstock._errors import bad_samples, messages
from penstock._operators import call_sites
from penstock._state.rng import get_default_rng
from penstock._values.conversion import LARGEST_BATCH
from penstock.errors import ArgumentError
from penstock.readers._base import order, remote
from penstock.readers._base.order import MOST_TURNS, POLICIES, SHUFFLES, Plan
from penstock.readers._base.remote import Storage

GLOBAL_SEED = 0
"""Of `shuffle_after_epoch`, where none is given: all shards must have the same."""

NO_LIMIT = 2**62

Default = TypeVar("Default", str, None)


class Common(TypedDict, total=False):
    """The arguments of all readers.

    Args:
        cache_bytes: How many bytes `cache_dir` may take. Without a `cache_dir`, how much memory
            the reader may use for blocks of files that are named by URLs (256 MiB by default).
        cache_dir: A local folder for files that are named by URLs, so that they are fetched once.
            Several processes may share it.
        dont_use_mmap: Without effect: files are always read, never mapped.
        enable_checkpointing: Without effect: the state can always be taken.
        initial_fill: How many samples the buffer of `random_shuffle` holds, or a window of
            `shuffle="groups"`.
        last_batch: What becomes of the last batch of an epoch, where the samples don't fill it:
            "wrap" fills it with samples of the next epoch, which begins after those; "pad" repeats
            the last sample, as `pad_last_batch=True`; "partial" makes it smaller; "drop" leaves it
            out. With "wrap", "pad" and "drop" all shards have equally many batches, as training in
            several processes requires. By default as "wrap", except that shards of different sizes
            may differ by a batch, as in DALI.
        lazy_init: Open the data set at the first use.
        max_errors: How many samples of an epoch may be bad before that is an error.
        num_shards: Into how many shards the data set is divided, one for each reader.
        on_error: What becomes of samples that can't be read. "raise" (default): an error, when the
            batch is used. "skip": they are left out, so that the batch is smaller, and a batch
            without any good one is left out itself. "substitute": the next sample that can be
            read stands in. `errors` lists them. In any case they count as given: lengths of
            epochs and positions in checkpoints don't depend on which files are bad, so that
            shards stay in step, and another run goes on at the same sample. Where a file of many
            samples is missing or damaged, what can't be read of it is one bad sample; with
            "raise" it is an error when the reader opens it.
        pad_last_batch: Fill the last batch by repeating the last sample, and shards that are
            smaller than others, too.
        prefetch_queue_depth: How many batches are read ahead.
        random_shuffle: Shuffle, by a buffer of `initial_fill` samples.
        read_ahead: Without effect: reading ahead is what `prefetch_queue_depth` says.
        seed: What the order is made of, in readers that shuffle. By default it comes from the
            thread's default RNG.
        shard_id: Which of the shards this reader has.
        shuffle: "buffer" as `random_shuffle`; "global" for the whole data set in a new order with
            each epoch, without a buffer, from which each shard takes its part. All shards must
            then be given the same `seed` (or none). "groups" for formats with groups of samples
            that are best read together, such as the row groups of Parquet: groups come in a new
            order with each epoch, each shard takes its part of them, and samples are shuffled
            in windows of `initial_fill`. Of more than 10 million samples, the order
            is computed without a buffer and without memory, in all cases.
        shuffle_after_epoch: As `shuffle="global"`, with a seed that is not `seed`.
        shuffle_after_epoch_seed: The seed of `shuffle_after_epoch`, which all shards must share.
        skip_cached_images: Without effect.
        stick_to_shard: Stay with the shard; by default a reader goes on to the next shard with
            each epoch.
        storage_options: Options for files that are named by URLs, such as credentials and the
            address of the server, by name. By default they come from the environment.
        tensor_init_bytes: Without effect: memory is taken as it is needed.
    """

    cache_bytes: int | None
    cache_dir: str | os.PathLike[str] | None
    dont_use_mmap: bool | None
    enable_checkpointing: bool
    initial_fill: int | None
    last_batch: Literal["wrap", "pad", "partial", "drop"] | None
    lazy_init: bool | None
    max_errors: int | None
    num_shards: int | None
    on_error: Literal["raise", "skip", "substitute"] | None
    pad_last_batch: bool | None
    prefetch_queue_depth: int | None
    random_shuffle: bool | None
    read_ahead: bool | None
    seed: int | None
    shard_id: int | None
    shuffle: Literal["buffer", "global", "groups"] | None
    shuffle_after_epoch: bool | None
    shuffle_after_epoch_seed: int | None
    skip_cached_images: bool | None
    stick_to_shard: bool | None
    storage_options: Mapping[str, Any] | None
    tensor_init_bytes: int | None


@dataclass(frozen=True)
class Options:
    """The arguments of `Common`, checked, without those that have no effect.

    Args:
        num_shards: Into how many shards the data set is divided.
        shard_id: Which of them the reader has.
        stick: Whether it stays with it.
        shuffle: One of `order.SHUFFLES`, or None.
        seed: What the order is made of.
        fill: How many samples the buffer of the shuffle holds.
        last_batch: One of `order.POLICIES`.
        is_even: See `order.Plan`.
        depth: How many batches are read ahead.
        on_error: One of `bad_samples.ON_ERROR`.
        max_errors: How many samples of an epoch may be bad.
        is_lazy: Whether the data set is opened at the first use.
        storage: What is said about files that are named by URLs.
    """

    num_shards: int
    shard_id: int
    stick: bool
    shuffle: str | None
    seed: int
    fill: int
    last_batch: str
    is_even: bool
    depth: int
    on_error: str
    max_errors: int
    is_lazy: bool
    storage: Storage | None = None

    @classmethod
    def checked(cls, what: str, common: Mapping[str, Any]) -> Options:
        """The options that a user has given; raises where they can't be."""
        given = _Given(what, common)
        num_shards = given.number("num_shards", 1)
        shard_id = given.number("shard_id", 0)
        if num_shards < 1:
            raise given.bad("num_shards", f"must be a positive integer, got {num_shards}")
        if not 0 <= shard_id < num_shards:
            raise given.bad("shard_id", f"must be from 0 to {num_shards - 1}, got {shard_id}")
        given.number("tensor_init_bytes", 0, least=0)
        stick = bool(given.get("stick_to_shard"))
        shuffle = _shuffle(given, stick)
        return cls(
            num_shards=num_shards,
            shard_id=shard_id,
            stick=stick,
            shuffle=shuffle,
            fill=given.number("initial_fill", 1024, least=1),
            last_batch=_last_batch(given),
            is_even=given.get("last_batch") in ("wrap", "drop"),
            depth=given.number("prefetch_queue_depth", 1, least=1),
            on_error=given.one_of("on_error", "raise", bad_samples.ON_ERROR),
            max_errors=given.number("max_errors", NO_LIMIT, least=0),
            is_lazy=bool(given.get("lazy_init")),
            storage=remote.checked(
                what,
                given.get("storage_options"),
                given.get("cache_dir"),
                given.get("cache_bytes"),
            ),
            seed=_seed(given, shuffle),  # last: it may be drawn
        )

    def plan(self, size: int) -> Plan:
        """What the order of so many samples depends on."""
        shuffle = self.shuffle
        if shuffle in order.PERMUTED and size > order.LARGEST_SHUFFLE:
            shuffle = order.PERMUTED[shuffle]
        return Plan(
            size=size,
            num_shards=self.num_shards,
            stick=self.stick,
            shuffle=shuffle,
            fill=self.fill,
            seed=self.seed,
            last_batch=self.last_batch,
            is_even=self.is_even,
        )


class _Given:
    """The arguments that are not None, and the errors that are about them."""

    def __init__(self, what: str, common: Mapping[str, Any]) -> None:
        self.what = what
        self._values = {key: value for key, value in common.items() if value is not None}

    def get(self, key: str) -> Any:
        return self._values.get(key)

    def number(self, key: str, default: int, least: int | None = None) -> int:
        value = self._values.get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        try:
            number = operator.index(value)
        except TypeError:
            raise messages.wrong_argument(self.what, key, value, "a whole number") from None
        if least is not None and number < least:
            raise self.bad(key, f"must be at least {least}, got {number}")
        if not -(2**63) <= number < 2**64:
            raise self.bad(key, f"must be a number of up to 64 bits, got {number}")
        return number

    def one_of(self, key: str, default: Default, known: Sequence[str]) -> str | Default:
        value = self._values.get(key)
        if value is None:
            return default
        if value not in known:
            names = ", ".join(map(repr, known))
            raise self.bad(key, f"must be one of {names}, got {value!r}")
        return str(value)

    def bad(self, key: str, problem: str) -> ArgumentError:
        return messages.bad_argument(self.what, key, problem)


def _last_batch(given: _Given) -> str:
    pad = given.get("pad_last_batch")
    policy = given.one_of("last_batch", "pad" if pad else "wrap", POLICIES)
    if pad is not None and bool(pad) != (policy == "pad"):
        raise ValueError(
            f"{given.what}: `last_batch={policy!r}` and `pad_last_batch={pad}` contradict each "
            "other; give one of them."
        )
    return policy


def _shuffle(given: _Given, stick: bool) -> str | None:
    ways = ("random_shuffle", "shuffle_after_epoch", "shuffle")
    chosen = [key for key in ways if given.get(key)]
    named = given.one_of("shuffle", None, SHUFFLES)
    if len(chosen) > 1:
        raise RuntimeError(
            f"{given.what}: `{chosen[0]}` and `{chosen[1]}` are two ways to shuffle; give one."
        )
    after_epoch = given.get("shuffle_after_epoch")
    if after_epoch and stick:
        raise RuntimeError(
            f"{given.what}: `shuffle_after_epoch` and `stick_to_shard` can't be both true: a "
            "shard of a data set in a new order is another one with each epoch."
        )
    if given.get("shuffle_after_epoch_seed") is not None and not after_epoch:
        call_sites.warn(
            f"{given.what}: `shuffle_after_epoch_seed` has no effect without "
            "`shuffle_after_epoch=True`."
        )
    return "global" if after_epoch else "buffer" if given.get("random_shuffle") else named


def _seed(given: _Given, shuffle: str | None) -> int:
    seed = given.number("seed", -1)
    if given.get("shuffle_after_epoch"):
        return given.number("shuffle_after_epoch_seed", GLOBAL_SEED)
    if shuffle in ("global", "groups"):
        return GLOBAL_SEED if seed < 0 else seed
    if shuffle == "buffer":
        if seed < 0:
            rng = get_default_rng()
            seed = rng() << 32 | rng()
        return seed
    return 0


def checked_batch_size(what: str, size: SupportsIndex, key: str) -> int:
    """The size of a batch, which users may give as any whole number."""
    try:
        if isinstance(size, bool):
            raise TypeError
        number = operator.index(size)
    except TypeError:
        raise messages.wrong_argument(what, key, size, "a positive integer") from None
    if not 0 < number <= LARGEST_BATCH:
        problem = f"must be a positive integer, at most {LARGEST_BATCH}, got {number}"
        raise messages.bad_argument(what, key, problem)
    return number


def checked_epoch(what: str, epoch: SupportsIndex) -> int:
    """The number of an epoch, which users may give as any whole number."""
    try:
        if isinstance(epoch, bool):
            raise TypeError
        number = operator.index(epoch)
    except TypeError:
        raise messages.wrong_argument(what, "epoch", epoch, "a whole number") from None
    if not 0 <= number < MOST_TURNS:
        raise messages.bad_argument(what, "epoch", f"must be from 0 on, below 2**48, got {number}")
    return number


def with_arguments(doc: str | None, others: str | None) -> str:
    """A docstring with the arguments of another one after its own."""
    # Newer Pythons take the indentation away, older ones don't.
    own, _, example = inspect.cleandoc(doc or "").partition("\nExample:\n")
    more = inspect.cleandoc(others or "").partition("Args:\n")[2].rstrip()
    # A class may have been given the docstring of one that has them already.
    own = own.partition(more)[0].rstrip() if more else own.rstrip()
    if "\nArgs:\n" not in f"{own}\n":
        own += "\n\nArgs:"
    return f"{own}\n{more}\n" + (f"\nExample:\n{example}" if example else "")


def with_parameters(init: Callable[..., None], options: type = Common) -> inspect.Signature:
    """The signature of a reader with all of `Common`, or a subclass, which `**` stands for."""
    own = [item for item in inspect.signature(init).parameters.values() if item.name != "self"]
    shown = [item for item in own if item.kind != item.VAR_KEYWORD]
    known = {item.name for item in shown}
    shown += [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None)
        for key in options.__annotations__
        if key not in known
    ]
    return inspect.Signature(shown)
