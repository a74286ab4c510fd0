"""What a scenario file holds: the types that it is decoded into, and that its published JSON Schema is made from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from arecall.record import Struct

SCHEMA = "arecall/scenario/1"
"""The form of the files that this version reads."""

Duration = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(ms|s|m)$", description="A time, as in 200ms, 5s or 2m.")]

Verdict = Literal["in_time", "late", "never", "flapping", "error"]
"""How soon a road shows a change: for good before the deadline; for good, but later; not until the end of the watch;
now and then; or it answered with an error at the end, which is no answer."""

Lists = dict[str, list[str]]
"""Documents or chunks, best first, by query."""


class Subjects(Struct, frozen=True, kw_only=True):
    """Whom something is given to."""

    principals: list[str] = []
    groups: list[str] = []
    everyone: bool = False


class Scope(Struct, frozen=True, kw_only=True):
    """Documents: by id, by the folders that they are in or below, and by attributes that they all have."""

    documents: list[str] = []
    folders: list[str] = []
    where: dict[str, str] = {}


class Group(Struct, frozen=True, kw_only=True):
    """The direct members of a group; groups may be members, to any depth."""

    principals: list[str] = []
    groups: list[str] = []


class Role(Struct, frozen=True, kw_only=True):
    """A named set of grants: whoever holds it may read what is in its scope."""

    to: Subjects = field(default_factory=Subjects)
    gives: Scope = field(default_factory=Scope)


class Folder(Struct, frozen=True, kw_only=True):
    """A folder: what it gives and forbids holds for all documents in and below it."""

    within: str | None = field(default=None, name="in")
    readers: Subjects = field(default_factory=Subjects)
    excluded: Subjects = field(default_factory=Subjects)


class Document(Struct, frozen=True, kw_only=True):
    """A document. Its owner and its readers may read it, unless they are excluded.

    `chunks` are parts of it by id, each with its text: documents of their own to a backend, which hold a copy of the
    access of their document as it was when they were indexed.
    """

    owner: str | None = None
    folder: str | None = None
    attributes: dict[str, str] = {}
    version: str = ""
    readers: Subjects = field(default_factory=Subjects)
    excluded: Subjects = field(default_factory=Subjects)
    text: str = ""
    chunks: dict[str, str] = {}


class World(Struct, frozen=True, kw_only=True):
    """Who there is and what there is before the first stage."""

    principals: list[str]
    suspended: list[str] = []
    groups: dict[str, Group] = {}
    roles: dict[str, Role] = {}
    folders: dict[str, Folder] = {}
    documents: dict[str, Document]


# -- changes -----------------------------------------------------------------------------------------------------------


class Place(Struct, frozen=True, kw_only=True, tag_field="do"):
    """A change at one document or one folder; exactly one of them is named."""

    document: str | None = None
    folder: str | None = None


class Grant(Place, frozen=True, kw_only=True, tag="grant"):
    """Let somebody read a document, or everything in and below a folder."""

    to: Subjects


class Revoke(Place, frozen=True, kw_only=True, tag="revoke"):
    """Take a grant back, exactly as it was given."""

    from_: Subjects = field(name="from")


class Exclude(Place, frozen=True, kw_only=True, tag="exclude"):
    """Forbid a document or folder to somebody, whatever else grants it."""

    subjects: Subjects = field(name="from")


class Lift(Place, frozen=True, kw_only=True, tag="lift"):
    """Take an exclusion back, exactly as it was given."""

    subjects: Subjects = field(name="of")


class Move(Place, frozen=True, kw_only=True, tag="move"):
    """Put a document or folder into another folder, or (without `to`) into none."""

    to: str | None = None


class AddMember(Struct, frozen=True, kw_only=True, tag_field="do", tag="add_member"):
    """Put principals or groups into a group."""

    group: str
    principals: list[str] = []
    groups: list[str] = []


class RemoveMember(Struct, frozen=True, kw_only=True, tag_field="do", tag="remove_member"):
    """Take direct members out of a group."""

    group: str
    principals: list[str] = []
    groups: list[str] = []


class GiveRole(Struct, frozen=True, kw_only=True, tag_field="do", tag="give_role"):
    """Give a role to somebody."""

    role: str
    to: Subjects


class TakeRole(Struct, frozen=True, kw_only=True, tag_field="do", tag="take_role"):
    """Take a role from those that it was given to."""

    role: str
    from_: Subjects = field(name="from")


class ChangeRole(Struct, frozen=True, kw_only=True, tag_field="do", tag="change_role"):
    """Let a role give something else."""

    role: str
    gives: Scope


class Suspend(Struct, frozen=True, kw_only=True, tag_field="do", tag="suspend"):
    """Let principals read nothing at all, chunks included."""

    principals: list[str]


class Reinstate(Struct, frozen=True, kw_only=True, tag_field="do", tag="reinstate"):
    """End a suspension."""

    principals: list[str]


class Add(Struct, frozen=True, kw_only=True, tag_field="do", tag="add"):
    """Add a document; its chunks are indexed with it."""

    document: str
    as_: Document = field(name="as")


class Delete(Struct, frozen=True, kw_only=True, tag_field="do", tag="delete"):
    """Delete a document, and its chunks unless they are left behind in the index."""

    document: str
    leave_chunks: bool = False


class Replace(Struct, frozen=True, kw_only=True, tag_field="do", tag="replace"):
    """Replace a document by another version, with an access of its own.

    Its chunks are those of the new version, unless the old ones are left behind: then it must name none.
    """

    document: str
    as_: Document = field(name="as")
    leave_chunks: bool = False


class Retag(Struct, frozen=True, kw_only=True, tag_field="do", tag="set_attributes"):
    """Give a document other attributes than it had."""

    document: str
    attributes: dict[str, str]


class Rechunk(Struct, frozen=True, kw_only=True, tag_field="do", tag="rechunk"):
    """Cut a document into other chunks, indexed with its access of now; chunks that were there are removed."""

    document: str
    chunks: dict[str, str]


class Reindex(Struct, frozen=True, kw_only=True, tag_field="do", tag="reindex"):
    """Bring the access of chunks up to date with their documents; of all chunks unless some documents or chunks are named.

    A chunk whose document is gone is removed.
    """

    documents: list[str] = []
    chunks: list[str] = []


class Wait(Struct, frozen=True, kw_only=True, tag_field="do", tag="wait"):
    """Let time pass."""

    time: Duration = field(name="for")


class Native(Struct, frozen=True, kw_only=True, tag_field="do", tag="native"):
    """A change in a backend's own terms, by adapter; for scenarios with `native` in place of a neutral world."""

    by_backend: dict[str, dict[str, Any]]


