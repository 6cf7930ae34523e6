"""Checkpoint: the states of readers and RNGs, in memory and in files."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock._errors.messages import describe
from penstock._errors.tracebacks import public
from penstock._runtime.context import EvalContext
from penstock._state import item_states
from penstock._state.numbered_files import Pattern

VERSION = 2
"""The version of the format: `{"version": 2, "states": {name: {"state": ..., "type": ...}}}`.

Files also have a "checksum" of the states, except for those of early versions."""

_ANONYMOUS = "__op_"


@dataclass
class _Entry:
    state: Any
    type: str | None
    """The class of the state's object; None if unknown."""
    pending: bool = False
    """Whether the state has not been applied to its object yet."""


@public
class Checkpoint:
    """The states of readers, RNGs and other stateful objects.

    To save:

        checkpoint = ndd.checkpoint.Checkpoint()
        checkpoint.register(reader, "reader")
        checkpoint.register(rng, "rng")
        for batch in reader.next_epoch(batch_size=64):
            ...
            checkpoint.collect()
            checkpoint.save("ckpt_{seq:04d}.json")

    To resume in another process, create the reader and the RNG again; registering them restores
    their states:

        checkpoint = ndd.checkpoint.Checkpoint()
        checkpoint.load("ckpt_{seq:04d}.json")
        checkpoint.register(reader, "reader")
        checkpoint.register(rng, "rng")

    Any object with `get_state()` and `set_state(state)` can be registered. In a loop over
    `prefetch`, the states of readers and RNGs are those of the current item; so are those of other
    objects that were registered before the loop began.

    Example:
        >>> rng, checkpoint = ndd.random.RNG(1234), ndd.checkpoint.Checkpoint()
        >>> checkpoint.register(rng, "rng")
        'rng'
        >>> checkpoint.collect()
        >>> text = checkpoint.serialize()
        >>> again, loaded = ndd.random.RNG(), ndd.checkpoint.Checkpoint()
        >>> loaded.deserialize(text)
        >>> loaded.register(again, "rng")
        'rng'
        >>> again() == rng()
        True
    """

    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}
        self._entries: dict[str, _Entry] = {}
        self._complete = False
        self._loaded = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all registered objects."""
        return tuple(self._objects)

    @property
    def is_complete(self) -> bool:
        """Whether the states have been collected."""
        return self._complete

    @property
    def is_loaded(self) -> bool:
        """Whether the states were loaded from a file or a string."""
        return self._loaded

    def __contains__(self, name: object) -> bool:
        return name in self._objects

    def __len__(self) -> int:
        return len(self._objects)

    def __bool__(self) -> bool:
        return bool(self._objects)

    def __repr__(self) -> str:
        state = "complete" if self._complete else "loaded" if self._loaded else "not collected"
        return f"Checkpoint({', '.join(map(repr, self._objects)) or 'nothing registered'}; {state})"

    def register(self, op: Any, name: str | None = None) -> str:
        """Register an object; if a state was loaded for it, apply it.

        A reader accepts a state only before its first iteration, so register it before that.

        Args:
            op: A reader, an RNG, or another object with `get_state()` and `set_state(state)`.
            name: The object's name in the checkpoint. Another object of that name is replaced.
                Objects without a name are identified by the order in which they are registered.

        Returns:
            The name.
        """
        key = self._key(op, name)
        _require_state(op)
        existing = self._objects.get(key)
        if existing is None:
            if self._complete:
                raise RuntimeError(
                    f"Checkpoint: {key!r} can't be registered: the states have already been "
                    "collected. Register all objects before collect(), or start over with clear()."
                )
            if self._loaded and key not in self._entries:
                raise KeyError(self._no_state(key))
        elif type(existing) is not type(op):
            raise TypeError(
                f"Checkpoint: {key!r} is a {_kind(existing)}; it can't be replaced by a "
                f"{_kind(op)}. Register the new object under another name, or start over with "
                "clear()."
            )
        entry = self._entries.get(key)
        if entry is not None and entry.pending:
            _check_type(key, entry, op)
            _apply(entry, op)
        self._objects[key] = op
        item_states.watch(op)
        return key

    def collect(self) -> None:
        """Collect the states of all registered objects."""
        self._refuse_orphans("collect")
        entries = {
            key: _Entry(_state_of(op), type(op).__name__) for key, op in self._objects.items()
        }
        self._entries = entries
        self._complete = True
        self._loaded = False

    def restore(self) -> None:
        """Apply the loaded states to all registered objects.

        Registering an object does this for the object alone; use this for objects that were
        registered before the states were loaded.
        """
        if not self._entries:
            return
        self._refuse_orphans("restore")
        self._refuse_missing(self._entries)
        pending = [
            (key, entry, self._objects[key])
            for key, entry in self._entries.items()
            if entry.pending
        ]
        for key, entry, op in pending:
            _check_type(key, entry, op)
        for _, entry, op in pending:
            _apply(entry, op)

    def clear(self) -> None:
        """Forget all objects and states."""
        self._objects.clear()
        self._entries.clear()
        self._complete = self._loaded = False

    def get_state(self, name: str) -> Any:
        """The state of a registered object in this checkpoint, or None.

        It is what the object's `get_state` returned, or that as a string if it was loaded.
        """
        if name not in self._objects:
            raise KeyError(self._unknown(name))
        entry = self._entries.get(name)
        return None if entry is None else entry.state

    def set_state(self, name: str, value: Any, op_type: type | str | None = None) -> None:
        """Set a state explicitly, to be applied by `register` or `restore`.

        Args:
            name: The name of an object that is registered or will be.
            value: An argument for the object's `set_state`.
            op_type: The object's class or its name, checked when the state is applied.
        """
        if isinstance(op_type, type):
            op_type = op_type.__name__
        if op_type is not None and not isinstance(op_type, str):
            raise TypeError(
                f"Checkpoint: `op_type` must be a class or its name, got {describe(op_type)}."
            )
        if self._complete and name not in self._objects:
            raise KeyError(self._unknown(name))
        self._entries[name] = _Entry(value, op_type, pending=True)

    def serialize(self) -> str:
        """All states as a string."""
        return json.dumps(self._as_dict())

    def deserialize(self, data: str | bytes) -> None:
        """Load states from the result of `serialize`, replacing all current ones.

        They are applied to objects when these are registered, or by `restore`.
        """
        if not isinstance(data, (str, bytes, bytearray)):
            raise TypeError(
                f"Checkpoint: expected the result of serialize(), got {describe(data)}."
            )
        self._take(_parse(data))

    def save(self, filename: str | os.PathLike[str]) -> str:
        """Write all states to a new file.

        The file is written atomically: it is complete or absent, even if the process is killed or
        the machine fails. (A killed process may leave a hidden file that ends in ".tmp".)

        Args:
            filename: The path with a field `{seq}`, such as "ckpt_{seq:04d}.json", for the number
                of the file: one more than the highest existing one, starting from 0.

        Returns:
            The path of the file.
        """
        content = self._as_dict()
        content["checksum"] = _checksum(content["states"])
        return Pattern(filename).write_next(json.dumps(content))

    def load(self, filename: str | os.PathLike[str]) -> str:
        """Load the states of the newest file, the one with the highest number.

        They are applied to objects when these are registered, or by `restore`.

        Args:
            filename: The path that was passed to `save`.

        Returns:
            The path of the file.
        """
        pattern = Pattern(filename)
        files = [path for _, path in pattern.find() if not os.path.isdir(path)]
        if not files:
            raise FileNotFoundError(
                f"There is no checkpoint {pattern.text!r}, with a number for `{{seq}}`, in the "
                f"directory {os.path.abspath(pattern.folder)!r}."
            )
        newest = files[-1]
        with open(newest, "rb") as file:
            data = file.read()
        try:
            entries = _parse(data, is_file=True)
        except ValueError as error:
            earlier = f" to resume from {files[-2]!r}" if len(files) > 1 else ""
            raise ValueError(
                f"The checkpoint {newest!r} can't be loaded: {error} Move the file away{earlier}."
            ) from None
        self._take(entries)
        return newest

    def state_dict(self) -> dict[str, Any]:
        """Collect all states into a dictionary that can be stored as JSON."""
        self.collect()
        return self._as_dict() if self._entries else {"version": VERSION, "states": {}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the result of `state_dict` and apply it to all registered objects.

        States of other objects are applied when these are registered. Readers in use start over.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"Checkpoint: load_state_dict takes the result of state_dict(), got "
                f"{describe(state_dict)}."
            )
        entries = _check(dict(state_dict))
        self._refuse_missing(entries)
        ready = [(key, entry, self._objects.get(key)) for key, entry in entries.items()]
        for key, entry, op in ready:
            if op is not None:
                _check_type(key, entry, op)
        self._take(entries)
        for _, entry, op in ready:
            if op is not None:
                _apply(entry, op, in_use=True)

    def _key(self, op: Any, name: str | None) -> str:
        known = next((key for key, other in self._objects.items() if other is op), None)
        if name is None:
            return f"{_ANONYMOUS}{len(self._objects)}" if known is None else known
        if not isinstance(name, str):
            raise TypeError(f"Checkpoint: `name` must be a string, got {describe(name)}.")
        if not name:
            raise ValueError("Checkpoint: `name` must not be empty.")
        if name.startswith(_ANONYMOUS):
            raise ValueError(
                f"Checkpoint: the name {name!r} must not start with '{_ANONYMOUS}', which is "
                "reserved for objects without a name."
            )
        if known is not None and known != name:
            raise RuntimeError(
                f"Checkpoint: this {_kind(op)} is already registered as {known!r}; it can't be "
                f"registered as {name!r} as well."
            )
        return name

    def _take(self, entries: dict[str, _Entry]) -> None:
        self._entries = entries
        self._complete = False
        self._loaded = True

    def _as_dict(self) -> dict[str, Any]:
        if not self._entries:
            raise RuntimeError(
                "Checkpoint: it has no states. Register readers and RNGs, then call collect()."
            )
        return {
            "version": VERSION,
            "states": {
                str(key): {"state": str(entry.state), "type": entry.type}
                for key, entry in self._entries.items()
            },
        }

    def _refuse_orphans(self, doing: str) -> None:
        orphans = [key for key in self._entries if key not in self._objects]
        if orphans:
            raise RuntimeError(
                f"Checkpoint: there are states for {_joined(orphans)}, but no such objects are "
                f"registered. Register them before {doing}(), or drop all states with clear()."
            )

    def _refuse_missing(self, entries: dict[str, _Entry]) -> None:
        missing = [key for key in self._objects if key not in entries]
        if missing:
            raise RuntimeError(
                f"Checkpoint: there are no states for {_joined(missing)}, so not all objects can "
                "be restored. Use a checkpoint without these objects, or collect() and save() one "
                "with all of them."
            )

    def _no_state(self, key: str) -> str:
        known = _joined([*self._entries]) if self._entries else "no states"
        if key.startswith(_ANONYMOUS):
            advice = "Register objects in the same order as when saving, or with names."
        else:
            advice = "Register it under the name it was saved with."
        return f"Checkpoint: there is no loaded state for {key!r}, only for {known}. {advice}"

    def _unknown(self, name: object) -> str:
        known = _joined([*self._objects]) if self._objects else "none"
        return f"Checkpoint: no object is registered as {name!r}; registered: {known}."


def current() -> Checkpoint:
    """The checkpoint of the calling thread's current `EvalContext`."""
    return EvalContext.current().checkpoint


