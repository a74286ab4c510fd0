"""The record of a snapshot: exactly what was asked of what, so that an outsider can judge the answer.

The structs below are the schema: files are decoded against them (unknown fields are refused) and the published JSON
Schema is generated from them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Drift = Literal["none_seen", "seen", "unverifiable"]


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An immutable, strictly decoded part of a file."""


class Policy(Struct, frozen=True):
    """Identity and digest of the policy that decided (store and model id, file names, index uuid; never a secret)."""

    identity: dict[str, str] = {}
    digest: str = ""


class Backend(Struct, frozen=True):
    """What an adapter says of its backend.

    `missing_acl` and `missing_identity` say how a document without access data and a principal that the backend does
    not know are read. `revision` changes whenever the policy does; an adapter that cannot tell leaves it None, and
    drift is then unverifiable. `settings` holds what alters decisions.
    """

    kind: str
    version: str
    identity: str
    missing_acl: Literal["deny", "allow", "error"]
    missing_identity: Literal["deny", "public_only", "allow", "error"]
    policy: Policy
    action: str = ""
    consistency: str = ""
    revision: str | None = None
    settings: dict[str, Any] = {}


class AdapterVersion(Struct, frozen=True):
    """Which adapter asked: its name, and the distribution and version it came from."""

    name: str
    distribution: str = ""
    version: str = ""


class Sample(Struct, frozen=True):
    """The pairs that were asked again through the plain point check, and how they were chosen.

    `asked` counts pairs, `allowed` those of them that the snapshot allows; `requested` is how many were wanted.
    `stopped` says whether the time budget (seconds) ended the sample early. A disagreement leaves no snapshot.
    """

    requested: int
    asked: int
    allowed: int
    seed: int
    budget_seconds: float
    stopped: bool


class Completeness(Struct, frozen=True):
    """How many principals and documents were asked about, and the count of each decision over all pairs."""

    principals: int
    documents: int
    decisions: dict[Literal["ALLOW", "DENY", "CONDITIONAL", "ERROR"], int]
    complete: bool


class Finding(Struct, frozen=True):
    """Something odd that an adapter saw beside the decisions (a stale chunk, a document that is not there).

    `kind` is one of the adapter's few words for it, `what` the sentence; principal and document are named where it is
    about them.
    """

    kind: str
    what: str
    principal: str = ""
    document: str = ""


class Found(Struct, frozen=True):
    """How many findings of a kind there were, and the first of them."""

    count: int
    first: list[Finding]


class Record(Struct, frozen=True):
    """What was asked of what, when, how, and how far the answer can be relied on. Times are UTC, RFC 3339."""

    backend: Backend
    adapter: AdapterVersion
    method: str
    universe_digest: str
    started: str
    ended: str
    drift: Drift
    completeness: Completeness
    sample: Sample | None = None
    arecall: str = ""
    notes: list[str] = []
    findings: dict[str, Found] = {}
