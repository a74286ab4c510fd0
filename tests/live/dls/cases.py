"""Public cases of document-level security, put into a cluster and asked through the road that a snapshot takes."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from live.dls.clusters import ADMIN, Cluster, findings, seen

ELASTICSEARCH = (
    "C01-simple-union",
    "C02-msearch",
    "C04-aggs",
    "C05-min-doc-count-zero",
    "C06-parent-child",
    "C07-terms-lookup-in-query",
    "C08-percolate-hidden-doc",
    "C09-scroll-totals",
    "C10-request-cache",
    "C12-alias-changes-the-answer",
    "C13-dls-and-fls-by-alias",
    "C14b-template-match-on-text-leaks",
    "C16-api-key-term",
    "C17-nested-filter",
    "C18-runtime-array",
    "C19-runtime-disabled",
    "C21-terms-enum",
    "C22-ccs-dls-fls",
    "C23-esql",
    "C24-data-stream",
    "C25-dls-with-fls",
    "C26-dls-before-fls",
    "C28-many-roles-duel",
    "C29-docs-click-dept",
    "C30-docs-missing-restriction-wins",
    "C32-api-key-second-role",
)

OPENSEARCH = (
    "D01-songs",
    "D02-filtered-alias",
    "D05b-empty-overrides-all-false",
    "D06-range-and-terms",
    "D07-multi-range",
    "D08-two-indices",
    "D09-user-attributes",
    "D10-date-math",
    "D11-index-patterns",
    "D13-indexPattern-dfm-false",
    "D13-wildcard-dfm-false",
    "D15-issue-1579",
)
"""Those that a server with default settings answers."""

OPENSEARCH_SET = ("D10-date-math", "D13-alias-dfm-true")
"""Those, or rows of those, that want a server with `SETTINGS`."""

SETTINGS = {
    "plugins.security.dfm_empty_overrides_all": "true",
    "plugins.security.unsupported.allow_now_in_dls": "true",
}

BY_NAME = {"C14b-template-match-on-text-leaks", "C29-docs-click-dept", "D09-user-attributes"}
"""Cases whose answers hang on the names of users and roles: documents hold them."""


@dataclass(frozen=True)
class Wanting:
    """What a case needs that not every image has, and how near to it a server without can come.

    Attributes:
        module: of the server.
        said: what a server without it says of the index.
        instead: what is put in place of parts of the case, by their keys; the answers stay the same.
    """

    module: str
    said: str
    instead: Mapping[tuple[str, ...], Any]


ROLE_OF_KEY = ("api_keys", "k", "role_descriptors", "index_access", "indices")

WANTING = {
    "C06-parent-child": Wanting(
        "parent-join",
        "The mapper type [join] declared on field [join_field] does not exist.",
        {("indices", "test", "mappings", "properties", "join_field"): {"type": "object", "enabled": False}},
    ),
    "C08-percolate-hidden-doc": Wanting(
        "percolator",
        "The mapper type [percolator] declared on field [query] does not exist.",
        {("indices", "query_index", "mappings", "properties", "query"): {"type": "object", "enabled": False}},
    ),
    "C18-runtime-array": Wanting(
        "lang-painless",
        "script_lang not supported [painless]",
        {
            ("indices", "index_dls", "mappings", "runtime"): {"obj.secret": {"type": "keyword"}},
            (*ROLE_OF_KEY, "query"): {"term": {"obj.secret": "mission"}},
        },
    ),
    "C19-runtime-disabled": Wanting(
        "lang-painless",
        "script_lang not supported [painless]",
        {
            ("indices", "index_dls", "mappings", "runtime"): {"object.secret": {"type": "keyword"}},
            (*ROLE_OF_KEY, "query"): {"term": {"object.secret": "mission"}},
        },
    ),
    "C21-terms-enum": Wanting(
        "constant-keyword",
        "The mapper type [constant_keyword] declared on field [ck] does not exist.",
        {
            ("indices", "test_security", "mappings", "properties", "ck"): {"type": "keyword"},
            ("roles", "dls_all_role", "indices", "query"): {"match_all": {}},
        },
    ),
}
"""Cases that the Elasticsearch which we build cannot run as they are written; the official one can."""


def without(case: Mapping[str, Any], wanting: Wanting) -> dict[str, Any]:
    """The case as a server without the module can run it."""
    found = copy.deepcopy(dict(case))
    for keys, value in wanting.instead.items():
        place: Any = found
        for key in keys[:-1]:
            place = place[key]
        for each in place if isinstance(place, list) else [place]:
            each[keys[-1]] = value
    return found


def load(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return found


@dataclass
class Built:
    """A case in a cluster: what its users are called there, and the keys that were made."""

    cluster: Cluster
    case: Mapping[str, Any]
    keys: Mapping[str, str]

    def principal(self, name: str) -> str:
        if self.case["users"].get(name, {}).get("superuser"):
            return ADMIN
        return name if name in self.keys else user_name(self.cluster, self.case, name)


def build(cluster: Cluster, case: Mapping[str, Any]) -> Built:
    """Put a case into a cluster. The names of indices get the cluster's prefix, and so do patterns: `*` means the case's
    own indices, and a server can be shared."""
    renamed = _renamed(cluster, case)
    for name, index in renamed["indices"].items():
        cluster.index(name, index["docs"], index["mappings"], index.get("aliases"), _routing(index["docs"]))
    cluster.roles({user_name(cluster, case, name): role for name, role in renamed["roles"].items()})
    users = {name: user for name, user in case["users"].items() if not user.get("superuser")}
    cluster.users(
        {
            user_name(cluster, case, name): {
                **user,
                "roles": [user_name(cluster, case, role) for role in user["roles"]],
            }
            for name, user in users.items()
        }
    )
    keys = {}
    for name, key in renamed.get("api_keys", {}).items():
        owner = key["owner"] and user_name(cluster, case, key["owner"])
        keys[name] = cluster.key(key["role_descriptors"], owner)
    return Built(cluster, case, keys)


def problems(built: Built, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what snapshots say otherwise than the rows; rows about one path are one snapshot, as a user would take it."""
    for target, together in itertools.groupby(sorted(rows, key=lambda row: row["target"]), lambda row: row["target"]):
        yield from _problems(built, target, list(together))