def _parse(data: str | bytes | bytearray, is_file: bool = False) -> dict[str, _Entry]:
    try:
        content = json.loads(data)
    except ValueError as error:
        if not data.strip():
            raise ValueError("It is empty.") from None
        raise ValueError(f"It is not JSON, or damaged: {error}.") from None
    except RecursionError:
        raise ValueError("It is not a checkpoint: too deeply nested.") from None
    entries = _check(content)
    # DALI accepts further keys, but writes none; here one could be a damaged "checksum".
    if is_file and (more := content.keys() - {"version", "states", "checksum"}):
        raise ValueError(f"It is damaged, or not a checkpoint: it has {_joined(sorted(more))}.")
    return entries


def _checksum(states: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(states, sort_keys=True).encode()):08x}"


def _check(content: Any) -> dict[str, _Entry]:
    if not isinstance(content, dict) or "version" not in content:
        raise ValueError('It is not a checkpoint: it has no "version".')
    version = content["version"]
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"Its format version is {version!r}, but only version {VERSION} is supported."
        )
    states = content.get("states")
    if not isinstance(states, dict):
        raise ValueError('It is not a checkpoint: its "states" are missing or not a dictionary.')
    if "checksum" in content and content["checksum"] != _checksum(states):
        raise ValueError("It is damaged: its checksum does not match its states.")
    entries = {}
    for key, entry in states.items():
        if not isinstance(entry, dict) or "state" not in entry:
            raise ValueError(f'Its entry {key!r} is malformed: it has no "state".')
        kind = entry.get("type")
        if kind is not None and not isinstance(kind, str):
            raise ValueError(
                f'Its entry {key!r} is malformed: the "type" must be a string or null.'
            )
        entries[key] = _Entry(entry["state"], kind, pending=True)
    return entries


