"""What tests share: where the public test data is, and what happens where it is not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from arecall.testing import unavailable

if TYPE_CHECKING:
    from servers import Server

REPOSITORY = Path(__file__).parents[1]

# Time on the clock says nothing on a machine that does other work as well: no example may fail for it. A change is judged
# in CI by the same examples each time; new ones are looked for everywhere else.
settings.register_profile(
    "arecall", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("arecall")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared test data (`data/`, `cases/`)."""
    folder = Path(os.environ.get("ARECALL_TEST_DATA") or REPOSITORY.parent / "shared")
    if not (folder / "data").is_dir():
        unavailable(f"no test data at {folder}: set ARECALL_TEST_DATA to a folder with data/ and cases/")
    return folder


@pytest.fixture
def demo() -> Path:
    """The folder of the demo that the repository ships."""
    return REPOSITORY / "scenarios" / "demo"


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the processes of this test run have in common, and no other run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def openfga(run_folder: Path) -> Iterator[Server]:
    """The OpenFGA server of this test run; tests are isolated by store."""
    import servers

    with servers.shared("openfga", run_folder) as server:
        yield server


@pytest.fixture(scope="session")
def elasticsearch(run_folder: Path) -> Iterator[Server]:
    """The Elasticsearch server of this test run, with a trial licence; tests are isolated by the names of what they make."""
    import servers

    with servers.shared("elasticsearch", run_folder) as server:
        yield server


@pytest.fixture(scope="session")
def opensearch(run_folder: Path) -> Iterator[Server]:
    """The OpenSearch server of this test run, where `admin` may impersonate; isolation as with Elasticsearch."""
    import servers

    with servers.shared("opensearch", run_folder) as server:
        yield server
