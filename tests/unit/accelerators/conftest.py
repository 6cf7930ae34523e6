"""An accelerator in place of emulated gpus."""

import threading

import pytest
from tests.stand_in import StandIn

from penstock._accelerators import delivery
from penstock._runtime import device, stream
from penstock._runtime.device import Device
from penstock._values import conversion


@pytest.fixture
def install(monkeypatch):
    """Installs an accelerator, as if no gpu had been used in this process yet."""
    installed = []

    def put(accelerator, policy="auto"):
        installed.append(accelerator)
        monkeypatch.setenv("PENSTOCK_GPU", policy)
        device._policy.cache_clear()
        monkeypatch.setattr(device, "_found", lambda: accelerator)
        return accelerator

    monkeypatch.setattr(device, "_devices", {-1: Device.CPU})
    monkeypatch.setattr(device, "_named", {"cpu": Device.CPU})
    monkeypatch.setattr(stream, "_defaults", {})
    monkeypatch.setattr(stream, "_local", stream._Local())
    monkeypatch.setattr(delivery, "in_flight", delivery.InFlight())
    monkeypatch.setattr(device, "_first_use", threading.Lock())
    monkeypatch.setattr(delivery, "_first_failure", threading.Lock())
    monkeypatch.setattr(conversion, "_first_copy", threading.Lock())
    yield put
    device._policy.cache_clear()
    for accelerator in {*installed}:
        if isinstance(accelerator, StandIn):
            accelerator.close()


@pytest.fixture
def stand_in(install):
    """Two devices with memory and streams of their own."""
    return install(StandIn())
