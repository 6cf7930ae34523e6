"""What tests of the runtime share."""

import pytest

from penstock._runtime import stream


@pytest.fixture
def fresh_streams(monkeypatch, emulated):
    """An emulated gpu on which no stream has been used yet."""
    monkeypatch.setattr(stream, "_defaults", {})
    monkeypatch.setattr(stream, "_local", stream._Local())
