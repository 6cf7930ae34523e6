"""What users read when something is wrong: every message that is worded in one place."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from penstock._errors.sentences import Problem, sentence
from penstock._operators import call_sites
from penstock.errors import (
    ArgumentError,
    DecodeError,
    FileError,
    InternalError,
    OutOfRangeError,
)

if TYPE_CHECKING:
    from penstock import _core


def describe(value: object) -> str:
    """A value as an error shows it: briefly, and without waiting for a tensor."""
    kind = type(value).__name__
    text = ""
    if not type(value).__module__.startswith("penstock."):
        try:
            text = repr(value)
        except Exception:  # somebody else's `__repr__`
            pass
    return f"{text} ({kind})" if 0 < len(text) <= 60 else f"an object of type {kind}"


# At a call


def unknown_argument(operator: str, unknown: Iterable[str], known: Sequence[str]) -> TypeError:
    """A keyword that the operator doesn't have."""
    name = next(iter(unknown))
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(known)}."
    return TypeError(f"{operator}() got an unexpected keyword argument '{name}'; {hint}")


_USUAL = (
    *("angle", "range", "size", "crop", "shape", "horizontal", "matrix", "dtype"),
    *("axes", "axis", "perm"),
)
"""Arguments that other libraries take by position."""


def surplus_input(
    operator: str, inputs: int, surplus: Sequence[object], known: Sequence[str]
) -> TypeError:
    """An argument by position, where only inputs are given so."""
    text = (
        f"{operator}() takes {inputs} positional argument{'s' * (inputs != 1)} but "
        f"{inputs + len(surplus)} were given"
    )
    usual = [name for name in _USUAL if name in known]
    own = [name for name in known if name not in ("batch_size", "device")]
    if own:
        given = describe(surplus[0])
        text += f"; give {given} by its name, such as `{(usual or own)[0]}=`"
    return TypeError(text + ".")


def unknown_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """A name that a module doesn't have."""
    near = difflib.get_close_matches(name, [*known], n=1)
    hint = _PIPELINES.get(name, f"; did you mean '{near[0]}'?" if near else "")
    return AttributeError(f"module '{module}' has no attribute '{name}'{hint}")


_PIPELINES = dict.fromkeys(
    ("fn", "ops", "pipeline", "pipeline_def", "Pipeline"),
    ": there are no pipelines here, operators are called directly, such as "
    "`resize(images, size=[224, 224])`.",
)


def missing_input(operator: str, name: str) -> TypeError:
    """None, or nothing, where data is needed."""
    return TypeError(
        f"{operator}() missing 1 required positional argument: '{name}'; it needs a Tensor, a "
        "Batch or an array, got None."
    )


def missing_argument(operator: str, name: str) -> TypeError:
    """A required keyword that was not given, or given as None."""
    return TypeError(f"{operator}() missing 1 required keyword-only argument: '{name}'")


def wrong_argument(operator: str, name: str, value: object, wanted: str) -> TypeError:
    """An argument of a type that can't be used."""
    return TypeError(f"{operator}: `{name}` must be {wanted}, got {describe(value)}.")


def argument_overflow(operator: str, name: str, value: object, wanted: str) -> Exception:
    """A number that can't be the argument: too large, or not a number at all."""
    kind = ValueError if isinstance(value, float) and value != value else OverflowError
    return kind(f"{operator}: `{name}` must be {wanted} of up to 64 bits, got {describe(value)}.")


def told_by(operator: str, error: Exception, name: str | None = None) -> Exception:
    """What was said of data or of an argument, by the operator that was called with it."""
    if type(error) not in (TypeError, ValueError):
        return error
    which = "" if name is None else f"`{name}`: "
    return type(error)(f"{operator}: {which}{error}")


def bad_argument(operator: str, name: str, problem: str) -> ArgumentError:
    """An argument whose value can't be used."""
    return ArgumentError(f"{operator}: `{name}` {problem}.")


def bad_input(operator: str, problem: str) -> ArgumentError:
    """An input that can't be used."""
    return ArgumentError(f"{operator}: {problem}.")


def out_of_range(operator: str, name: str, limits: str, value: float) -> ArgumentError:
    """A number beyond its limits."""
    return bad_argument(operator, name, f"must be {limits}, got {value}")


