"""Time the Casbin adapter against the engine's own ways of answering, and say the peak memory of each.

    python benchmarks/casbin.py [--full] [SCENARIO ...]

Every scenario runs in a process of its own. FastEnforcer and enforce() are timed on a sample of pairs and extrapolated
to all of them, unless --full puts every pair to FastEnforcer. The data is that of the tests (`ARECALL_TEST_DATA`).
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from arecall.adapter import Silent
from arecall.capture import capture
from arecall_adapters.casbin import CasbinAdapter, connect, from_enforcer

T = TypeVar("T")

FLAT = """
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.obj == p.obj && r.act == p.act
"""

ROLES = """
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[role_definition]
g = _, _
g2 = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = g(r.sub, p.sub) && g2(r.obj, p.obj) && r.act == p.act
"""

PATTERNS = """
[request_definition]
r = sub, dom, obj, act
[policy_definition]
p = sub, dom, obj, act, eft
[role_definition]
g = _, _, _
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = g(r.sub, p.sub, r.dom) && r.dom == p.dom && keyMatch2(r.obj, p.obj) && regexMatch(r.act, p.act)
"""

DOCUMENTS = [str(number) for number in range(1, 1_401)]
PAIRS = 20_000
"""How many pairs FastEnforcer is timed on."""


@dataclass(frozen=True)
class Scenario:
    """An adapter to open, whom to ask about what, and how else the same pairs can be asked."""

    open: Callable[[], CasbinAdapter]
    principals: Sequence[str]
    documents: Sequence[str]
    request: Callable[[str, str], Sequence[str]]
    lines: int
    fast_enforcer: Callable[[], Any] | None = None


def main() -> None:
    """Run the scenarios, each in its own process."""
    # As a script's, this folder comes first on the path, and this file would be what `import casbin` finds.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--full", action="store_true", help="put every pair to FastEnforcer")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        (name,) = arguments.scenarios
        with tempfile.TemporaryDirectory() as folder:
            run(name, SCENARIOS[name](Path(folder)), full=arguments.full)
        return
    for name in arguments.scenarios or SCENARIOS:
        command = [sys.executable, __file__, name, "--here", *(["--full"] if arguments.full else [])]
        subprocess.run(command, check=True)


def run(name: str, scenario: Scenario, *, full: bool) -> None:
    """Time one scenario and print what was measured."""
    pairs = len(scenario.principals) * len(scenario.documents)
    print(
        f"{name}: {len(scenario.principals):,} principals x {len(scenario.documents):,} documents, {scenario.lines:,} lines"
    )
    loading, adapter = timed(scenario.open)
    listing, listed = timed(lambda: list(adapter.list_authorized(scenario.principals, scenario.documents, Silent())))
    allowed = sum(len(found.allowed) for found in listed)
    print(
        f"  {adapter.method()}: loaded in {loading:.1f} s, listed in {listing:.2f} s ({allowed:,} of {pairs:,} pairs allowed)"
    )
    print(f"  peak memory so far: {peak():.0f} MB")
    whole, snapshot = timed(lambda: capture(adapter, scenario.principals, scenario.documents))
    sample = snapshot.record.sample
    assert sample is not None
    print(f"  capture, with {sample.asked:,} pairs asked again of enforce(): {whole:.1f} s; peak {peak():.0f} MB")
    each, _ = timed(lambda: [adapter.check(p, [d]) for p, d in some(scenario, 20)])
    print(f"  enforce(): {each / 20 * 1000:.1f} ms a pair, {each / 20 * pairs / 3600:,.1f} hours for all, extrapolated")
    if scenario.fast_enforcer is not None:
        engine = scenario.fast_enforcer()
        asked = some(scenario, PAIRS) if not full else [(p, d) for p in scenario.principals for d in scenario.documents]
        spent, answers = timed(lambda: [engine.enforce(*scenario.request(p, d)) for p, d in asked])
        expected = {found.principal: set(found.allowed) for found in listed}
        assert answers == [d in expected[p] for p, d in asked], "FastEnforcer answers otherwise"
        total = spent / len(asked) * pairs
        print(
            f"  FastEnforcer: {spent / len(asked) * 1000:.3f} ms a pair, {total:,.0f} s for all"
            f"{'' if full else ', extrapolated'}: {total / listing:,.0f} times the listing, {total / (loading + listing):,.0f}"
            " times loading and listing"
        )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return how long `work` took, and what it returned."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def peak() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def some(scenario: Scenario, count: int) -> list[tuple[str, str]]:
    """Draw pairs, the same each time."""
    draw = random.Random(0)
    return [(draw.choice(scenario.principals), draw.choice(scenario.documents)) for _ in range(count)]


# -- scenarios ------------------------------------------------------------------------------------------------------------


def assignments(name: str) -> Mapping[str, Sequence[str]]:
    """Read which permissions each user of an organisation holds."""
    root = Path(os.environ.get("ARECALL_TEST_DATA") or Path(__file__).parents[2] / "shared")
    held: dict[str, list[str]] = {}
    with gzip.open(root / "data" / "upa" / f"{name}.tsv.gz", "rt") as file:
        next(file)
        for line in file:
            user, permission = line.split()
            held.setdefault(f"u{user.removeprefix('u')}", []).append(permission.removeprefix("p"))
    return held


def needed(held: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """Return the permission that each document needs."""
    permissions = sorted({permission for found in held.values() for permission in found}, key=int)
    return {document: f"p{permissions[(int(document) - 1) % len(permissions)]}" for document in DOCUMENTS}


def flat(name: str) -> Callable[[Path], Scenario]:
    """Make a scenario of one line for each user and permission; a document's permission is an attribute of it."""

    def made(folder: Path) -> Scenario:
        held = assignments(name)
        need = needed(held)
        (folder / "model.conf").write_text(FLAT)
        lines = [f"p, {user}, p{permission}, read" for user, found in held.items() for permission in found]
        (folder / "policy.csv").write_text("\n".join(lines))
        (folder / "objects.jsonl").write_text(
            "\n".join(f'{{"id": "{document}", "permission": "{permission}"}}' for document, permission in need.items())
        )
        options = {
            "model": folder / "model.conf",
            "policy": folder / "policy.csv",
            "objects": folder / "objects.jsonl",
            "request": "{principal}, {object.permission}, {action}",
        }
        return Scenario(
            lambda: connect(options),
            list(held),
            DOCUMENTS,
            lambda principal, document: (principal, need[document], "read"),
            len(lines),
            lambda: _fast_enforcer(folder / "model.conf", folder / "policy.csv"),
        )

    return made


