"""Public bug reports that have stages, as scenarios: what was there, what changed, and what must hold after each change.

The reports are read from the shared folder. What is said of access, rankings and figures is theirs; how their changes are made
is said here, for they tell of it in words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from arecall.evaluate import evaluate
from arecall.scenario import schema
from arecall.snapshot import Snapshot
from arecall.snapshot_file import read_snapshot
from unit.evaluate.shared_data import Incident, incidents
from unit.evaluate.worked import assert_delivered_as_worked, assert_run_as_worked

Story = Mapping[str, Any]


@dataclass(frozen=True)
class Staged:
    """How a report becomes a scenario.

    Attributes:
        world: what was there before.
        stages: what changed, the last of them what the report's figures are of, or of which nothing more changes.
        figures: the number of the stage, counted from 1, whose snapshot the figures are of.
    """

    world: Callable[[Story], schema.World]
    stages: Callable[[Story], Sequence[schema.Stage]]
    figures: int


def story(shared: Path, name: str) -> Story:
    """Read a report by the beginning of its name."""
    (file,) = (shared / "cases" / "incidents").glob(f"{name}-*.json")
    found: Story = json.loads(file.read_text("utf-8"))
    return found


def questions(shared: Path, told: Story) -> Sequence[Incident]:
    """Return the questions of a report, with the figures that were worked by hand."""
    return [incident for incident in incidents(shared) if incident.name.split()[0] == told["id"]]


def scenario(told: Story, of: Staged) -> schema.Scenario:
    """Return the scenario of a report; its figures are what must hold at the stage that they are of."""
    stages = list(of.stages(told))
    stage = stages[of.figures - 1]
    found = retrieval(told)
    expect = msgspec.structs.replace(stage.expect, measures=bounds(told), sees=sees(told, stage.expect.sees))
    stages[of.figures - 1] = msgspec.structs.replace(stage, retrieval=found, expect=expect)
    return schema.Scenario(
        schema="arecall/scenario/1", title=told["title"], why=told["symptom"], world=of.world(told), stages=stages
    )


def sees(told: Story, beside: schema.Lists) -> schema.Lists:
    """Return who sees what in the end, by the report, and the chunks that the stage says are seen beside that."""
    return {who: [*documents, *beside.get(who, ())] for who, documents in told["authorized"].items()}


def retrieval(told: Story) -> schema.Retrieval:
    """Return the rankings, the judgements and what came back."""
    delivered: dict[str, schema.Lists] = {}
    for asked in told["queries"]:
        delivered.setdefault(asked["principal"], {})[asked["qid"]] = asked["returned"]
    return schema.Retrieval(
        run={asked["qid"]: asked["ranking"] for asked in told["queries"]},
        qrels={asked["qid"]: asked["qrels"] for asked in told["queries"]},
        delivered=delivered,
        of="chunks" if "chunks" in told["world"] else "documents",
    )


def bounds(told: Story) -> list[schema.Bound]:
    """Return the figures that were worked by hand, as what must hold of each principal."""
    found = []
    lists: dict[Literal["post", "pre", "delivered"], str]
    for asked in told["queries"]:
        lists = {"post": "right_post_filter", "pre": "right_pre_filter", "delivered": "measured_on_returned"}
        for filtering, name in lists.items():
            values = [("ARecall", asked[name]["arecall"]["value"])]
            if filtering == "delivered":
                values.append(("U", asked[name]["u_at_k"]["value"]))
            for measure, value in values:
                held = {"undefined": True} if value is None else {"equals": value}
                found.append(
                    schema.Bound(
                        measure=f"{measure}@{asked['k']}", filter=filtering, principal=asked["principal"], **held
                    )
                )
    return found


def watched(number: int, *within: schema.Within) -> Callable[[schema.Scenario], schema.Scenario]:
    """Return an edit that expects something of roads at a stage."""

    def edit(made: schema.Scenario) -> schema.Scenario:
        stages = list(made.stages)
        expect = msgspec.structs.replace(stages[number - 1].expect, within=list(within))
        stages[number - 1] = msgspec.structs.replace(stages[number - 1], expect=expect)
        return msgspec.structs.replace(made, stages=stages)

    return edit


def snapshots(folder: Path, backend: str) -> Sequence[Snapshot]:
    """Read what was recorded of each stage on a backend, in the first run."""
    (place,) = folder.glob(f"seen/*/*/{backend}/1")
    return [read_snapshot(place / f"{n}-snapshot.json") for n in range(len(list(place.glob("*-snapshot.json"))))]


def assert_as_worked(shared: Path, told: Story, snapshot: Snapshot) -> None:
    """Hold a snapshot's evaluation to the report's figures, with numerators and denominators."""
    for incident in questions(shared, told):
        case = incident.case
        for run, delivered in (({incident.query: incident.ranking}, None), (None, incident.of_delivered.delivered)):
            result = evaluate(
                snapshot=snapshot,
                qrels=case.qrels,
                run=run,
                delivered=delivered,
                chunks=case.chunks,
                ks=list(case.ks),
                complete_ranking=case.complete_ranking,
                draws=0,
            )
            (assert_run_as_worked if run else assert_delivered_as_worked)(result, incident)


# -- the reports -------------------------------------------------------------------------------------------------------


def only(*principals: str) -> schema.Subjects:
    """Return principals as a file names them."""
    return schema.Subjects(principals=list(principals))


def by_name(told: Story) -> schema.World:
    """Return a world in which each document names its readers, and those that nobody is said to read have none."""
    readers: dict[str, list[str]] = {document: [] for document in told["world"]["documents"]}
    for who, _, document in told["world"]["grants"]:
        readers[document].append(who)
    return schema.World(
        principals=told["world"]["principals"],
        documents={name: schema.Document(readers=only(*who)) for name, who in readers.items()},
    )


def in_a_folder(told: Story) -> schema.World:
    """The reader is one of the folder that the document is in."""
    (who, _, folder), (_, _, document) = told["world"]["grants"]
    name = folder.removeprefix("folder:")
    return schema.World(
        principals=told["world"]["principals"],
        folders={name: schema.Folder(readers=only(who))},
        documents={document: schema.Document(folder=name)},
    )


def with_a_group(told: Story) -> schema.World:
    """One document is for the group, the other for one of its members."""
    ((group, members),) = told["world"]["groups"].items()
    (_, _, shared), (who, _, own) = told["world"]["grants"]
    return schema.World(
        principals=told["world"]["principals"],
        groups={group: schema.Group(principals=members)},
        documents={
            shared: schema.Document(readers=schema.Subjects(groups=[group])),
            own: schema.Document(readers=only(who)),
        },
    )


def with_chunks(told: Story) -> schema.World:
    """Both documents are still for the one reader, and so are all of their chunks."""
    (who,) = told["world"]["principals"]
    chunks: dict[str, dict[str, str]] = {}
    for chunk, document in told["world"]["chunks"].items():
        chunks.setdefault(document, {})[chunk] = f"a part of {document}"
    return schema.World(
        principals=[who],
        documents={name: schema.Document(readers=only(who), chunks=of) for name, of in chunks.items()},
    )


def stage(name: str, *changes: schema.Change, **expect: Any) -> schema.Stage:
    """Return a stage."""
    return schema.Stage(name=name, changes=list(changes), expect=schema.Expect(**expect))


def moves(granted: schema.Lists | None = None, revoked: schema.Lists | None = None) -> schema.Moves:
    """Return what a stage gives and takes."""
    return schema.Moves(granted=granted or {}, revoked=revoked or {})


STAGED: Mapping[str, Staged] = {
    "F03": Staged(
        in_a_folder,
        lambda told: [
            stage("t0", sees=told["snapshots"]["t0"]),
            stage(
                "t1",
                schema.Revoke(folder="f", from_=only("ann")),
                transition=moves(revoked=told["snapshots"]["t0"]),
                states={"run": {"vacuous": 1}, "delivered": {"vacuous": 1}},
            ),
        ],
        figures=2,
    ),
    "F05": Staged(
        by_name,
        lambda told: [
            stage("0: check, cached", sees=told["engine_view"]),
            stage(
                "1: revoke d1",
                schema.Revoke(document="d1", from_=only("ann")),
                transition=moves(revoked={"ann": ["d1"]}),
            ),
        ],
        figures=2,
    ),
    "F06": Staged(
        by_name,
        lambda _: [
            stage("list cached: d1 d2", sees={"u": ["d1", "d2"]}),
            stage(
                "revoke d1, grant d3",
                schema.Revoke(document="d1", from_=only("u")),
                schema.Grant(document="d3", to=only("u")),
                transition=moves({"u": ["d3"]}, {"u": ["d1"]}),
            ),
        ],
        figures=2,
    ),
    "F07": Staged(
        with_a_group,
        lambda told: [
            stage("full sync", sees=told["engine_view"]),
            stage(
                "remove bob from site",
                schema.RemoveMember(group="site", principals=["bob"]),
                transition=moves(revoked={"bob": ["d1"]}),
            ),
            stage("incremental sync", schema.Wait(time="1s"), transition=moves()),
        ],
        figures=3,
    ),
    "F27": Staged(
        with_chunks,
        lambda _: [
            stage("ann could read d1 and d2", sees={"ann": ["d1", "c1", "c2", "c3", "d2", "c4"]}),
            stage(
                "revoke d1; chunks c1, c2 updated, c3 not",
                schema.Revoke(document="d1", from_=only("ann")),
                schema.Reindex(chunks=["c1", "c2"]),
                sees={"ann": ["c3", "c4"]},
                transition=moves(revoked={"ann": ["d1", "c1", "c2"]}),
            ),
        ],
        figures=2,
    ),
    "F28": Staged(
        by_name,
        lambda told: [
            stage("before", sees=told["authorized"]),
            stage(
                "d1 changes",
                schema.Replace(document="d1", as_=schema.Document(readers=only("ann"), text="other")),
                transition=moves(),
            ),
            stage("the permission pass", schema.Wait(time="60s"), sees=told["authorized"], transition=moves()),
        ],
        figures=2,
    ),
}
"""The reports that have stages, by the beginning of their names."""
