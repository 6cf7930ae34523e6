"""Exceptions for faults: what the engine reports, worded with operator, sample, file and line."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NoReturn

from penstock._errors.sentences import Problem, sentence
from penstock._operators import call_sites
from penstock.errors import DecodeError, FileError, InternalError, OutOfRangeError

if TYPE_CHECKING:
    from penstock import _core


def raise_fault(fault: _core.Fault) -> NoReturn:
    """Raise the exception for a fault. Its text shows the line of the call."""
    raise exception(fault)


def exception(fault: _core.Fault, *, tolerated: bool = False) -> BaseException:
    """The exception for a fault.

    Args:
        fault: What the engine reports.
        tolerated: Whether the reader already skips or replaces such samples, so that a hint to
            set `on_error` would be pointless.
    """
    kind, *details = fault.cause
    if kind == "file":
        return _file(fault, *details, tolerated=tolerated)
    error: BaseException = _KINDS[kind](fault, *details)
    return error


def reason(fault: _core.Fault) -> str:
    """What went wrong, without the location."""
    detail = fault.cause[-1]
    return sentence(detail) if isinstance(detail, tuple) else str(detail)


def _argument(fault: _core.Fault, name: str, problem: Problem) -> Exception:
    return RuntimeError(_located(fault, f"`{name}` {sentence(problem)}"))


def _input(fault: _core.Fault, index: int, problem: Problem) -> Exception:
    return RuntimeError(_located(fault, sentence(problem)))


def _value(fault: _core.Fault, problem: Problem) -> Exception:
    return ValueError(_located(fault, sentence(problem)))


_DECODE_HINTS = {
    "unknown": "give the bytes of a whole image file, one file per sample.",
    "large": "if the image really is this large, set the environment variable PENSTOCK_MAX_PIXELS "
    "to a higher limit before decoding the first image.",
    "truncated": "the file is truncated; the other samples of the batch are still available.",
    "broken": "the other samples of the batch are still available.",
}

_AUDIO_HINTS = {
    **_DECODE_HINTS,
    "unknown": "give the bytes of a whole audio file, one file per sample.",
    "large": "the limit protects from files that claim to be much longer than they are.",
}

_VIDEO_HINTS = {
    **_DECODE_HINTS,
    "unknown": "give the bytes of a whole video file, one file per sample.",
    "large": "the environment variable PENSTOCK_MAX_PIXELS, at 16 bytes per pixel, changes limits.",
}


def _hints(operator: str) -> dict[str, str]:
    if "audio" in operator:
        return _AUDIO_HINTS
    return _VIDEO_HINTS if "video" in operator.lower() else _DECODE_HINTS


def _undecodable(fault: _core.Fault, kind: str, problem: Problem) -> Exception:
    hint = _hints(fault.operator)[kind]
    able = ("decoders.image", "decoders.audio", "decoders.video")
    if fault.operator.startswith(able) and kind != "large":
        hint += f' `{fault.operator}(..., on_error="skip")` drops samples like this one.'
    return DecodeError(_located(fault, sentence(problem), hint=hint))


def _index(fault: _core.Fault, axis: int, index: int, extent: int) -> Exception:
    text = f"index {index} is out of range for axis {axis} of length {extent}"
    return OutOfRangeError(_located(fault, text))


def _ragged(
    fault: _core.Fault, sample: int, shape: tuple[int, ...], first: tuple[int, ...]
) -> Exception:
    return ValueError(
        _located(
            fault,
            f"the batch has a non-uniform shape: sample {sample} is {shape}, sample 0 is {first}",
            hint="`pad=True` pads the shorter samples.",
        )
    )


def _file(fault: _core.Fault, problem: Problem, *, tolerated: bool = False) -> Exception:
    skips = fault.operator.startswith("readers.") and not tolerated
    hint = "the reader's `on_error` can skip such files." if skips else None
    return FileError(_located(fault, f"the file can't be read: {sentence(problem)}", hint=hint))


def _system(fault: _core.Fault, problem: Problem) -> Exception:
    hint = "the problem is not with this file, so `on_error` does not skip it."
    skips = fault.operator.startswith("readers.")
    return FileError(
        _located(
            fault, f"the file can't be read: {sentence(problem)}", hint=hint if skips else None
        )
    )


def _memory(fault: _core.Fault, size: int) -> Exception:
    return MemoryError(_located(fault, f"out of memory: could not allocate {size} bytes"))


def _forked(fault: _core.Fault) -> Exception:
    return RuntimeError(
        "This value was still being computed when the process forked, so it is only available in "
        "the parent process. Read values before forking, or compute them in the child."
    )


def _stopped(fault: _core.Fault) -> Exception:
    return RuntimeError(
        _located(fault, "the interpreter is shutting down, so the work was not started")
    )


def _threads(fault: _core.Fault) -> Exception:
    return RuntimeError(
        _located(
            fault,
            "no thread is free to run this: all of them run functions that wait for other work",
            hint="have fewer functions wait for each other, or raise the limit on threads "
            "(`ulimit -u`).",
        )
    )


def warn_of_refused_threads() -> None:
    """Warn, once per line that waits, that the system refuses to start worker threads."""
    call_sites.warn(
        "The system refuses to start more threads, so the work runs on fewer of them, or on the "
        "thread that waits for it. Request fewer with `set_num_threads` or the environment "
        "variable PENSTOCK_NUM_THREADS, or raise the limits (`ulimit -u`, `ulimit -v`, or the "
        "container's limit on processes).",
        RuntimeWarning,
    )


def _python(fault: _core.Fault, error: BaseException) -> BaseException:
    # A copy: a raised exception keeps the frames it passes through alive, and those may hold the
    # value that holds the fault.
    try:
        fresh = copy.copy(error)
    except Exception:
        return error
    if type(fresh) is not type(error):
        return error
    fresh.__cause__, fresh.__context__ = error.__cause__, error.__context__
    fresh.__suppress_context__ = error.__suppress_context__
    return fresh.with_traceback(error.__traceback__)


def _internal(fault: _core.Fault, text: str) -> Exception:
    return InternalError(_located(fault, text, hint="this is a bug in penstock; please report it."))


_KINDS: dict[str, Any] = {
    "argument": _argument,
    "input": _input,
    "value": _value,
    "undecodable": _undecodable,
    "index": _index,
    "ragged": _ragged,
    "file": _file,
    "system": _system,
    "memory": _memory,
    "forked": _forked,
    "stopped": _stopped,
    "threads": _threads,
    "python": _python,
    "internal": _internal,
}


def _located(fault: _core.Fault, problem: str, hint: str | None = None) -> str:
    sample = "" if fault.sample is None else f"sample {fault.sample}: "
    lines = [f"{fault.operator}: {sample}{problem}."]
    if fault.source is not None:
        lines.append(f"file: {fault.source}")
    for site in call_sites.find(fault.site):
        if site is call_sites.FOLDED:
            lines.append("...")
            continue
        text = site.text()
        lines.append(f"at {site.file}:{site.line}" + (f": {text}" if text else ""))
    if hint is not None:
        lines.append(f"hint: {hint}")
    return "\n  ".join(lines)
