"""What the adapter costs over a bare HTTP client that makes only the calls that are needed, in one run on one server.

    python benchmarks/openfga.py [FOLDER OF TEST DATA] [--rounds 7] [--check-rounds 1] [--principals 200]

200 principals of a real organisation and 1,400 documents. Both sides ask with the same concurrency, both know the deadline
of the server's lists, both must come to the same authorized sets, and the bare client's requests are counted. They take
turns, each time in a process of its own; medians are compared. Two roads: BatchCheck over every pair (5,600 requests; some
three minutes a round), and a list a principal.

What is needed depends on what is claimed, so there is more than one bare client:

- "answers" makes the calls without which there is no authorized set, and learns nothing of what moved meanwhile.
- "+ feed" also looks at the newest model and at the tail of the changes feed, before and after.
- "+ tuples" also reads all tuples before and after. Only that shows a change which the server withholds from its feed, and
  the adapter's `none_seen` rests on it.

The adapter is run as it comes, and without reading tuples (`--drift-tuples 1`; its record then says `unverifiable`). Its
sample is off, but for a row of its own where both sides ask 2,000 single checks.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import multiprocessing
import os
import re
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import urllib3

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import servers  # noqa: E402
from arecall.capture import SAMPLE, capture  # noqa: E402
from arecall_adapters.openfga import store as stores  # noqa: E402
from arecall_adapters.openfga.options import DRIFT_TUPLES, open_store  # noqa: E402
from arecall_adapters.openfga.question import Question, TupleKey  # noqa: E402
from arecall_adapters.openfga.transport import Access, Transport  # noqa: E402

DOCUMENTS = [str(number) for number in range(1, 1_401)]
CONCURRENCY = 4
DEADLINE = 3.0
BATCH = 50
PAGE = 100
FEW = 50

MODEL = {
    "schema_version": "1.1",
    "type_definitions": [
        {"type": "user"},
        {
            "type": "permission",
            "relations": {"holder": {"this": {}}},
            "metadata": {"relations": {"holder": {"directly_related_user_types": [{"type": "user"}]}}},
        },
        {
            "type": "document",
            "relations": {"viewer": {"this": {}}},
            "metadata": {
                "relations": {"viewer": {"directly_related_user_types": [{"type": "permission", "relation": "holder"}]}}
            },
        },
    ],
}


def assignments(data: Path) -> tuple[dict[str, set[int]], list[int]]:
    """Return who holds which permissions, and all permissions in order."""
    held: dict[str, set[int]] = {}
    for line in gzip.decompress((data / "upa" / "americas_small.tsv.gz").read_bytes()).decode().splitlines()[1:]:
        user, permission = line.split()
        held.setdefault(f"u{user}", set()).add(int(permission))
    return held, sorted(set[int]().union(*held.values()))


@dataclass(frozen=True)
class Task:
    """What one side is to do.

    Attributes:
        url, store, model: of whom to ask.
        road: `stream` or `check`.
        expected: who may read what; every side must find that.
        tuples: how many tuples the store holds.
    """

    url: str
    store: str
    model: str
    road: str
    expected: dict[str, set[str]]
    tuples: int

    @property
    def calls(self) -> int:
        """How many requests the answers take."""
        return len(self.expected) * (1 if self.road == "stream" else -(-len(DOCUMENTS) // BATCH))


@dataclass(frozen=True)
class Cost:
    """What it took: wall time in seconds, requests, and the process's peak of resident memory in MiB."""

    seconds: float
    requests: int
    memory: float