def _state_of(op: Any) -> Any:
    # Readers and RNGs do this in `get_state`.
    found = None if isinstance(op, item_states.Stateful) else item_states.visible_state(op)
    return op.get_state() if found is None else found


def _apply(entry: _Entry, op: Any, in_use: bool = False) -> None:
    # As in DALI, a reader in use refuses `set_state`; loading a state dict makes it start over.
    started_over = in_use and isinstance(op, item_states.Stateful)
    load = getattr(op, "_start_over_at", op.set_state) if started_over else op.set_state
    load(entry.state)
    entry.pending = False


def _check_type(key: str, entry: _Entry, op: Any) -> None:
    if entry.type is not None and entry.type != _kind(op):
        raise TypeError(
            f"Checkpoint: the state of {key!r} belongs to a {entry.type}, but the object is a "
            f"{_kind(op)}. Register each object under the name it was saved with."
        )


def _require_state(op: Any) -> None:
    if not callable(getattr(op, "get_state", None)) or not callable(getattr(op, "set_state", None)):
        raise TypeError(
            "Checkpoint: only objects with get_state() and set_state() can be registered, such as "
            f"readers and RNGs, got {describe(op)}."
        )


def _kind(op: object) -> str:
    return type(op).__name__


def _joined(names: list[str]) -> str:
    return ", ".join(map(repr, names))
