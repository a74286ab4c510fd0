"""What the adapters of Elasticsearch and OpenSearch cost over a bare HTTP client that fetches the same pages.

    python benchmarks/dls.py [elasticsearch opensearch] [--documents 100000] [--principals 50] [--rounds 5]

Every principal's documents, by run-as or impersonation, in one point in time. Both sides ask with the same concurrency; both
must come to the known sets, and their requests for pages are counted and must be the same. They take turns, each time in
a process of its own; medians are compared. The bare client makes no other request than to open and close the point in time, and
looks at nothing but ids: not at shards, totals, roles, or whom the engine takes it for. The adapter's sample is off.

Ends with 1 if a ratio is over the limit. Memory is the peak of the process; the snapshot itself keeps four bytes a pair.
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import re
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import urllib3

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import servers  # noqa: E402
from arecall.capture import capture  # noqa: E402
from arecall_adapters import elasticsearch, opensearch  # noqa: E402
from arecall_adapters.dls.point_in_time import KEEP_ALIVE, ONLY, PAGE  # noqa: E402
from arecall_adapters.dls.wire import Access, Wire  # noqa: E402
from arecall_adapters.elasticsearch.engine import ElasticsearchEngine  # noqa: E402
from arecall_adapters.elasticsearch.wire import ElasticsearchWire  # noqa: E402
from arecall_adapters.opensearch.engine import API, OpenSearchEngine  # noqa: E402
from arecall_adapters.opensearch.wire import OpenSearchWire  # noqa: E402

INDEX = "benchmark"
TEAMS = 10
CONCURRENCY = 4
LIMIT = 1.3
FEW = 10
BULK = 5_000

RUN_AS = {"elasticsearch": "es-security-runas-user", "opensearch": "opendistro_security_impersonate_as"}


def held(principal: int) -> set[int]:
    """The teams of a principal: one to seven of the ten."""
    return {team for team in range(TEAMS) if principal >> (team % 6) & 1} | {principal % TEAMS}


@dataclass(frozen=True)
class Task:
    """What one side is to do: list `documents` documents, of which each of ten teams reads a tenth, for `principals` people."""

    engine: str
    url: str
    user: str
    password: str
    documents: int
    principals: int

    @property
    def people(self) -> list[str]:
        return [f"person-{number}" for number in range(self.principals)]

    def expected(self, number: int) -> set[str]:
        teams = held(number)
        return {str(document) for document in range(self.documents) if document % TEAMS in teams}

    @property
    def pages(self) -> int:
        """How many pages hold all of it: everything once, and each principal's part."""
        sizes = [self.documents, *(len(self.expected(number)) for number in range(self.principals))]
        return sum(-(-size // PAGE) for size in sizes)


@dataclass(frozen=True)
class Cost:
    """What it took: seconds on the clock and of the process's CPU, requests for pages, all requests, peak memory in MiB."""

    seconds: float
    cpu: float
    pages: int
    requests: int
    memory: float


class Bare:
    """A client that fetches pages and nothing else."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.pool = urllib3.PoolManager(maxsize=CONCURRENCY)
        credentials = base64.b64encode(f"{task.user}:{task.password}".encode()).decode()
        self.headers = {"authorization": f"Basic {credentials}", "content-type": "application/json"}
        self.asked: list[str] = []  # appending is safe in threads, counting is not
        self.pit = ""

    def ask(self, method: str, path: str, body: Any = None, person: str = "") -> Any:
        self.asked.append(path)
        headers = {**self.headers, RUN_AS[self.task.engine]: person} if person else self.headers
        data = json.dumps(body) if body is not None else None
        answer = self.pool.request(method, self.task.url + path, body=data, headers=headers)
        assert answer.status == 200, answer.data
        return json.loads(answer.data)

    def open(self) -> None:
        if self.task.engine == "elasticsearch":
            self.pit = self.ask("POST", f"/{INDEX}/_pit?keep_alive={KEEP_ALIVE}")["id"]
        else:
            self.pit = self.ask("POST", f"/{INDEX}/_search/point_in_time?keep_alive={KEEP_ALIVE}")["pit_id"]

    def close(self) -> None:
        if self.task.engine == "elasticsearch":
            self.ask("DELETE", "/_pit", {"id": self.pit})
        else:
            self.ask("DELETE", "/_search/point_in_time", {"pit_id": [self.pit]})

    def everything(self, person: str = "") -> list[str]:
        found: list[str] = []
        body: dict[str, Any] = {
            "size": PAGE,
            "pit": {"id": self.pit, "keep_alive": KEEP_ALIVE},
            "_source": False,
            "track_total_hits": True,
            "sort": [{"_shard_doc": "asc"}],
        }
        while True:
            hits = self.ask("POST", f"/_search?{ONLY}", body, person)["hits"]
            found += [hit["_id"] for hit in hits["hits"]]
            if len(found) >= hits["total"]["value"]:
                return found
            body["search_after"] = hits["hits"][-1]["sort"]


def by_hand(task: Task) -> Cost:
    """Fetch all pages: everything once, then each principal's."""
    bare = Bare(task)
    started, cpu = time.perf_counter(), time.process_time()
    bare.open()
    everything = bare.everything()
    number = {document: at for at, document in enumerate(everything)}
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        found = [frozenset(map(number.__getitem__, ids)) for ids in pool.map(bare.everything, task.people)]
    bare.close()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    memory = _peak()
    for at, numbers in enumerate(found):
        assert {everything[each] for each in numbers} == task.expected(at)
    pages = sum("/_search?" in path for path in bare.asked)
    return Cost(seconds, cpu, pages, len(bare.asked), memory)


class Counting:
    """A wire that counts what is asked."""

    def __init__(self, wire: Wire) -> None:
        self.wire, self.url = wire, wire.url
        self.asked: list[str] = []

    def ask(self, method: str, path: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        self.asked.append(path)
        return self.wire.ask(method, path, *arguments, **more)

    def close(self) -> None:
        self.wire.close()


def by_adapter(task: Task, *, check: bool = True) -> Cost:
    """Take a snapshot of all of it; `check` holds it against what is known."""
    module = elasticsearch if task.engine == "elasticsearch" else opensearch
    options = {
        "url": task.url,
        "user": task.user,
        "password": task.password,
        "index": INDEX,
        "concurrency": CONCURRENCY,
    }
    with module.connect(options) as adapter:
        wire = adapter.engine.wire = Counting(adapter.engine.wire)
        started, cpu = time.perf_counter(), time.process_time()
        taken = capture(adapter, task.people, adapter.documents(), sample=0)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    memory = _peak()
    assert taken.record.drift == "none_seen"
    assert len(taken.documents) == task.documents
    for number, person in enumerate(task.people if check else ()):
        assert set(taken.authorized(person)) == task.expected(number), person
    pages = sum(path.startswith("/_search?") for path in wire.asked)
    return Cost(seconds, cpu, pages, len(wire.asked), memory)


def _peak() -> float:
    # Not getrusage: what it tells of a new process begins with what its parent had.
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


SIDES = {"bare": by_hand, "adapter": by_adapter}


def allocated(task: Task) -> float:
    """Take the snapshot once more, slowly, and return the most that was allocated at once, in MiB."""
    tracemalloc.start()
    by_adapter(task, check=False)
    return tracemalloc.get_traced_memory()[1] / 2**20


def apart(job: Callable[[Task], Any], task: Task) -> Any:
    """Do it in a process of its own, so that nobody finds anything warm and memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(job, task).result()


def measured(task: Task, side: str) -> Cost:
    """Let one side do it."""
    cost: Cost = apart(SIDES[side], task)
    assert cost.pages == task.pages, (side, cost.pages, task.pages)
    return cost


def compare(task: Task, rounds: int) -> float:
    """Measure both, turn by turn, print medians, their ratio, and whether memory is flat; return the ratio."""
    costs: dict[str, list[Cost]] = {side: [] for side in SIDES}
    for turn in range(rounds):
        for side in sorted(SIDES, reverse=bool(turn % 2)):
            costs[side].append(measured(task, side))
    pairs = sum(len(task.expected(number)) for number in range(task.principals))
    print(f"{task.engine}: {task.documents} documents x {task.principals} principals, {pairs} hits, {task.pages} pages")
    for side, its in costs.items():
        seconds = sorted(cost.seconds for cost in its)
        print(
            f"  {side:8}{statistics.median(seconds):8.2f} s  ({seconds[0]:.2f} to {seconds[-1]:.2f})"
            f"{statistics.median(cost.cpu for cost in its):8.2f} s of CPU"
            f"{its[0].requests:6} requests{max(cost.memory for cost in its):7.0f} MiB"
        )
    middle = {side: statistics.median(cost.seconds for cost in its) for side, its in costs.items()}
    ratio = middle["adapter"] / middle["bare"]
    fastest = min(c.seconds for c in costs["adapter"]) / min(c.seconds for c in costs["bare"])
    print(
        f"  ratio {ratio:5.2f} (of the fastest {fastest:.2f}; limit {LIMIT})   {rounds} rounds, concurrency {CONCURRENCY}"
    )
    few = replace(task, principals=min(FEW, task.principals))
    print(
        f"  memory of the adapter for {few.principals} and {task.principals} principals: peak of the process"
        f" {measured(few, 'adapter').memory:.0f} and {max(cost.memory for cost in costs['adapter']):.0f} MiB,"
        f" of its allocations {apart(allocated, few):.0f} and {apart(allocated, task):.0f} MiB",
        flush=True,
    )
    return ratio


def load(task: Task) -> None:
    """Index the documents, and make a role a team and the people who hold them."""
    access = Access(task.url, task.user, task.password)
    engine: ElasticsearchEngine | OpenSearchEngine
    queries: Mapping[str, Any] = {f"team-{team}": {"term": {"team": str(team)}} for team in range(TEAMS)}
    if task.engine == "elasticsearch":
        engine = ElasticsearchEngine(ElasticsearchWire(access))
        for name, query in queries.items():
            entry = {"names": [INDEX], "privileges": ["read"], "query": query}
            engine.wire.ask("PUT", f"/_security/role/{name}", {"indices": [entry]})
    else:
        engine = OpenSearchEngine(OpenSearchWire(access))
        for name, query in queries.items():
            allowed = {"index_patterns": [INDEX], "allowed_actions": ["read"], "dls": json.dumps(query)}
            engine.wire.ask("PUT", f"{API}/roles/{name}", {"index_permissions": [allowed]})
    settings = {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "-1"}
    mappings = {"properties": {"team": {"type": "keyword"}}}
    engine.wire.ask("PUT", f"/{INDEX}", {"settings": settings, "mappings": mappings})
    for start in range(0, task.documents, BULK):
        lines: list[dict[str, Any]] = []
        for document in range(start, min(start + BULK, task.documents)):
            lines += [{"index": {"_index": INDEX, "_id": str(document)}}, {"team": str(document % TEAMS)}]
        assert not engine.wire.ask("POST", "/_bulk", lines)["errors"]
    engine.wire.ask("POST", f"/{INDEX}/_forcemerge?max_num_segments=1")
    engine.wire.ask("POST", f"/{INDEX}/_refresh")
    engine.put_users(
        {person: [f"team-{team}" for team in sorted(held(number))] for number, person in enumerate(task.people)}
    )
    engine.wire.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", choices=list(RUN_AS), default=list(RUN_AS))
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--principals", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    ratios = []
    for engine in arguments.engines:
        start = servers.elasticsearch if engine == "elasticsearch" else servers.opensearch
        with start() as server:
            task = Task(engine, server.url, server.user, server.password, arguments.documents, arguments.principals)
            load(task)
            ratios.append(compare(task, arguments.rounds))
    if max(ratios) > LIMIT:
        sys.exit(f"over the limit of {LIMIT}")


if __name__ == "__main__":
    main()
