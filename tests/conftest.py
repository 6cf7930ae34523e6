"""Settings of the whole test run."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Without this, JAX looks for accelerators and warns when it finds none.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Examples share the cores with the engine's threads, so their duration means nothing.
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

MARKED_FOLDERS = ("conformance", "stress")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in these folders are marked with the folder's name."""
    for item in items:
        for folder in MARKED_FOLDERS:
            if folder in Path(item.path).relative_to(item.config.rootpath).parts:
                item.add_marker(folder)
