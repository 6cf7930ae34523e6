"""Devices: the host, and gpus.

Operators always run on the host. `gpu` is a tag on values with the placement rules of a real one.
Where there is an accelerator, such values are handed over to it (`_accelerators`).
"""

from __future__ import annotations

import functools
import operator
import os
import threading
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NoReturn,
    Protocol,
    SupportsIndex,
    Union,
)

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._operators import call_sites

if TYPE_CHECKING:
    from penstock._accelerators.interface import Accelerator
    from penstock._runtime.context import EvalContext

__all__ = ["Device", "DeviceLike", "EmulatedDeviceWarning", "device"]

EMULATED_COUNT = 8
"""Emulated gpus: enough to try out multi-gpu programs."""

_CPU = -1  # the code of the host; a gpu's code is its id


class EmulatedDeviceWarning(UserWarning):
    """A gpu was requested, and is emulated on the host."""


class TorchDevice(Protocol):
    """The attributes of a `torch.device` that are used."""

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...


class Device:
    """The host (`cpu`) or a gpu (`gpu:<id>`).

    Operators always run on the host's CPU, and keep data in host memory. A value on `gpu:1` is
    tagged as such, and the rules of a real gpu apply to it: it must be copied with `.cpu()` before
    NumPy can read it, and arithmetic between devices is an error.

    If PyTorch was imported before the first use of a gpu and has an accelerator, `gpu:1` is its
    device 1, such as `cuda:1`. Values are copied there when they are handed over: by `torch()`,
    DLPack or `__cuda_array_interface__`. Otherwise eight gpus are emulated. See `docs/devices.md`.

    There is one object per device. As a context manager, it becomes the calling thread's
    current device:

        with ndd.Device("gpu", 1):
            images = ndd.decoders.image(jpegs, device="gpu")  # on gpu:1

    Args:
        name: "cpu", "gpu", "cuda" (the same), "gpu:<id>" or "cuda:<id>". PyTorch's name for the
            accelerator, such as "xpu:<id>", means a gpu as well.
        device_id: The id, if it isn't in the name. A gpu without an id is the current one: that of
            the innermost `with` block, else PyTorch's current device, or 0 if gpus are emulated.

    Example:
        >>> with ndd.Device("gpu", 1):
        ...     print(ndd.tensor([1, 2]).gpu().device)
        gpu:1
        >>> ndd.Device.current()
        Device(device_type='cpu')
    """

    __slots__ = ("_code", "device_id", "device_type")

    CPU: ClassVar[Device]
    """The host."""
    device_type: Literal["cpu", "gpu"]
    """The kind of device."""
    device_id: int | None
    """The id of the gpu; None for the host."""
    _code: int

    @public
    def __new__(cls, name: str, device_id: SupportsIndex | None = None) -> Device:
        return _find(name, device_id)

    @staticmethod
    def current() -> Device:
        """The calling thread's device: that of its innermost `with` block, or the host."""
        return thread.chosen.device

    @staticmethod
    def default_device_id(device_type: str) -> int | None:
        """The id used when none is given: None for "cpu", the current gpu's for "gpu"."""
        if device_type == "cpu":
            return None
        if device_type not in ("gpu", "cuda"):
            _refuse_name(device_type)
        _require_gpu()
        return current_ordinal()

    @staticmethod
    def from_dlpack(dlpack_device: Any) -> Device:
        """The device of an object with a `__dlpack_device__` method."""
        if not hasattr(dlpack_device, "__dlpack_device__"):
            raise TypeError(
                "Device.from_dlpack: expected an object with a `__dlpack_device__` method, "
                f"got {type(dlpack_device).__name__}."
            )
        kind, device_id = dlpack_device.__dlpack_device__()
        name = Device.type_from_dlpack(kind)
        return Device.CPU if name == "cpu" else Device(name, device_id)

    @staticmethod
    def type_from_dlpack(dev_type: SupportsIndex) -> str:
        """The kind of device, "cpu" or "gpu", for a DLPack device type."""
        kind = {1: "cpu", 2: "gpu"}.get(int(dev_type))
        if kind is None:
            found = accelerator()
            if found is None or found.dlpack_device(0)[0] != int(dev_type):
                raise ValueError(
                    f"Unsupported DLPack device type {dev_type!r}: only host memory (1) and CUDA "
                    "memory (2) are supported. Copy the data to the host first."
                )
            kind = "gpu"
        return kind

    def __enter__(self) -> Device:
        # A single assignment, which Ctrl-C can't interrupt halfway.
        thread.chosen = thread.choice(self, self, thread.chosen.context)
        return self

    if TYPE_CHECKING:  # it is native code, see below

        def __exit__(self, *exc_info: object) -> None:
            """Go back to the device of the block around this one."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A Device can't be modified; create another one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A Device can't be modified; create another one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (str(self),)

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: object) -> Device:
        return self

    def __str__(self) -> str:
        return "cpu" if self.device_id is None else f"gpu:{self.device_id}"

    def __repr__(self) -> str:
        if self.device_id is None:
            return "Device(device_type='cpu')"
        return f"Device(device_type='gpu', device_id={self.device_id})"


DeviceLike = Union["Device", str, TorchDevice]
"""What is accepted as a device: a `Device`, its name or a `torch.device`."""


@public
def device(obj: DeviceLike | None, id: SupportsIndex | None = None) -> Device | None:
    """Convert a device's name or a `torch.device` to a `Device`; None stays None.

    Args:
        obj: A Device, its name, a `torch.device`, or None.
        id: The id, if it isn't in the name.

    Example:
        >>> ndd.device("gpu:1")
        Device(device_type='gpu', device_id=1)
    """
    if isinstance(obj, Device):
        if id is not None:
            raise ValueError(f"device: {obj!r} already has an id; omit `id` ({id!r}).")
        return obj
    if isinstance(obj, str):
        return _find(obj, id)
    if obj is None:
        return None
    # By name, so that torch isn't imported.
    if type(obj).__module__ == "torch" and type(obj).__name__ == "device":
        if obj.type == "cpu":
            return _find("cpu", id)
        return _find(obj.type, obj.index if id is None else id)
    raise TypeError(
        f"device: expected a Device, a name such as 'cpu' or 'gpu:0', or a torch.device; "
        f"got {obj!r}."
    )


def check_device_id(value: SupportsIndex) -> int:
    """The id as an int; raises if there is no such device."""
    try:
        ordinal = operator.index(value)
    except TypeError:
        raise TypeError(f"A device id must be an integer, got {value!r}.") from None
    found = accelerator()
    count = EMULATED_COUNT if found is None else found.count
    if not 0 <= ordinal < count:
        raise ValueError(f"Invalid device id {ordinal}: it must be between 0 and {count - 1}.")
    return ordinal


def current_ordinal() -> int:
    """The id of "gpu" without an id in this thread; doesn't warn about emulation."""
    chosen = thread.chosen.ordinal
    if chosen is not None:
        return chosen
    found = accelerator()
    return 0 if found is None else found.current()


