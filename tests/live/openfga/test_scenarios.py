"""Scenarios on a running OpenFGA: the same access as elsewhere on every road, under each consistency; and its own stores."""

from __future__ import annotations

from pathlib import Path

import pytest

import servers
from arecall.adapter import Native
from arecall.errors import ArecallError, UsageError
from arecall.scenario import recording
from arecall.scenario.judging import Verdicts, judge
from arecall.scenario.loader import load
from arecall.scenario.running import named, replay
from arecall_adapters import containers
from arecall_adapters import openfga as fga
from arecall_adapters.casbin import ADAPTER as CASBIN
from arecall_adapters.memory import ADAPTER as MEMORY
from servers import Server
from unit.scenario.adapters import problems
from unit.scenario.files import SMALL, edited, write

pytestmark = pytest.mark.live

ROADS = {f"{road}{mode}" for road in ("check", "list") for mode in ("", " (HIGHER_CONSISTENCY)", " (MINIMIZE_LATENCY)")}


def replayed(scenario: Path, folder: Path, server: str | None) -> Verdicts:
    with recording.new(folder / "recording") as aside:
        replay(
            named([load(scenario)]),
            [fga.ADAPTER, MEMORY, CASBIN],
            aside,
            servers={"openfga": server} if server else None,
        )
        return judge(aside)


def test_the_small_scenario_holds_on_every_road_and_backends_agree(tmp_path: Path, openfga: Server) -> None:
    text = edited("{road: check, deadline: 2s}", "{deadline: 5s}")
    verdicts = replayed(write(tmp_path, text), tmp_path, openfga.url)
    (one,) = verdicts.scenarios
    assert problems(verdicts, "openfga") == []
    assert one.status == "holds"
    assert {(road.road, road.verdict) for road in one.backends["openfga"].roads} == {
        (road, "in_time") for road in ROADS
    }
    assert [agreement.status for agreement in one.agreement] == ["holds", "holds"]


def test_a_throw_away_server_is_started_and_its_image_is_on_record(tmp_path: Path, openfga: Server) -> None:
    del openfga  # there is an engine, or the test would not run
    path = write(tmp_path, SMALL)
    with recording.new(tmp_path / "recording") as aside:
        replay(named([load(path)]), [fga.ADAPTER], aside)
        assert judge(aside).exit_status == 0
    snapshot = tmp_path / "recording" / "seen" / tmp_path.name / "small" / "openfga" / "1" / "0-snapshot.json"
    assert f"{containers.name('openfga').partition('@')[0]}@sha256:" in snapshot.read_text("utf-8")


def test_a_cached_check_is_a_road_that_is_late_while_the_firm_one_is_in_time(tmp_path: Path) -> None:
    cache = {"OPENFGA_CHECK_QUERY_CACHE_ENABLED": "true", "OPENFGA_CHECK_QUERY_CACHE_TTL": "3s"}
    text = edited(
        "      within:\n        - {road: check, deadline: 2s}\n",
        """\
      within:
        - {road: check (HIGHER_CONSISTENCY), deadline: 1s}
        - {road: check (MINIMIZE_LATENCY), deadline: 1s, verdict: late, watch: 20s}
""",
    )
    with servers.openfga(cache) as server:
        verdicts = replayed(write(tmp_path, text), tmp_path, server.url)
    assert problems(verdicts, "openfga") == []


STORE = """\
model: |
  model
    schema 1.1
  type user
  type wiki
    relations
      define reader: [user]
tuples:
  - {user: "user:ann", relation: reader, object: "wiki:memo"}
"""

NATIVE = """\
schema: arecall/scenario/1
title: Native
why: For tests. Nobody else.
world:
  principals: [ann, bob]
  documents: {memo: {}, plan: {}}
native:
  openfga:
    files: {store: store.fga.yaml}
    settings: {type: wiki, relation: reader}
stages:
  - name: before
    expect: {sees: {ann: [memo], bob: []}}
  - name: handed over
    changes:
      - do: native
        by_backend:
          openfga:
            delete: [{user: "user:ann", relation: reader, object: "wiki:memo"}]
            write: [{user: "user:bob", relation: reader, object: "wiki:memo"}]
    expect:
      transition: {revoked: {ann: [memo]}, granted: {bob: [memo]}}
      within: [{deadline: 5s}]
"""


def test_a_store_file_is_replayed_as_it_is(tmp_path: Path, openfga: Server) -> None:
    (tmp_path / "store.fga.yaml").write_text(STORE, "utf-8")
    verdicts = replayed(write(tmp_path, NATIVE), tmp_path, openfga.url)
    (one,) = verdicts.scenarios
    assert problems(verdicts, "openfga") == []
    assert (one.backends["openfga"].status, one.backends["casbin"].status) == ("holds", "cannot")
    assert {road.road for road in one.backends["openfga"].roads} == ROADS


def test_a_native_world_that_cannot_be_meant_is_refused(tmp_path: Path, openfga: Server) -> None:
    store = tmp_path / "store.fga.yaml"
    store.write_text(STORE, "utf-8")
    with fga.empty(openfga.url) as adapter:
        with pytest.raises(UsageError, match="names a file `store`"):
            adapter.provision_native(Native())
        with pytest.raises(UsageError, match="openfga has no setting 'relatoin'"):
            adapter.provision_native(Native({"store": store}, {"relatoin": "reader"}))
        with pytest.raises(ArecallError, match="has no relation 'writer'"):
            adapter.provision_native(Native({"store": store}, {"type": "wiki", "relation": "writer"}))
        with pytest.raises(UsageError, match="a native change of openfga has no 'add'"):
            adapter.apply_native({"add": []})
        with pytest.raises(UsageError, match="is no list of tuples"):
            adapter.apply_native({"write": ["user:ann"]})