def _fast_enforcer(model: Path, policy: Path) -> Any:
    import casbin

    return casbin.FastEnforcer(str(model), str(policy), cache_key_order=[0, 1])


def roles(name: str) -> Callable[[Path], Scenario]:
    """Make a scenario of users in roles (a role for each set of permissions) and documents in permissions."""

    def made(folder: Path) -> Scenario:
        held = assignments(name)
        sets = {frozenset(found) for found in held.values()}
        role = {found: f"role{number}" for number, found in enumerate(sorted(sets, key=sorted))}
        lines = [f"p, {role[found]}, p{permission}, read" for found in role for permission in sorted(found)]
        lines += [f"g, {user}, {role[frozenset(found)]}" for user, found in held.items()]
        lines += [f"g2, {document}, {permission}" for document, permission in needed(held).items()]
        (folder / "model.conf").write_text(ROLES)
        (folder / "policy.csv").write_text("\n".join(lines))
        options = {"model": folder / "model.conf", "policy": folder / "policy.csv"}
        return Scenario(lambda: connect(options), list(held), DOCUMENTS, lambda p, d: (p, d, "read"), len(lines))

    return made


def patterns(folder: Path) -> Scenario:
    """Make a scenario of 10,000 rules with patterns in 50 domains, and 5,000 memberships."""
    del folder
    draw = random.Random(0)
    domains = [f"tenant{number}" for number in range(50)]
    shelves = [f"/{area}/{number}" for area in ("wiki", "mail", "files", "code") for number in range(50)]
    documents = {f"{draw.choice(shelves)}/{number}": draw.choice(domains) for number in range(3_000)}
    users = [f"u{number}" for number in range(2_000)]
    rules = [
        [
            f"role{draw.randrange(40)}",
            domain,
            draw.choice(shelves) + draw.choice(("/*", "/:id")),
            draw.choice(("read", ".*")),
            effect,
        ]
        for domain in domains
        for effect in ["allow"] * 180 + ["deny"] * 20
    ]
    memberships = [[draw.choice(users), f"role{draw.randrange(40)}", draw.choice(domains)] for _ in range(5_000)]

    def opened() -> CasbinAdapter:
        import casbin

        enforcer = casbin.Enforcer(casbin.Enforcer.new_model(text=PATTERNS))
        enforcer.get_model()["p"]["p"].policy.extend(rules)
        enforcer.get_model()["g"]["g"].policy.extend(memberships)
        enforcer.build_role_links()
        return from_enforcer(
            enforcer,
            request="{principal}, {object.domain}, {document}, {action}",
            objects={document: {"domain": domain} for document, domain in documents.items()},
        )

    return Scenario(
        opened,
        users,
        list(documents),
        lambda principal, document: (principal, documents[document], document, "read"),
        len(rules) + len(memberships),
    )


SCENARIOS: Mapping[str, Callable[[Path], Scenario]] = {
    "americas_small": flat("americas_small"),
    "americas_small-roles": roles("americas_small"),
    "patterns-and-domains": patterns,
    "customer": flat("customer"),
    "americas_large": flat("americas_large"),
}

if __name__ == "__main__":
    main()