def not_one_of(operator: str, name: str, choices: Sequence[str], value: object) -> ArgumentError:
    """Something else than one of a few choices."""
    *others, last = choices
    listed = f"{', '.join(others)} or {last}" if others else last
    given = f'"{value}"' if isinstance(value, str) else value
    return bad_argument(operator, name, f"must be {listed}, got {given}")


def wrong_elements(operator: str, name: str, wanted: str, dtype: object) -> ArgumentError:
    """An input whose elements have a type that the operator doesn't take."""
    return bad_argument(operator, name, f"must be of {wanted}, got {dtype}")


def wrong_type(operator: str, name: str, wanted: str, dtype: object) -> ArgumentError:
    """An element type for the result that the operator can't make."""
    return bad_argument(operator, name, f"must be a type of {wanted}, got {dtype}")


def dimensions(least: int, most: int | None) -> str:
    """How many dimensions something has."""
    if most is None:
        return f"at least {least} dimension{'s' * (least != 1)}"
    plural = "s" * (most != 1)
    return f"{least} to {most} dimensions" if least else f"at most {most} dimension{plural}"


def wrong_ndim(operator: str, name: str, least: int, most: int | None, ndim: int) -> ArgumentError:
    """Data with too many or too few dimensions."""
    return bad_argument(operator, name, f"must have {dimensions(least, most)}, got {ndim}")


def wrong_shape(operator: str, name: str, wanted: str, shape: tuple[int, ...]) -> ArgumentError:
    """Data of another shape than the operator takes."""
    return bad_argument(operator, name, f"must have the shape {wanted}, got {shape}")


def no_frames(operator: str, name: str, layout: str) -> ArgumentError:
    """Something else than a sequence, by its layout."""
    return bad_argument(
        operator, name, f'must be a sequence: its layout must begin with "F", got "{layout}"'
    )


def cant_read(operator: str, name: str, problem: str, *, system: bool) -> Exception:
    """A file that an argument names can't be read, by its own fault or by the machine's."""
    return (
        FileError(f"{operator}: `{name}` {problem}.")
        if system
        else bad_argument(operator, name, problem)
    )


def batch_sizes_differ(first: int, other: int, where: str) -> ValueError:
    """Batches of different sizes in one call."""
    return ValueError(
        f"Inconsistent batch size: {other} != {first}. {where}: all batches of a call must have "
        "the same number of samples; single tensors are broadcast. (A random operator makes as "
        "many as its `batch_size` says.)"
    )


def needs_batch_size(operator: str) -> ValueError:
    """No `batch_size=` for an operator that makes a batch out of nothing."""
    return ValueError(
        f"{operator}: `batch_size` must be given: there are no inputs that would tell it."
    )


def not_an_rng(operator: str, value: object) -> ValueError:
    """`rng=` that is something else."""
    return ValueError(
        f"{operator}: `rng` must be a random.RNG, got {describe(value)}. For a seed, give "
        "`rng=random.RNG(seed)`."
    )


def bad_batch_size(operator: str, value: object, largest: int) -> Exception:
    """`batch_size=` that is no number of samples."""
    text = (
        f"{operator}: `batch_size` must be a positive integer, at most {largest}, got "
        f"{describe(value)}."
    )
    return ValueError(text) if isinstance(value, int) else TypeError(text)


def wrong_rank(operator: str, ndim: int, layouts: Sequence[str]) -> ValueError:
    """An input whose number of axes fits no layout."""
    return ValueError(
        f"{operator}: the number of dimensions {ndim} does not match any of the allowed layouts; "
        f"valid layouts are {', '.join(layouts)}."
    )


def wrong_layout(operator: str, layout: str, layouts: Sequence[str]) -> ValueError:
    """An input whose layout the operator can't take."""
    return ValueError(
        f'{operator}: the layout "{layout}" does not match any of the allowed layouts; '
        f"valid layouts are {', '.join(layouts)}."
    )


def layout_length(layout: str, ndim: int) -> ValueError:
    """A layout with more or fewer letters than axes."""
    return ValueError(
        f'The layout "{layout}" names {len(layout)} dimensions, but the data has {ndim}: a '
        "layout has a letter for each dimension."
    )


