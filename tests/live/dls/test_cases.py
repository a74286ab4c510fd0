"""Public cases of document-level security, over the road that a snapshot takes. No case is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from arecall_adapters.dls.wire import Refused
from live.dls import cases
from live.dls.clusters import Cluster, open_cluster
from servers import Server

pytestmark = [pytest.mark.live, pytest.mark.data]


@pytest.fixture
def elastic(elasticsearch: Server, tmp_path: Path) -> Iterator[Cluster]:
    with open_cluster(elasticsearch, "elasticsearch", tmp_path) as cluster:
        yield cluster


@pytest.fixture
def opened(opensearch: Server, tmp_path: Path) -> Iterator[Cluster]:
    with open_cluster(opensearch, "opensearch", tmp_path) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("engine", "names"),
    [("elasticsearch", cases.ELASTICSEARCH), ("opensearch", cases.OPENSEARCH + cases.OPENSEARCH_SET)],
)
def test_every_case_is_run(shared: Path, engine: str, names: tuple[str, ...]) -> None:
    there = {file.stem for file in (shared / "cases" / engine).glob("*.json")}
    assert there == set(names)
    assert len(there) == {"elasticsearch": 26, "opensearch": 13}[engine]


@pytest.mark.parametrize("name", cases.ELASTICSEARCH)
def test_elasticsearch_shows_everyone_what_the_case_says(elastic: Cluster, shared: Path, name: str) -> None:
    case = cases.load(shared / "cases" / "elasticsearch", name)
    wanting = cases.WANTING.get(name)
    if wanting is not None and wanting.module not in modules(elastic):
        with pytest.raises(Refused) as refused:
            cases.build(elastic, case)
        assert wanting.said in str(refused.value)
        case = cases.without(case, wanting)
    agrees(elastic, case, case["expected"])


@pytest.mark.parametrize("name", cases.OPENSEARCH)
def test_opensearch_shows_everyone_what_the_case_says(opened: Cluster, shared: Path, name: str) -> None:
    case = cases.load(shared / "cases" / "opensearch", name)
    assert not any(case.get("settings", {}).values())
    agrees(opened, case, [row for row in case["expected"] if row.get("when", "default") == "default"])


@pytest.mark.parametrize("name", cases.OPENSEARCH_SET)
def test_opensearch_with_other_settings_shows_everyone_what_the_case_says(
    opensearch_set: Server, shared: Path, tmp_path: Path, name: str
) -> None:
    case = cases.load(shared / "cases" / "opensearch", name)
    with open_cluster(opensearch_set, "opensearch", tmp_path) as cluster:
        agrees(cluster, case, [row for row in case["expected"] if row.get("when") != "default"])


def agrees(cluster: Cluster, case: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> None:
    assert rows
    wrong = list(cases.problems(cases.build(cluster, case), rows))
    assert not wrong, "\n".join(wrong)


def modules(cluster: Cluster) -> set[str]:
    (node,) = cluster.ask("GET", "/_nodes/plugins")["nodes"].values()
    return {module["name"].removeprefix("x-pack-") for module in node["modules"]}