class Bare:
    """A client that makes the calls and nothing else."""

    def __init__(self, task: Task) -> None:
        self.pool = urllib3.PoolManager(maxsize=CONCURRENCY)
        self.url, self.model = f"{task.url}/stores/{task.store}", task.model
        self.asked: list[str] = []  # appending is safe in threads, counting is not

    def ask(self, path: str, body: dict[str, object]) -> bytes:
        self.asked.append(path)
        return self.pool.request("POST", self.url + path, json={"consistency": "HIGHER_CONSISTENCY", **body}).data

    def decide(self, path: str, body: dict[str, object]) -> bytes:
        return self.ask(path, {"authorization_model_id": self.model, **body})

    def stream(self, user: str) -> set[str]:
        data = self.decide("/streamed-list-objects", {"type": "document", "relation": "viewer", "user": f"user:{user}"})
        return {json.loads(line)["result"]["object"].removeprefix("document:") for line in data.splitlines()}

    def check(self, user: str, documents: Sequence[str]) -> set[str]:
        checks = [
            {
                "tuple_key": {"user": f"user:{user}", "relation": "viewer", "object": f"document:{document}"},
                "correlation_id": document,
            }
            for document in documents
        ]
        result = json.loads(self.decide("/batch-check", {"checks": checks}))["result"]
        return {document for document, answer in result.items() if answer["allowed"]}

    def single(self, user: str, document: str) -> bool:
        key = {"user": f"user:{user}", "relation": "viewer", "object": f"document:{document}"}
        allowed: bool = json.loads(self.decide("/check", {"tuple_key": key}))["allowed"]
        return allowed

    def newest_model(self) -> str:
        self.asked.append("/authorization-models")
        answer = json.loads(self.pool.request("GET", f"{self.url}/authorization-models?page_size=1").data)
        return str(answer["authorization_models"][0]["id"])

    def feed(self, since: str) -> Any:
        self.asked.append("/changes")
        fields = {"page_size": str(PAGE), "start_time": since}
        return json.loads(self.pool.request("GET", f"{self.url}/changes", fields=fields).data)["changes"]

    def tuples(self) -> list[Any]:
        found: list[Any] = []
        token = ""
        while True:
            body: dict[str, object] = {"page_size": PAGE, **({"continuation_token": token} if token else {})}
            answer = json.loads(self.ask("/read", body))
            found += answer["tuples"]
            token = answer["continuation_token"]
            if not token:
                return found


