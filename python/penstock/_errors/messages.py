"""The messages of errors raised at a call, each worded in one place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from penstock.errors import ArgumentError, FileError, OutOfRangeError


def describe(value: object) -> str:
    """A value as shown in a message: briefly, and without waiting for a tensor."""
    kind = type(value).__name__
    text = ""
    if not type(value).__module__.startswith("penstock."):
        try:
            text = repr(value)
        except Exception:  # a user's `__repr__`
            pass
    return f"{text} ({kind})" if 0 < len(text) <= 60 else f"an object of type {kind}"


def unknown_argument(operator: str, unknown: Iterable[str], known: Sequence[str]) -> TypeError:
    """A keyword argument that the operator doesn't have."""
    name = next(iter(unknown))
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(known)}."
    return TypeError(f"{operator}() got an unexpected keyword argument '{name}'; {hint}")


_OFTEN_POSITIONAL = (
    *("angle", "range", "size", "crop", "shape", "horizontal", "matrix", "dtype"),
    *("axes", "axis", "perm"),
)
"""Arguments that other libraries accept by position."""


def surplus_input(
    operator: str, inputs: int, surplus: Sequence[object], known: Sequence[str]
) -> TypeError:
    """Too many positional arguments: only inputs are positional."""
    text = (
        f"{operator}() takes {inputs} positional argument{'s' * (inputs != 1)} but "
        f"{inputs + len(surplus)} were given"
    )
    likely = [name for name in _OFTEN_POSITIONAL if name in known]
    own = [name for name in known if name not in ("batch_size", "device")]
    if own:
        given = describe(surplus[0])
        text += f"; pass {given} by keyword, such as `{(likely or own)[0]}=`"
    return TypeError(text + ".")


def unknown_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """An attribute that a module doesn't have."""
    near = difflib.get_close_matches(name, [*known], n=1)
    place = f"{module.removeprefix('penstock').lstrip('.')}.{name}".lstrip(".")
    hint = _IN_DALI.get(place, f"; did you mean '{near[0]}'?" if near else "")
    return AttributeError(f"module '{module}' has no attribute '{name}'{hint}")


_IN_DALI = {
    **dict.fromkeys(
        ("fn", "ops", "pipeline", "pipeline_def", "Pipeline"),
        ": penstock has no pipelines; call operators directly, such as "
        "`resize(images, size=[224, 224])`. `penstock migrate FILE` rewrites programs.",
    ),
    **dict.fromkeys(
        ("plugin", "DALIGenericIterator", "DALIClassificationIterator"),
        ": penstock has no plugins; batches convert with `.torch()` and `.jax()`, and "
        "`penstock.torch.Loader` is a DataLoader.",
    ),
    **dict.fromkeys(
        ("readers.Video", "readers.VideoResize", "decoders.video", "experimental.readers.Video"),
        ": DALI has it, penstock doesn't yet. Frames that another library has decoded are "
        'processed as sequences: `batch(frames, layout="FHWC")`.',
    ),
}
"""What DALI has and penstock doesn't, and what to do instead."""


def missing_input(operator: str, name: str) -> TypeError:
    """A missing or None input."""
    return TypeError(
        f"{operator}() missing 1 required positional argument: '{name}'; it needs a Tensor, a "
        "Batch or an array, got None."
    )


def missing_argument(operator: str, name: str) -> TypeError:
    """A required keyword argument that is missing or None."""
    return TypeError(f"{operator}() missing 1 required keyword-only argument: '{name}'")


def wrong_argument(operator: str, name: str, value: object, wanted: str) -> TypeError:
    """An argument of the wrong type."""
    return TypeError(f"{operator}: `{name}` must be {wanted}, got {describe(value)}.")


def argument_overflow(operator: str, name: str, value: object, wanted: str) -> Exception:
    """A number that is too large for the argument, or NaN."""
    kind = ValueError if isinstance(value, float) and value != value else OverflowError
    return kind(f"{operator}: `{name}` must be {wanted} of up to 64 bits, got {describe(value)}.")


def in_operator(operator: str, error: Exception, name: str | None = None) -> Exception:
    """The same error, prefixed with the operator it occurred in, and the argument if given."""
    if type(error) not in (TypeError, ValueError):
        return error
    which = "" if name is None else f"`{name}`: "
    return type(error)(f"{operator}: {which}{error}")


def bad_argument(operator: str, name: str, problem: str) -> ArgumentError:
    """An argument with an invalid value."""
    return ArgumentError(f"{operator}: `{name}` {problem}.")


def bad_input(operator: str, problem: str) -> ArgumentError:
    """An invalid input."""
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
    if least == most:
        return f"{least} dimension{'s' * (least != 1)}"
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
    """A file named by an argument can't be read.

    Args:
        operator: The operator.
        name: The argument.
        problem: What is wrong.
        system: Whether the cause is the system (permissions, descriptors) and not the contents.
    """
    return (
        FileError(f"{operator}: `{name}` {problem}.")
        if system
        else bad_argument(operator, name, problem)
    )


def batch_sizes_differ(first: int, other: int, where: str) -> ValueError:
    """Batches of different sizes in one call."""
    return ValueError(
        f"Inconsistent batch size: {other} != {first}. {where}: all batches of a call must have "
        "the same number of samples; single tensors are broadcast. (A random operator produces "
        "`batch_size` samples.)"
    )


def needs_batch_size(operator: str) -> ValueError:
    """No `batch_size=` for an operator that has no inputs to take it from."""
    return ValueError(f"{operator}: `batch_size` must be given: there is no input to take it from.")