def axes_given_twice(operator: str) -> RuntimeError:
    """Both `axes` and `axis_names`."""
    return RuntimeError(
        f"{operator}: `axes` and `axis_names` say the same thing in two ways; give one of them."
    )


def axis_out_of_range(operator: str, axis: int, ndim: int) -> OutOfRangeError:
    """The number of an axis that the data doesn't have."""
    valid = f"valid ones are {-ndim} to {ndim - 1}" if ndim else "a scalar has no axes"
    return OutOfRangeError(
        f"{operator}: the axis {axis} is out of range for data with {ndim} dimensions; {valid}."
    )


def no_such_axis(operator: str, letter: str, layout: str | None) -> RuntimeError:
    """The letter of an axis that the layout doesn't have."""
    has = f'in the input\'s layout "{layout}"' if layout else "in an input without a layout"
    return RuntimeError(f"{operator}: `axis_names`: the axis '{letter}' is not present {has}.")


def duplicate_axis(operator: str, axes: Sequence[int]) -> ValueError:
    """The same axis twice."""
    twice = next(axis for axis in axes if axes.count(axis) > 1)
    return ValueError(f"{operator}: duplicate axis {twice}: each axis can be given once.")


def no_axes(operator: str) -> RuntimeError:
    """An empty list of axes, where there must be some."""
    return RuntimeError(
        f"{operator}: `axes` must name at least one axis; leave it out to take all of them."
    )


def axes_of_numbers(operator: str) -> RuntimeError:
    """Axes for statistics that are known already."""
    return RuntimeError(
        f"{operator}: `axes` and `axis_names` have no meaning when `mean` and `stddev` are both "
        "single numbers; leave them out."
    )


def not_shared(operator: str, name: str) -> RuntimeError:
    """Statistics that differ, where the batch is to share them."""
    return RuntimeError(
        f"{operator}: with `batch=True` all samples share their statistics, so that `{name}` must "
        "be one number."
    )


def gpu_input_on_cpu(operator: str) -> ValueError:
    """device="cpu" with an input on a gpu."""
    return ValueError(
        f'{operator}: an input is on a gpu, but device="cpu" was given. Leave `device` out to run '
        "where the input is, or bring the input to the host with `.cpu()`."
    )


def not_on_gpu(operator: str) -> ValueError:
    """An operator of the host alone, asked to run on a gpu."""
    return ValueError(
        f"{operator}: Invalid device: it runs on the cpu only. Leave `device` out, and bring its "
        "inputs to the host with `.cpu()`."
    )


def mixed_devices(operator: str, left: object, right: object) -> ValueError:
    """Arithmetic between values on different devices."""
    return ValueError(
        f"{operator}: one operand is on {left} and the other on {right}. Bring them together with "
        "`.gpu()`, `.cpu()` or `.to_device(...)` first."
    )


def not_subscriptable() -> TypeError:
    """`batch[i]`."""
    return TypeError(
        "'Batch' object is not subscriptable: batch[i] could mean two things. Use "
        "`batch.tensors[i]` (or `batch.select(i)`) for sample i, or `batch.slice[i]` to index "
        "inside of each sample."
    )


def not_data(data: object) -> TypeError:
    """An object that no tensor can be made of."""
    hint = " (`imread` reads an image file by its name.)" if isinstance(data, str) else ""
    return TypeError(
        f"Can't make a tensor of {describe(data)}: expected numbers, nested lists of them, an "
        f"array (NumPy, PyTorch, JAX, anything with DLPack or a buffer), a Tensor or a Batch.{hint}"
    )


def integer_overflow(value: int, *, signed: bool = False) -> OverflowError:
    """One of Python's integers that 32 bits can't hold."""
    kind = "int32" if signed or value < 0 else "uint32"
    return OverflowError(
        f"Python integer {value} out of range for {kind}, the type that Python's integers have "
        "here. Give `dtype=int64` to keep a larger one."
    )


def not_on_host(what: str) -> TypeError:
    """A protocol of host memory, asked of a gpu value."""
    return TypeError(
        f"{what} needs data in host memory, but this tensor is on a gpu. Call `.cpu()` first."
    )


# From the engine


def raise_fault(fault: _core.Fault) -> NoReturn:
    """Raise what went wrong. Its text has the line of the call."""
    raise exception(fault)


