"""One Spark session for all tests, and queue managers for each."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipeline.fast import FAST
from tests.pipeline.machines import Machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if importlib.util.find_spec("pyspark") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from lanner.pipeline import register
    from lanner.pipeline.session import has_java, local_session

    if not has_java():
        pytest.skip("needs Java: openjdk-17-jre-headless, or JAVA_HOME")

    warehouse = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    session = local_session("tests", fast_start=True, settings=FAST | warehouse)
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def make_machine(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Start managers by name; they are stopped at the end."""
    machines: list[Machine] = []

    def make(name: str = "LON-1", *, data: str = "", bodies: bool = False, port: int = 0) -> Machine:
        machine = Machine(tmp_path / (data or name), name, bodies=bodies, port=port)
        machine.start()
        machines.append(machine)
        return machine

    yield make
    for machine in machines:
        machine.stop()


@pytest.fixture
def machine(make_machine: Callable[..., Machine]) -> Machine:
    return make_machine()
