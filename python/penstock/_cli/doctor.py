"""`penstock doctor`: what this machine has, and whether penstock works on it."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

from penstock._cli.terminal import Problem, first_line, table

HELP = "Show versions, CPU, threads, accelerator and frameworks, and test decoding."

_FRAMEWORKS = ("numpy", "torch", "torchvision", "jax", "lightning", "ray", "pyarrow", "nvidia-dali")
_INSTRUCTIONS = ("sse4_2", "avx2", "fma", "f16c", "avx512f", "asimd", "sve")
_SETTINGS = ("PENSTOCK_NUM_THREADS", "DALI_NUM_THREADS", "PENSTOCK_ISA", "PENSTOCK_DEBUG")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("--gpu", action="store_true", help="also test delivery to the accelerator")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Report, then test; the exit code is 1 if a test fails."""
    facts = collect()
    tests = {name: _outcome(test) for name, test in TESTS.items()}
    failed = any(tests.values())
    if given.json:
        shown = {name: outcome or "ok" for name, outcome in tests.items()}
        print(json.dumps({**facts, "tests": shown}, indent=2))
    else:
        rows = [[name, str(value)] for name, value in facts.items()]
        rows += [[f"test: {name}", outcome or "ok"] for name, outcome in tests.items()]
        print(table(rows))
    if given.gpu:
        failed |= not _test_gpu()
    return int(failed)


def collect() -> dict[str, Any]:
    """What there is, by name."""
    import penstock
    from penstock._runtime.cpus import cpu_quota, usable_cpus
    from penstock._runtime.threads import get_num_threads

    quota = cpu_quota()
    facts = {
        "penstock": penstock.__version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cpu": _cpu_name(),
        "instructions": " ".join(_instructions()) or "unknown",
        "cpus": f"{os.cpu_count()} in the machine, {usable_cpus()} usable",
        "container quota": "none" if quota is None else f"{quota} CPUs",
        "worker threads": get_num_threads(),
        "accelerator": _accelerator(),
    }
    facts.update({name: _version(name) for name in _FRAMEWORKS})
    facts.update({name: os.environ[name] for name in _SETTINGS if name in os.environ})
    return facts


def _version(distribution: str) -> str:
    names = (distribution, f"{distribution}-cuda120", f"{distribution}-cuda130")
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return "not installed"


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _instructions() -> list[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    flags = set(line.partition(":")[2].split())
                    return [name for name in _INSTRUCTIONS if name in flags]
    except OSError:
        pass
    return []


def _accelerator() -> str:
    if importlib.util.find_spec("torch") is None:
        return "none (PyTorch, which would find one, is not installed); gpu is emulated"
    try:
        import torch

        if torch.cuda.is_available():
            return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}"
    except Exception as error:
        return f"unknown: {first_line(error)}"
    return "none; gpu is emulated on the CPU"


def _outcome(test: Callable[[], None]) -> str:
    """What is wrong; "" if nothing is."""
    try:
        test()
    except Exception as error:
        return f"FAILED: {first_line(error)}"
    return ""


def _test_png() -> None:
    import numpy as np

    import penstock as ndd
    from penstock._look import png

    pixels = np.arange(32 * 48 * 3, dtype=np.uint32).reshape(32, 48, 3).astype(np.uint8)
    decoded = ndd.decoders.image(np.frombuffer(png.encode(pixels), np.uint8))
    if not np.array_equal(np.asarray(decoded), pixels):
        raise ValueError("the decoded pixels are wrong")


def _test_jpeg() -> None:
    import numpy as np

    import penstock as ndd

    ramp = np.linspace(0, 255, 64 * 64).reshape(64, 64, 1).repeat(3, 2).astype(np.uint8)
    image = ndd.tensor(ramp, layout="HWC")
    distorted = np.asarray(ndd.jpeg_compression_distortion(image, quality=95))
    if np.abs(distorted.astype(int) - ramp).max() > 16:
        raise ValueError("the decoded pixels are wrong")


def _test_threads() -> None:
    import numpy as np

    import penstock as ndd

    images = np.random.default_rng(0).integers(0, 256, (16, 128, 128, 3), np.uint8)
    flipped = ndd.as_tensor(ndd.flip(ndd.batch(images, layout="HWC")))
    if not np.array_equal(np.asarray(flipped), images[:, :, ::-1]):
        raise ValueError("the computed pixels are wrong")


TESTS = {"decode PNG": _test_png, "encode and decode JPEG": _test_jpeg, "workers": _test_threads}


def _test_gpu() -> bool:
    try:
        from penstock._accelerators import (  # type: ignore[import-not-found,unused-ignore]
            self_test,
        )
    except ImportError:
        raise Problem("this version of penstock has no test of accelerators") from None
    is_well: bool = self_test.run(print)
    return is_well
