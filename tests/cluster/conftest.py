"""A Ray cluster of several real nodes on this machine."""

import os

import numpy as np
import pytest

cluster_utils = pytest.importorskip("ray.cluster_utils")

STORE = 100 << 20
"""Bytes of each node's object store."""


class Nodes:
    """A head for the trainer, and nodes with a CPU each for workers."""

    def __init__(self):
        self._cluster = cluster_utils.Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "object_store_memory": STORE, **QUIET},
        )
        self.nodes = []
        self.address = self._cluster.address

    def add(self, count=1, num_cpus=1):
        for _ in range(count):
            options = {"num_cpus": num_cpus, "object_store_memory": STORE, **QUIET}
            self.nodes.append(self._cluster.add_node(**options))

    def kill(self, index=0):
        self._cluster.remove_node(self.nodes.pop(index), allow_graceful=False)

    def close(self):
        self._cluster.shutdown()


QUIET = {"include_dashboard": False}


@pytest.fixture(scope="module")
def nodes():
    import ray

    # What Ray will do by default; it warns of the change.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    made = Nodes()
    made.add(3)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """24 arrays, large enough for the object store."""
    made = tmp_path_factory.mktemp("rows")
    for number in range(24):
        rows = np.random.default_rng(number).integers(0, 256, (60, 60, 30), np.uint8)
        np.save(made / f"{number:02}.npy", rows)
    return made
