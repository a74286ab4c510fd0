"""What the adapter costs over a bare HTTP client that makes only the calls that are needed, in one run on one server.

200 principals of a real organisation and 1,400 documents; both sides ask with the same concurrency, both know the deadline
of the server's lists, and both must come to the same authorized sets. The adapter's sample, which a bare client would not
take, is left out; its two looks at the store (model, tuples, changes) are in. The same for BatchCheck over every pair of
fewer principals.

    python benchmarks/openfga.py [FOLDER OF TEST DATA]
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import urllib3

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import servers  # noqa: E402
from arecall.capture import capture  # noqa: E402
from arecall_adapters.openfga import store as stores  # noqa: E402
from arecall_adapters.openfga.options import open_store  # noqa: E402
from arecall_adapters.openfga.question import Question, TupleKey  # noqa: E402
from arecall_adapters.openfga.transport import Access, Transport  # noqa: E402

DOCUMENTS = [str(number) for number in range(1, 1_401)]
PRINCIPALS = 200
CHECKED = 20
CONCURRENCY = 4
DEADLINE = 3.0
ROUNDS = 3
BATCH = 50

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


class Bare:
    """A client that makes the calls and nothing else."""

    def __init__(self, url: str, store: str, model: str) -> None:
        self.pool = urllib3.PoolManager(maxsize=CONCURRENCY)
        self.url, self.model, self.requests = f"{url}/stores/{store}", model, 0

    def ask(self, path: str, body: dict[str, object]) -> bytes:
        self.requests += 1
        fixed = {"authorization_model_id": self.model, "consistency": "HIGHER_CONSISTENCY"}
        return self.pool.request("POST", self.url + path, json={**fixed, **body}).data

    def stream(self, user: str) -> set[str]:
        data = self.ask("/streamed-list-objects", {"type": "document", "relation": "viewer", "user": f"user:{user}"})
        return {json.loads(line)["result"]["object"].removeprefix("document:") for line in data.splitlines()}

    def check(self, user: str, documents: Sequence[str]) -> set[str]:
        checks = [
            {
                "tuple_key": {"user": f"user:{user}", "relation": "viewer", "object": f"document:{document}"},
                "correlation_id": document,
            }
            for document in documents
        ]
        result = json.loads(self.ask("/batch-check", {"checks": checks}))["result"]
        return {document for document, answer in result.items() if answer["allowed"]}


def by_hand(bare: Bare, road: str, people: Sequence[str]) -> dict[str, set[str]]:
    """Make the calls that are needed: a list a principal, or a batch for every fifty pairs."""
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        if road == "stream":
            return dict(zip(people, pool.map(bare.stream, people), strict=True))
        parts = [DOCUMENTS[start : start + BATCH] for start in range(0, len(DOCUMENTS), BATCH)]
        pairs = [(user, part) for user in people for part in parts]
        found: dict[str, set[str]] = {}
        for (user, _), allowed in zip(pairs, pool.map(lambda pair: bare.check(*pair), pairs), strict=True):
            found.setdefault(user, set()).update(allowed)
        return found


def compare(
    url: str, store_id: str, model: str, road: str, expected: dict[str, set[str]], calls: int, drift_tuples: int
) -> None:
    """Measure both, turn by turn, and print the medians."""
    bare_times, adapter_times = [], []
    requests = 0
    for _ in range(ROUNDS):
        bare = Bare(url, store_id, model)
        started = time.perf_counter()
        found = by_hand(bare, road, list(expected))
        bare_times.append(time.perf_counter() - started)
        assert bare.requests == calls, bare.requests
        assert found == expected
        options = {"road": road, "list_deadline": DEADLINE, "concurrency": CONCURRENCY, "drift_tuples": drift_tuples}
        with open_store(options, url, store_id) as adapter:
            started = time.perf_counter()
            taken = capture(adapter, expected, DOCUMENTS, sample=0)
            adapter_times.append(time.perf_counter() - started)
            requests = adapter.store.transport.requests
        assert {user: set(taken.authorized(user)) for user in expected} == expected
    bare_time, adapter_time = statistics.median(bare_times), statistics.median(adapter_times)
    print(
        f"  {road:7} {len(expected)} principals   bare {bare_time:6.2f} s ({calls} requests)"
        f"   adapter {adapter_time:6.2f} s ({requests} requests)   ratio {adapter_time / bare_time:.2f}"
    )


def main() -> None:
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(os.environ.get("ARECALL_TEST_DATA", ROOT.parent / "shared"))
    held, permissions = assignments(data / "data")
    people = sorted(held)[:PRINCIPALS]
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
        print(f"{len(people)} principals x {len(DOCUMENTS)} documents, {len(keys)} tuples, concurrency {CONCURRENCY}")
        # A store has not all been written in the seconds that the adapter looks back from the newest tuple.
        time.sleep(6)
        store.write(model, writes=[TupleKey("user:late", "holder", f"permission:p{permissions[0]}")])
        few = {user: expected[user] for user in people[:CHECKED]}
        print("asking about every pair, as without a stated deadline; tuples read before and after to see drift")
        compare(server.url, store_id, model, "check", few, CHECKED * (len(DOCUMENTS) // BATCH), 10_000)
        print("lists that are known to be whole; then without reading the tuples")
        compare(server.url, store_id, model, "stream", expected, len(people), 10_000)
        compare(server.url, store_id, model, "stream", expected, len(people), 1)
        print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
        transport.close()


if __name__ == "__main__":
    main()
