"""Settings of all test runs."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Without this, JAX looks for accelerators and warns when it finds none.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Examples share the cores with the engine's threads and other tests, so their time means nothing.
settings.register_profile("default", max_examples=60, deadline=None)
settings.register_profile(
    "ci",
    parent=settings.get_profile("default"),
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", parent=settings.get_profile("default"), max_examples=3000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default")
)


@pytest.fixture
def emulated(monkeypatch):
    """A gpu, emulated without a warning."""
    from penstock._runtime import device

    monkeypatch.setenv("PENSTOCK_GPU", "emulate")
    device._policy.cache_clear()
    yield
    device._policy.cache_clear()


MARKS = {"conformance": ["conformance"], "stress": ["stress", "alone"]}
"""What tests are marked with, by their folder."""


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder."""
    for item in items:
        folders = Path(item.path).relative_to(item.config.rootpath).parts
        for folder, marks in MARKS.items():
            if folder in folders:
                for mark in marks:
                    item.add_marker(mark)


@pytest.fixture(autouse=True)
def _folder_for_files(request, monkeypatch, tmp_path_factory):
    """A folder of their own for calls that write into the current one."""
    if "dump_image" in request.node.name:
        monkeypatch.chdir(tmp_path_factory.mktemp("written"))