def accelerator() -> Accelerator | None:
    """The accelerator that values on a gpu are handed over to; None if gpus are emulated."""
    return None if _policy() == "emulate" else _found()


@functools.cache
def _found() -> Accelerator | None:
    """Looked for once: devices must not change while values are on them."""
    from penstock import _accelerators

    return _accelerators.find(is_asked_for())


def _find(name: str, device_id: SupportsIndex | None) -> Device:
    """The device with this name. Cached ones have passed all checks."""
    if not isinstance(name, str):
        raise TypeError(
            f"Device: the name must be a string such as 'cpu' or 'gpu:0', got {name!r}. "
            "Use `device()` to convert other objects."
        )
    if device_id is None and (found := _named.get(name)) is not None:
        return found
    kind, colon, ordinal = name.partition(":")
    if kind not in ("cpu", "gpu", "cuda") and not _is_of_accelerator(kind):
        _refuse_name(name)
    if colon:
        if device_id is not None:
            raise ValueError(
                f"Device: the id is given twice, in the name {name!r} and as "
                f"device_id={device_id!r}."
            )
        if not (ordinal.isascii() and ordinal.isdecimal()):
            _refuse_name(name)
        device_id = int(ordinal)
    if kind == "cpu":
        raise ValueError(f"Device: 'cpu' has no id, got {device_id!r}.")
    code = current_ordinal() if device_id is None else check_device_id(device_id)
    found = _devices.get(code)
    if found is None:
        _require_gpu()
        found = _devices.setdefault(code, _make(code))
    if colon:
        _named[name] = found
    return found


