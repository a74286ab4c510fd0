"""What an access path stands for: concrete indices, their identity, and other names for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arecall.errors import PolicyError
from arecall_adapters.dls.wire import Refused, Wire, of_the_account, path


@dataclass(frozen=True)
class Path:
    """An access path, resolved by the capturing account.

    Attributes:
        name: as it is asked for: an index, an alias, a data stream, a pattern, or several, joined by commas.
        indices: the uuid of each concrete index.
        aliases: the filter of each other name for one of them, by index and alias.
        states: the sequence numbers of each index when it was resolved. They tell that something was written, not that
            nothing was: a refresh changes what is seen and leaves them alone. None where they may not be read.
    """

    name: str
    indices: Mapping[str, str]
    aliases: Mapping[str, Mapping[str, Any]]
    states: Mapping[str, str] | None

    @property
    def concrete(self) -> bool:
        """Whether it is named by its indices, and not by an alias, a data stream or a pattern."""
        return set(self.name.split(",")) <= self.indices.keys()

    @property
    def names(self) -> list[str]:
        """Everything that a role may name and that says something of the path."""
        found = {*self.name.split(","), *self.indices}
        for aliases in self.aliases.values():
            found.update(aliases)
        return sorted(found)


def resolve(wire: Wire, name: str) -> Path:
    """Look up what `name` stands for.

    Raises:
        PolicyError: it names no index.
        BackendError: the capturing account may not look it up.
    """
    try:
        settings = wire.ask("GET", f"{path(name)}/_settings/index.uuid")
        aliases = _aliases(wire, name)
    except Refused as refused:
        if refused.status == 404:
            raise PolicyError(f"there is no index, alias or data stream {name!r}", "check --index") from None
        raise of_the_account(refused, f"look up {name}", "the index privilege view_index_metadata on it") from None
    indices = {index: str(each["settings"]["index"]["uuid"]) for index, each in settings.items()}
    if not indices:
        raise PolicyError(f"{name!r} matches no index", "check --index")
    return Path(
        name,
        dict(sorted(indices.items())),
        {index: each["aliases"] for index, each in sorted(aliases.items()) if each.get("aliases")},
        _states(wire, name),
    )


def _aliases(wire: Wire, name: str) -> dict[str, Any]:
    try:
        return wire.ask("GET", f"{path(name)}/_alias")
    except Refused as refused:
        # OpenSearch knows no aliases of a data stream, and says that there is no such index.
        if refused.status == 404:
            return {}
        raise


def _states(wire: Wire, name: str) -> dict[str, str] | None:
    try:
        stats = wire.ask(
            "GET", f"{path(name)}/_stats/refresh?level=shards&filter_path=indices.*.shards.*.routing.primary,"
            "indices.*.shards.*.seq_no.max_seq_no,indices.*.shards.*.refresh.external_total"
        )  # fmt: skip
    except Refused:
        return None
    states = {}
    for index, each in sorted((stats.get("indices") or {}).items()):
        shards = []
        for shard, copies in sorted((each.get("shards") or {}).items(), key=lambda item: int(item[0])):
            primary = next((copy for copy in copies if copy.get("routing", {}).get("primary")), copies[0])
            number = primary.get("seq_no", {}).get("max_seq_no")
            shards.append(f"{shard}:{number}/{primary.get('refresh', {}).get('external_total')}")
        states[index] = " ".join(shards)
    return states