def by_hand(task: Task, looks: Sequence[str], sample: int) -> Cost:
    """Make the calls that are needed: a list a principal or a batch for every fifty pairs, and the looks before and after."""
    bare = Bare(task)
    since = (datetime.now(UTC) - timedelta(seconds=5)).isoformat(timespec="milliseconds")

    def looked() -> list[Any]:
        at_feed = [bare.newest_model(), bare.feed(since)] if "feed" in looks else []
        return at_feed + ([bare.tuples()] if "tuples" in looks else [])

    started = time.perf_counter()
    before = looked()
    found = _answers(bare, task)
    if sample:
        again = [(user, document) for document in DOCUMENTS for user in task.expected][:sample]
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            answers = pool.map(lambda pair: bare.single(*pair), again)
        assert all(answer == (d in found[user]) for answer, (user, d) in zip(answers, again, strict=True))
    assert looked() == before
    seconds = time.perf_counter() - started
    assert found == task.expected
    pages = -(-task.tuples // PAGE)
    needed = task.calls + sample + 2 * (2 * ("feed" in looks) + pages * ("tuples" in looks))
    assert len(bare.asked) == needed, (len(bare.asked), needed)
    return Cost(seconds, needed, _peak())


def _answers(bare: Bare, task: Task) -> dict[str, set[str]]:
    people = list(task.expected)
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        if task.road == "stream":
            return dict(zip(people, pool.map(bare.stream, people), strict=True))
        parts = [DOCUMENTS[start : start + BATCH] for start in range(0, len(DOCUMENTS), BATCH)]
        pairs = [(user, part) for user in people for part in parts]
        found: dict[str, set[str]] = {}
        for (user, _), allowed in zip(pairs, pool.map(lambda pair: bare.check(*pair), pairs), strict=True):
            found.setdefault(user, set()).update(allowed)
        return found


def by_adapter(task: Task, drift_tuples: int, drift: str, sample: int) -> Cost:
    """Take a snapshot; `drift` is what its record must say."""
    options = {
        "road": task.road,
        "list_deadline": DEADLINE,
        "concurrency": CONCURRENCY,
        "drift_tuples": drift_tuples,
    }
    with open_store(options, task.url, task.store) as adapter:
        started = time.perf_counter()
        taken = capture(adapter, task.expected, DOCUMENTS, sample=sample)
        seconds = time.perf_counter() - started
        requests = adapter.store.transport.requests
    assert {user: set(taken.authorized(user)) for user in task.expected} == task.expected
    assert taken.record.drift == drift
    return Cost(seconds, requests, _peak())


def _peak() -> float:
    # Not getrusage: what it tells of a new process begins with what its parent had.
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


BARE: dict[str, tuple[tuple[str, ...], int]] = {
    "answers": ((), 0),
    "answers + feed": (("feed",), 0),
    "answers + feed + tuples": (("feed", "tuples"), 0),
    "answers + feed + tuples + sample": (("feed", "tuples"), SAMPLE),
}
"""Which looks a bare client takes, and how many single checks it makes again."""

ADAPTER: dict[str, tuple[int, str, int]] = {
    "as it comes": (DRIFT_TUPLES, "none_seen", 0),
    "without reading tuples": (1, "unverifiable", 0),
    "as it comes, with its sample": (DRIFT_TUPLES, "none_seen", SAMPLE),
}
"""Up to how many tuples the adapter reads, what its record then says, and how many single checks it makes again."""


def measured(task: Task, side: str) -> Cost:
    """Let one side do it, in a process of its own, so that neither finds anything warm and memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        if side in BARE:
            return process.submit(by_hand, task, *BARE[side]).result()
        return process.submit(by_adapter, task, *ADAPTER[side]).result()


def compare(task: Task, rounds: int, ratios: Sequence[tuple[str, str]]) -> None:
    """Measure all sides that are compared, turn by turn, and print medians, their ratios, and whether memory is flat."""
    if not rounds:
        return
    sides = list(dict.fromkeys(side for pair in ratios for side in reversed(pair)))
    costs: dict[str, list[Cost]] = {side: [] for side in sides}
    for turn in range(rounds):
        # Whoever comes after another finds the server as that one left it: the order turns.
        for side in sides[turn % len(sides) :] + sides[: turn % len(sides)]:
            costs[side].append(measured(task, side))
    print(f"{task.road} road, {len(task.expected)} principals, median of {rounds}")
    for side in sides:
        seconds = sorted(cost.seconds for cost in costs[side])
        who = "bare" if side in BARE else "adapter"
        print(
            f"  {who:8}{side:34}{statistics.median(seconds):8.2f} s  ({seconds[0]:.2f} to {seconds[-1]:.2f})"
            f"{costs[side][0].requests:7} requests{max(cost.memory for cost in costs[side]):6.0f} MiB"
        )
    for ours, bare in ratios:
        mine, its = ([cost.seconds for cost in costs[side]] for side in (ours, bare))
        print(
            f"  ratio {statistics.median(mine) / statistics.median(its):5.2f} (of the fastest {min(mine) / min(its):.2f})"
            f"   adapter {ours} : bare {bare}"
        )
    few = replace(task, expected=dict(itertools.islice(task.expected.items(), FEW)))
    side, many = ratios[0][0], len(task.expected)
    print(
        f"  peak memory of the adapter {side}: {measured(few, side).memory:.0f} MiB for {len(few.expected)} principals,"
        f" {max(cost.memory for cost in costs[side]):.0f} MiB for {many}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("ARECALL_TEST_DATA", ROOT.parent / "shared"))
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--principals", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7, help="of lists; 0 leaves them out")
    parser.add_argument("--check-rounds", type=int, default=1, help="of BatchCheck; 0 leaves it out")
    arguments = parser.parse_args()
    held, permissions = assignments(arguments.data / "data")
    people = sorted(held)[: arguments.principals]
    need = {document: permissions[number % len(permissions)] for number, document in enumerate(DOCUMENTS)}
    expected = {user: {d for d in DOCUMENTS if need[d] in held[user]} for user in people}
    with servers.openfga({"OPENFGA_LIST_OBJECTS_DEADLINE": f"{DEADLINE:g}s"}) as server:
        transport = Transport(Access(server.url))
        store_id = stores.create(transport, "benchmark")
        store = stores.Store(transport, store_id, Question("document", "viewer"))
        model = store.write_model(MODEL)
        keys = [TupleKey(f"permission:p{need[d]}#holder", "viewer", f"document:{d}") for d in DOCUMENTS]
        keys += [TupleKey(f"user:{u}", "holder", f"permission:p{p}") for u in people for p in sorted(held[u])]
        store.write(model, writes=keys)
        # A store has not all been written in the seconds that the adapter looks back from the newest tuple.
        time.sleep(6)
        store.write(model, writes=[TupleKey("user:late", "holder", f"permission:p{permissions[0]}")])
        time.sleep(6)
        transport.close()
        print(
            f"{len(people)} principals x {len(DOCUMENTS)} documents, {len(keys) + 1} tuples, concurrency {CONCURRENCY}"
        )

        def task(road: str) -> Task:
            return Task(server.url, store_id, model, road, expected, len(keys) + 1)

        plain = "as it comes"
        compare(
            task("stream"),
            arguments.rounds,
            [
                (plain, "answers"),
                (plain, "answers + feed"),
                (plain, "answers + feed + tuples"),
                ("without reading tuples", "answers"),
                ("without reading tuples", "answers + feed"),
                ("as it comes, with its sample", "answers + feed + tuples + sample"),
            ],
        )
        compare(task("check"), arguments.check_rounds, [(plain, "answers")])


if __name__ == "__main__":
    main()
