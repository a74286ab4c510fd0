"""Every shipped scenario on every backend, live, and again from its record where no server can be reached.

What comes out is what docs/scenario-matrix.md says; that page tells by which commands it is made anew.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import servers
from arecall.scenario import recording
from arecall.scenario.judging import OfScenario, judge
from arecall.scenario.loader import Loaded, load
from arecall.scenario.running import demand_known, installed, named, replay
from arecall.scenario.showing import show_matrix
from servers import Server

REPOSITORY = Path(__file__).parents[3]
SHIPPED = sorted(REPOSITORY.glob("scenarios/*/*.yaml"))
BACKENDS = ("openfga", "casbin", "elasticsearch", "opensearch")
PAGE = REPOSITORY / "docs" / "scenario-matrix.md"

OVERRIDES = "plugins.security.dfm_empty_overrides_all"

UNREACHABLE = """\
import socket
def refused(*_):
    raise OSError("there is no network here")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refused
from arecall.cli import main
main()
"""


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def needs_overrides(loaded: Loaded) -> bool:
    """Whether a scenario is about an OpenSearch where roles without a query lift restrictions."""
    world = loaded.scenario.native.get("opensearch")
    return world is not None and world.settings.get("requires", {}).get("dfm_empty_overrides_all") == "true"


def url(server: Server) -> str:
    return server.url.replace("://", f"://{server.user}:{server.password}@") if server.user else server.url


@pytest.fixture(scope="session")
def urls(openfga: Server, elasticsearch: Server, opensearch: Server) -> Mapping[str, str]:
    return {"openfga": url(openfga), "elasticsearch": url(elasticsearch), "opensearch": url(opensearch)}


def lines(part: int, of: str) -> list[str]:
    """Return what a part of the page says of a scenario."""
    text = PAGE.read_text("utf-8").split("\n## ")[part]
    return [line for line in text.splitlines() if re.match(rf"(\| |- ){re.escape(of)}[ :]", line)]


def held(paths: Sequence[Path], urls: Mapping[str, str], folder: Path, part: int) -> None:
    """Replay scenarios live and from the record, demand that all of them hold, and compare with a part of the page."""
    loaded = [load(path) for path in paths]
    demand_known(loaded)
    kept = folder / "recording"
    with recording.new(kept) as aside:
        replay(named(loaded), installed(BACKENDS), aside, servers=urls)
        verdicts = judge(aside)
        recording.write(aside / recording.VERDICTS, verdicts)
        digest = recording.seal(aside)
    assert [problem for one in verdicts.scenarios for problem in problems(one)] == []
    offline = subprocess.run(
        [sys.executable, "-c", UNREACHABLE, "replay", str(kept), "--expect-digest", digest, "--format", "json"],
        check=False,
        capture_output=True,
        env={**os.environ, "DOCKER_HOST": "tcp://127.0.0.1:9"},
    )
    assert (offline.returncode, offline.stdout) == (0, (kept / recording.VERDICTS).read_bytes()), offline.stderr
    shown = io.StringIO()
    show_matrix(verdicts, shown)
    header, _, *found = shown.getvalue().splitlines()
    assert header in PAGE.read_text("utf-8").split("\n## ")[part].splitlines()
    assert found == [line for path in paths for line in lines(part, name(path)) if line.startswith("|")] + [""] + [
        line for path in paths for line in lines(part, name(path)) if line.startswith("-")
    ]


def problems(one: OfScenario) -> list[str]:
    """Return all that does not hold; a backend that can express nothing of a scenario must say why."""
    found = [f"no backend shows {what}" for what in one.unevidenced]
    found += [f"{at.stage}: {at.digests}" for at in one.agreement if at.status == "fails"]
    found += [f"{backend} is missing" for backend in BACKENDS if backend not in one.backends]
    for backend, of in one.backends.items():
        if of.status not in ("holds", "cannot") or (of.status == "cannot" and not of.reason):
            found.append(f"{backend} {of.status}: {of.reason}")
        found += [f"{backend}: {c.stage}: {c.what}: {c.message}" for c in of.checks if c.status == "fails"]
    return found


@pytest.mark.live
@pytest.mark.parametrize("path", SHIPPED, ids=name)
def test_a_shipped_scenario_holds_live_and_offline(path: Path, urls: Mapping[str, str], tmp_path: Path) -> None:
    held([path], urls, tmp_path, 1)


@pytest.mark.live
def test_scenarios_of_an_opensearch_that_lets_empty_roles_override_hold_on_one(
    urls: Mapping[str, str], tmp_path: Path
) -> None:
    about = [path for path in SHIPPED if needs_overrides(load(path))]
    assert about
    with servers.opensearch({OVERRIDES: "true"}) as overriding:
        held(about, {**urls, "opensearch": url(overriding)}, tmp_path, 2)


def test_no_scenario_is_left_out() -> None:
    """Each file is replayed above, and each of its backends has a verdict on the page, or the reason why there is none."""
    everywhere = [
        path
        for path in REPOSITORY.glob("scenarios/**/*.yaml")
        if path.read_text("utf-8").startswith("schema: arecall/")
    ]
    assert sorted(everywhere) == SHIPPED
    _, rest = PAGE.read_text("utf-8").split("\n## ", 1)
    rows = re.findall(r"^\| (\w+/[\w-]+) +\|(.*)\|$", rest.split("\n## ")[0], re.MULTILINE)
    assert sorted(of for of, _ in rows) == sorted(map(name, SHIPPED))
    for of, cells in rows:
        verdicts = [cell.strip() for cell in cells.split("|")][: len(BACKENDS)]
        assert len(verdicts) == len(BACKENDS)
        for backend, verdict in zip(BACKENDS, verdicts, strict=True):
            assert verdict in ("holds", "holds in part", "cannot express")
            if verdict != "holds":
                assert [line for line in lines(1, of) if re.match(rf"- {of} on [a-z, ]*\b{backend}\b.*: cannot", line)]


def test_there_are_enough_of_each_kind() -> None:
    kinds = [path.parent.name for path in SHIPPED]
    assert kinds.count("revocation") >= 12
    assert kinds.count("role_union") >= 8
    assert kinds.count("chunks") >= 8
