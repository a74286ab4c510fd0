"""The least worlds that showed a wrong backend: each finds the fault that it is kept for, and holds on every right backend."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from arecall.adapter import Adapter
from arecall.scenario import recording
from arecall.scenario.compiling import compiled, steps
from arecall.scenario.judging import judge
from arecall.scenario.loader import load
from arecall.scenario.oracle import readable
from arecall.scenario.running import installed, named, replay
from arecall.testing.roads import take
from servers import Server
from unit.scenario.adapters import Time
from unit.scenario.wrong import WRONG

KEPT = {path.stem: path for path in sorted((Path(__file__).parent / "kept").glob("*.yaml"))}

FINDS: Mapping[str, str] = {
    "revoked-and-shown": "stale cache",
    "public-and-shown": "keeps what was public",
    "group-in-a-group": "drops nested groups",
    "in-two-groups": "intersects roles",
    "reindexed-in-part": "forgets chunks when it indexes again",
    "chunk-of-ones-own": "shows chunks to nobody",
    "granted-to-a-group": "over-grants",
    "deleted-and-added": "keeps the access of what it deletes",
    "left-the-group": "hears of a revocation late",
    "given-again": "refuses for good",
    "excluded-while-suspended": "lifts all at once",
}
"""What each of those that were made from a wrong backend is there to find."""


def differences(path: Path, opened: AbstractContextManager[Adapter]) -> list[str]:
    """Make the changes of a kept world one by one; say after which somebody sees other than the oracle says."""
    kept = load(path)
    found = []
    with opened as adapter:
        adapter.provision(compiled(kept.states[0]))
        for number, state in enumerate(kept.states):
            for change in kept.steps[number - 1] if number else ():
                for step in steps(change.change, change.before, change.after):
                    adapter.apply(step)
            shown = take(adapter, kept.principals, kept.universe)
            found += [
                f"{n} {who}"
                for n, who in [(number, p) for p in kept.principals]
                if shown.authorized(who) != readable(state, who)
            ]
    return found


@pytest.mark.parametrize("name", FINDS)
def test_a_kept_world_finds_what_it_is_kept_for(name: str) -> None:
    assert differences(KEPT[name], WRONG[FINDS[name]].adapter(Time())) != []


def test_every_world_that_finds_something_is_kept() -> None:
    assert set(FINDS) <= set(KEPT)


def hold_on(backends: Mapping[str, str | None], folder: Path) -> None:
    """Replay all of them as scenarios: everyone sees what the oracle says, and the backends agree."""
    with recording.new(folder / "recording") as aside:
        servers = {name: url for name, url in backends.items() if url is not None}
        replay(named([load(path) for path in KEPT.values()]), installed(list(backends)), aside, servers=servers)
        verdicts = judge(aside)
    told = {one.scenario: (one.status, [agreed.status for agreed in one.agreement]) for one in verdicts.scenarios}
    assert len(told) == len(KEPT)
    wrong = {name: status for name, (status, agreed) in told.items() if status != "holds" or set(agreed) - {"holds"}}
    assert not wrong, verdicts


def with_credentials(server: Server) -> str:
    return server.url.replace("://", f"://{server.user}:{server.password}@")


def test_kept_worlds_hold_on_backends_in_this_process(tmp_path: Path) -> None:
    hold_on({"memory": None, "casbin": None}, tmp_path)


@pytest.mark.live
def test_kept_worlds_hold_on_openfga(tmp_path: Path, openfga: Server) -> None:
    hold_on({"memory": None, "openfga": openfga.url}, tmp_path)


@pytest.mark.live
def test_kept_worlds_hold_on_elasticsearch(tmp_path: Path, elasticsearch: Server) -> None:
    hold_on({"memory": None, "elasticsearch": with_credentials(elasticsearch)}, tmp_path)


@pytest.mark.live
def test_kept_worlds_hold_on_opensearch(tmp_path: Path, opensearch: Server) -> None:
    hold_on({"memory": None, "opensearch": with_credentials(opensearch)}, tmp_path)