def _problems(built: Built, target: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    cluster = built.cluster
    by_get = any("get" in row for row in rows)
    snapshot = cluster.take(
        ",".join(pattern(cluster, name) for name in target),
        list(dict.fromkeys(built.principal(row["user"]) for row in rows)),
        credentials={**built.keys, ADMIN: cluster.admin},
        compare_paths="get" if by_get else None,
    )
    disagreed = {(each.principal, each.document) for each in findings(snapshot, "paths disagree")}
    for row in rows:
        principal = built.principal(row["user"])
        found = seen(snapshot, principal)
        # Where a path stands for several indices, the index is a part of the id.
        shown = found if isinstance(found, str) else {each.removeprefix(cluster.prefix) for each in found}
        right = isinstance(shown, str) if "error" in row else shown == set(row["visible"])
        if not right:
            yield f"{json.dumps(row)}: {found}"
        for document, answer in row.get("get", {}).items():
            found_by_get = ((principal, document) in disagreed) != (document in shown)
            if found_by_get != (answer != "missing"):
                yield f"{json.dumps(row)}: by get, {document} is {'there' if found_by_get else 'missing'}"
        unasked = set(snapshot.record.findings) - {"refused", "paths disagree"}
        if unasked:
            yield f"{json.dumps(row)}: findings {unasked}"


def pattern(cluster: Cluster, written: str) -> str:
    if written.startswith("/"):
        return f"/{cluster.prefix}{written[1:]}"
    return cluster.prefix + written


def user_name(cluster: Cluster, case: Mapping[str, Any], written: str) -> str:
    return written if case["id"] in BY_NAME else cluster.prefix + written


def _renamed(cluster: Cluster, case: Mapping[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(dict(case))
    found["indices"] = {pattern(cluster, name): index for name, index in found["indices"].items()}
    for index in found["indices"].values():
        index["aliases"] = {pattern(cluster, name): alias for name, alias in index.get("aliases", {}).items()}
        for field_ in index["mappings"].get("runtime", {}).values():
            field_.pop("_path", None)
        for document in index["docs"].values():
            for name, value in document.items():
                if isinstance(value, str) and value[:1] == "T" and value[1:] in DAYS:
                    document[name] = f"{datetime.now(UTC) + timedelta(DAYS[value[1:]]):%Y/%m/%d}"
    descriptors = [each for key in found.get("api_keys", {}).values() for each in key["role_descriptors"].values()]
    for role in [*found["roles"].values(), *descriptors]:
        for entry in role.get("indices", []):
            names = [entry["names"]] if isinstance(entry["names"], str) else entry["names"]
            entry["names"] = [pattern(cluster, name) for name in names]
            entry["privileges"] = [privilege.lower() for privilege in entry["privileges"]]
        for entry in role.get("index_permissions", []):
            entry["index_patterns"] = [pattern(cluster, name) for name in entry["index_patterns"]]
    return found


DAYS = {"-1d": -1, "": 0, "+1d": 1}


def _routing(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """A child lies with its parent."""
    joined = {document: source.get("join_field") for document, source in documents.items()}
    return {document: join["parent"] for document, join in joined.items() if isinstance(join, dict)}