def not_an_rng(operator: str, value: object) -> ValueError:
    """`rng=` that is not an RNG."""
    return ValueError(
        f"{operator}: `rng` must be a random.RNG, got {describe(value)}. To use a seed, "
        "pass `rng=random.RNG(seed)`."
    )


def bad_batch_size(operator: str, value: object, largest: int) -> Exception:
    """An invalid `batch_size=`."""
    text = (
        f"{operator}: `batch_size` must be a positive integer, at most {largest}, got "
        f"{describe(value)}."
    )
    return ValueError(text) if isinstance(value, int) else TypeError(text)


def wrong_rank(operator: str, ndim: int, layouts: Sequence[str]) -> ValueError:
    """An input whose number of dimensions matches no layout of the operator."""
    return ValueError(
        f"{operator}: the number of dimensions {ndim} does not match any of the allowed layouts; "
        f"valid layouts are {', '.join(layouts)}."
    )


def wrong_layout(operator: str, layout: str, layouts: Sequence[str]) -> ValueError:
    """An input whose layout the operator doesn't support."""
    return ValueError(
        f'{operator}: the layout "{layout}" does not match any of the allowed layouts; '
        f"valid layouts are {', '.join(layouts)}."
    )


def layout_length(layout: str, ndim: int) -> ValueError:
    """A layout with more or fewer letters than the data has dimensions."""
    return ValueError(
        f'The layout "{layout}" names {len(layout)} dimensions, but the data has {ndim}; a '
        "layout has one letter per dimension."
    )


def axes_given_twice(operator: str) -> RuntimeError:
    """Both `axes` and `axis_names`."""
    return RuntimeError(f"{operator}: `axes` and `axis_names` can't be combined; give one of them.")


def axis_out_of_range(operator: str, axis: int, ndim: int) -> OutOfRangeError:
    """An axis that the data doesn't have, by number."""
    valid = f"valid ones are {-ndim} to {ndim - 1}" if ndim else "a scalar has no axes"
    return OutOfRangeError(
        f"{operator}: the axis {axis} is out of range for data with {ndim} dimensions; {valid}."
    )


def no_such_axis(operator: str, letter: str, layout: str | None) -> RuntimeError:
    """An axis that the layout doesn't have, by letter."""
    has = f'in the input\'s layout "{layout}"' if layout else "in an input without a layout"
    return RuntimeError(f"{operator}: `axis_names`: the axis '{letter}' is not present {has}.")


def duplicate_axis(operator: str, axes: Sequence[int]) -> ValueError:
    """An axis given twice."""
    twice = next(axis for axis in axes if axes.count(axis) > 1)
    return ValueError(f"{operator}: duplicate axis {twice}; each axis can be given only once.")


def no_axes(operator: str) -> RuntimeError:
    """An empty list of axes where at least one is required."""
    return RuntimeError(
        f"{operator}: `axes` must name at least one axis; omit it to use all of them."
    )


def axes_of_numbers(operator: str) -> RuntimeError:
    """Axes to compute statistics over when the statistics are given."""
    return RuntimeError(
        f"{operator}: `axes` and `axis_names` have no effect when `mean` and `stddev` are both "
        "scalars; omit them."
    )


def not_shared(operator: str, name: str) -> RuntimeError:
    """Per-sample statistics with `batch=True`."""
    return RuntimeError(
        f"{operator}: with `batch=True` all samples share the same statistics, so `{name}` must be "
        "a scalar."
    )


def gpu_input_on_cpu(operator: str) -> ValueError:
    """device="cpu" with an input on a gpu."""
    return ValueError(
        f'{operator}: an input is on a gpu, but device="cpu" was given. Omit `device` to run '
        "where the input is, or move the input to the host with `.cpu()`."
    )


def not_on_gpu(operator: str) -> ValueError:
    """An operator that supports only the cpu, called with device="gpu"."""
    return ValueError(
        f"{operator}: Invalid device: it supports only the cpu. Omit `device`, and move its "
        "inputs to the host with `.cpu()`."
    )


def mixed_devices(operator: str, left: object, right: object) -> ValueError:
    """Arithmetic between values on different devices."""
    return ValueError(
        f"{operator}: one operand is on {left} and the other on {right}. Move them to the "
        "same device first with `.gpu()`, `.cpu()` or `.to_device(...)`."
    )


def not_entered(block: object) -> RuntimeError:
    """A `with` block that is exited in a thread where it was not entered."""
    return RuntimeError(f"{block} is exited, but was not entered in this thread.")


def not_subscriptable() -> TypeError:
    """`batch[i]`."""
    return TypeError(
        "'Batch' object is not subscriptable: batch[i] could mean two things. Use "
        "`batch.tensors[i]` (or `batch.select(i)`) for sample i, or `batch.slice[i]` to index "
        "into each sample."
    )


def not_data(data: object) -> TypeError:
    """An object that can't be converted to a tensor."""
    hint = " (`imread` reads an image file by name.)" if isinstance(data, str) else ""
    return TypeError(
        f"Can't make a tensor from {describe(data)}: expected numbers, nested lists of them, an "
        f"array (NumPy, PyTorch, JAX, anything with DLPack or a buffer), a Tensor or a Batch.{hint}"
    )


def integer_overflow(value: int, *, signed: bool = False) -> OverflowError:
    """A Python integer that doesn't fit into 32 bits."""
    kind = "int32" if signed or value < 0 else "uint32"
    return OverflowError(
        f"Python integer {value} out of range for {kind}, the default type for Python "
        "integers. Pass `dtype=int64` for larger values."
    )


def not_on_host(what: str) -> TypeError:
    """A host-memory protocol used on a gpu tensor."""
    return TypeError(
        f"{what} needs data in host memory, but this tensor is on a gpu. Call `.cpu()` first."
    )