def _make(code: int) -> Device:
    device = object.__new__(Device)
    put = functools.partial(object.__setattr__, device)
    put("_code", code)
    put("device_type", "cpu" if code == _CPU else "gpu")
    put("device_id", None if code == _CPU else code)
    return device


def _is_of_accelerator(kind: str) -> bool:
    found = accelerator()
    return found is not None and found.type == kind


def _refuse_name(name: str) -> NoReturn:
    if name == "mixed":
        raise ValueError(
            'Invalid device "mixed": it exists only in DALI pipelines. Use device="gpu", also for '
            "decoders with inputs on the host."
        )
    raise ValueError(
        f"Invalid device {name!r}: expected 'cpu', 'gpu', 'cuda', 'gpu:<id>' or 'cuda:<id>'."
    )


@functools.cache
def _policy() -> str:
    value = os.environ.get("PENSTOCK_GPU", "").strip() or "auto"
    if value not in ("deliver", "auto", "emulate", "error"):
        raise ValueError(
            "The environment variable PENSTOCK_GPU must be 'deliver', 'auto', 'emulate' or "
            f"'error', got {value!r}."
        )
    return value


def is_asked_for() -> bool:
    """Whether the user has said that gpus are there to deliver data to."""
    return _policy() == "deliver"


def is_refused() -> bool:
    """Whether using a gpu is an error."""
    return _policy() in ("error", "deliver") and accelerator() is None


def _require_gpu() -> None:
    """If gpus are emulated: warn once, or raise, depending on PENSTOCK_GPU."""
    policy = _policy()
    if policy == "emulate" or accelerator() is not None:
        return
    from penstock._accelerators import why_none

    reason = why_none(is_asked_for())
    if policy != "auto":
        raise RuntimeError(
            f"A gpu was requested, but {reason}, and PENSTOCK_GPU={policy} forbids emulation. Use "
            "device='cpu', or set PENSTOCK_GPU=emulate to run on the host."
        )
    if _first_use.acquire(blocking=False):
        call_sites.warn(
            f"`gpu` is emulated, since {reason}: operators run on the CPU and data stays in host "
            "memory. Results are the same. Set PENSTOCK_GPU=emulate to silence this warning, or "
            "PENSTOCK_GPU=error to make it an error.",
            EmulatedDeviceWarning,
        )


# Acquired on first use and never released: an atomic flag.
_first_use = threading.Lock()
_devices: dict[int, Device] = {_CPU: _make(_CPU)}
Device.CPU = _devices[_CPU]
_named: dict[str, Device] = {"cpu": Device.CPU}  # a cache


class Chosen(NamedTuple):
    """The device and context of a `with` block, linked to those of the enclosing block."""

    device: Device
    ordinal: int | None
    """The id of "gpu" without an id; None for the framework's current device."""
    context: EvalContext | None
    by: object
    """The device or context that was entered."""
    outer: Chosen | None


_NOTHING_CHOSEN = Chosen(Device.CPU, None, None, None, None)


class ThreadState(threading.local):
    """The device and context of a thread: one attribute, so that Ctrl-C can't tear them apart."""

    chosen = _NOTHING_CHOSEN
    # A cache of the current EvalContext, cleared when the device changes. It is here because
    # another thread-local look-up would take as long.
    context: EvalContext | None = None

    def choice(self, by: object, device: Device | None, context: EvalContext | None) -> Chosen:
        """The choice inside of a block that is entered. Clears the cached context."""
        self.context = None
        now = self.chosen
        device = now.device if device is None else device
        # Within a `cpu` block, "gpu" without an id still means the gpu of the enclosing block.
        ordinal = now.ordinal if device._code == _CPU else device._code
        return Chosen(device, ordinal, context, by, now)

    def choice_around(self, by: object) -> Chosen:
        """The choice after a block, and after inner blocks whose exit was interrupted."""
        self.context = None
        chosen = self.chosen
        while chosen.by is not by:
            if chosen.outer is None:
                raise messages.not_entered(by)
            chosen = chosen.outer
        return chosen.outer or _NOTHING_CHOSEN


thread = ThreadState()
Device.__exit__ = _core.BlockExit(thread, "by", "context")  # type: ignore[method-assign, assignment]