Change = (
    Grant
    | Revoke
    | Exclude
    | Lift
    | Move
    | AddMember
    | RemoveMember
    | GiveRole
    | TakeRole
    | ChangeRole
    | Suspend
    | Reinstate
    | Add
    | Delete
    | Replace
    | Retag
    | Rechunk
    | Reindex
    | Wait
    | Native
)


# -- what must hold ----------------------------------------------------------------------------------------------------


class Moves(Struct, frozen=True, kw_only=True):
    """The pairs that a stage gives and takes: exactly these, by principal."""

    granted: Lists = {}
    revoked: Lists = {}


class Bound(Struct, frozen=True, kw_only=True):
    """A figure that must be within bounds. `filter`, `mean`, `principal` and `query` choose the row, as in a gate."""

    measure: Annotated[str, Meta(description="As in ARecall@3, U@10 or Leak@5.")]
    filter: Literal["post", "pre", "gap", "delivered", "none"] | None = None
    mean: Literal["restricted", "full", "all"] | None = None
    principal: str | None = None
    query: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    equals: float | None = None
    undefined: bool = False


class Within(Struct, frozen=True, kw_only=True):
    """How soon roads show the change of the stage, for good.

    Without `road` every road is meant; `citations` is what answers to the queries of `retrieval` cite. `settle` is how long
    the change must be seen without a break to be there for good; `watch` is how long is waited for it at most (by default
    twice the deadline, and a second).
    """

    road: str | None = None
    deadline: Duration
    verdict: Verdict = "in_time"
    settle: Duration = "300ms"
    watch: Duration | None = None


class Expect(Struct, frozen=True, kw_only=True):
    """What must hold after a stage, beside what the oracle says.

    `sees` names all that a principal sees; `not_sees` some of what it does not; `transition` all that the stage changed
    for anybody; `states` how many pairs of the run or of the delivered lists are in each state.
    """

    sees: Lists = {}
    not_sees: Lists = {}
    transition: Moves | None = None
    measures: list[Bound] = []
    states: dict[Literal["run", "delivered"], dict[str, int]] = {}
    within: list[Within] = []


class ByNature(Expect, frozen=True, kw_only=True):
    """What holds on one backend instead, and why that is its nature. A part that is left out is as for all."""

    because: str


class Retrieval(Struct, frozen=True, kw_only=True):
    """What was found: a run, delivered lists (in the file or in files beside it), or queries to ask of a live engine.

    `queries` are asked of the backend as each principal; what comes back is a delivered list of at most `depth`. They are also
    the questions that an application answers, for the road `citations`. `of` says whether lists hold documents or chunks;
    lists of a live engine hold chunks where the world has any.
    """

    run: Lists = {}
    run_file: str | None = None
    qrels: dict[str, dict[str, int]] = {}
    qrels_file: str | None = None
    delivered: dict[str, Lists] = {}
    delivered_file: str | None = None
    queries: dict[str, str] = {}
    depth: Annotated[int, Meta(ge=1, le=1000)] = 10
    of: Literal["documents", "chunks"] = "documents"


class Stage(Struct, frozen=True, kw_only=True):
    """A step: changes that are made one after the other, and what must hold after them.

    `retrieval` replaces that of the scenario from this stage on.
    """

    name: str
    changes: list[Change] = []
    expect: Expect = field(default_factory=Expect)
    by_backend: dict[str, ByNature] = {}
    retrieval: Retrieval | None = None


class NativeWorld(Struct, frozen=True, kw_only=True):
    """A backend's own model in place of the neutral world: files beside the scenario, and settings."""

    files: dict[str, str] = {}
    settings: dict[str, Any] = {}


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A scenario file. With `native`, `world` names principals and documents only."""

    schema: Literal["arecall/scenario/1"]
    title: str
    why: Annotated[str, Meta(description="The real reason to run it, in two sentences.")]
    world: World
    native: dict[str, NativeWorld] = {}
    retrieval: Retrieval = field(default_factory=Retrieval)
    repetitions: Annotated[int, Meta(ge=1, le=1000)] = 1
    stages: list[Stage]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a scenario, made from the types that it is decoded into."""
    schema = msgspec.json.schema(Scenario)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        **schema,
    }
