"""Who may read what in the world of a scenario, and why: the definition itself, in the order in which one would say it.

It knows nothing of how a world is put into a backend's terms (`compiling`), so that the two can be held against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from arecall.scenario.state import State, Subjects, folders_of
from arecall.world import Everyone, Group, Principal, Subject


def readable(state: State, principal: str) -> frozenset[str]:
    """Return the documents and chunks that a principal may read."""
    return frozenset(item for item in state.items if why(state, principal, item)[0])


def why(state: State, principal: str, item: str) -> tuple[bool, str]:
    """Say whether a principal may read a document or chunk, and by what, or what keeps it away."""
    if principal in state.suspended:
        return False, f"{principal} is suspended"
    chains = _chains(state, principal)
    for subject, source in _excluded(state, item):
        if subject in chains:
            return False, f"{chains[subject]} is excluded {source}"
    for subject, source in _readers(state, item):
        if subject in chains:
            return True, f"{chains[subject]} {source}"
    if item not in state.items:
        return False, f"{item} is not there"
    return False, "nothing grants it"


def _readers(state: State, item: str) -> Iterator[tuple[Subject, str]]:
    """Yield everyone who is let in, and by what."""
    if item in state.chunks:
        chunk = state.chunks[item]
        yield from (
            (who, f"is in the copy that {item} holds of the access of {chunk.document}")
            for who in _ordered(chunk.readers)
        )
    if item not in state.documents:
        return
    document = state.documents[item]
    if document.owner is not None:
        yield Principal(document.owner), f"owns {item}"
    yield from ((who, f"is a reader of {item}") for who in _ordered(document.readers))
    for folder in folders_of(state, document.folder):
        yield from ((who, f"is a reader of the folder {folder}") for who in _ordered(state.folders[folder].readers))
    for name, role in state.roles.items():
        holds = f"holds the role {name}, which gives"
        if item in role.gives.documents:
            yield from ((who, f"{holds} {item}") for who in _ordered(role.holders))
        for folder in folders_of(state, document.folder):
            if folder in role.gives.folders:
                yield from ((who, f"{holds} the folder {folder}") for who in _ordered(role.holders))
        wanted = role.gives.where
        if wanted and all(document.attributes.get(key) == value for key, value in wanted.items()):
            said = ", ".join(f"{key} = {value}" for key, value in wanted.items())
            yield from ((who, f"{holds} what has {said}") for who in _ordered(role.holders))


def _excluded(state: State, item: str) -> Iterator[tuple[Subject, str]]:
    """Yield everyone who is kept out, and by what."""
    if item in state.chunks:
        chunk = state.chunks[item]
        yield from (
            (who, f"by the copy that {item} holds of the access of {chunk.document}")
            for who in _ordered(chunk.excluded)
        )
    if item not in state.documents:
        return
    document = state.documents[item]
    yield from ((who, f"from {item}") for who in _ordered(document.excluded))
    for folder in folders_of(state, document.folder):
        yield from ((who, f"from the folder {folder}") for who in _ordered(state.folders[folder].excluded))


def _ordered(subjects: Subjects) -> list[Subject]:
    """Return subjects in an order of their own: of several reasons, the same one is given everywhere."""
    return sorted(subjects, key=str)


def _chains(state: State, principal: str) -> Mapping[Subject, str]:
    """Return all that a principal is, each with how: itself, everyone, and the groups that it is in, by the shortest way."""
    found: dict[Subject, str] = {Principal(principal): principal, Everyone(): "everyone"}
    nearest: list[Subject] = list(found)
    while nearest:
        reached: list[Subject] = []
        for inner in nearest:
            for name, members in sorted(state.groups.items()):
                if inner in members and Group(name) not in found:
                    found[Group(name)] = f"{found[inner]} -> group {name}"
                    reached.append(Group(name))
        nearest = reached
    return found