def exception(fault: _core.Fault, *, tolerated: bool = False) -> BaseException:
    """The exception that a fault becomes.

    Args:
        fault: What went wrong.
        tolerated: Whether the reader has been told already to go on without such samples.
    """
    kind, *details = fault.cause
    if kind == "file":
        return _file(fault, *details, tolerated=tolerated)
    error: BaseException = _KINDS[kind](fault, *details)
    return error


def reason(fault: _core.Fault) -> str:
    """What is wrong, without where."""
    detail = fault.cause[-1]
    return sentence(detail) if isinstance(detail, tuple) else str(detail)


def _argument(fault: _core.Fault, name: str, problem: Problem) -> Exception:
    return RuntimeError(_located(fault, f"`{name}` {sentence(problem)}"))


def _input(fault: _core.Fault, index: int, problem: Problem) -> Exception:
    return RuntimeError(_located(fault, sentence(problem)))


def _value(fault: _core.Fault, problem: Problem) -> Exception:
    return ValueError(_located(fault, sentence(problem)))


_DAMAGE = {
    "unknown": "give the bytes of a whole image file, one file per sample.",
    "large": "if the image is really so large, set the environment variable PENSTOCK_MAX_PIXELS "
    "to a higher limit before the first image is decoded.",
    "truncated": "the file is truncated; the other samples of the batch can be read.",
    "broken": "the other samples of the batch can be read.",
}


def _undecodable(fault: _core.Fault, kind: str, problem: Problem) -> Exception:
    hint = _DAMAGE[kind]
    if fault.operator.startswith("decoders.image") and kind != "large":
        hint += f' `{fault.operator}(..., on_error="skip")` leaves such samples out of a batch.'
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
            hint="`pad=True` fills the shorter samples up with zeros.",
        )
    )


def _file(fault: _core.Fault, problem: Problem, *, tolerated: bool = False) -> Exception:
    skips = fault.operator.startswith("readers.") and not tolerated
    hint = "the reader's `on_error` can leave it out." if skips else None
    return FileError(_located(fault, f"the file can't be read: {sentence(problem)}", hint=hint))


def _system(fault: _core.Fault, problem: Problem) -> Exception:
    hint = "this says nothing about the sample, so that `on_error` does not leave it out."
    skips = fault.operator.startswith("readers.")
    return FileError(
        _located(
            fault, f"the file can't be read: {sentence(problem)}", hint=hint if skips else None
        )
    )


def _memory(fault: _core.Fault, size: int) -> Exception:
    return MemoryError(_located(fault, f"no memory for {size} bytes"))


def _forked(fault: _core.Fault) -> Exception:
    return RuntimeError(
        "This value was still being made when the process was forked; only the parent process "
        "gets it. Read values before forking, or make them in the child."
    )


def _stopped(fault: _core.Fault) -> Exception:
    return RuntimeError(_located(fault, "the program is ending, and the work was not begun"))


def _threads(fault: _core.Fault) -> Exception:
    return RuntimeError(
        _located(
            fault,
            "there is no thread to do this: all of them run functions that wait for other work",
            hint="let fewer functions wait for each other, or raise the limit on threads "
            "(`ulimit -u`).",
        )
    )


def warn_of_refused_threads() -> None:
    """Warn, once for each line that waits, that work has to be done where it is waited for."""
    call_sites.warn(
        "The system refuses to start more threads, so that work is done by fewer of them, or by "
        "the thread that waits for it. Ask for fewer with `set_num_threads` or the environment "
        "variable PENSTOCK_NUM_THREADS, or raise the limits (`ulimit -u`, `ulimit -v`, or the "
        "container's limit on processes).",
        RuntimeWarning,
    )


def _python(fault: _core.Fault, error: BaseException) -> BaseException:
    # A copy: what is raised collects the frames of its readers, which may hold the very value
    # that holds the fault.
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
    return InternalError(
        _located(fault, text, hint="this is a defect of penstock; please report it.")
    )


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
    site = call_sites.find(fault.site)
    if site is not call_sites.NOWHERE:
        text = site.text()
        lines.append(f"at {site.file}:{site.line}" + (f": {text}" if text else ""))
    if hint is not None:
        lines.append(f"hint: {hint}")
    return "\n  ".join(lines)
