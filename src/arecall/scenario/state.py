"""The world of a scenario as it is at one moment, and what each change makes of it; no backend is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from arecall.scenario import schema
from arecall.world import Everyone, Group, Principal, Subject

Subjects = frozenset[Subject]


@dataclass(frozen=True)
class Scope:
    """What a role gives: documents by id, by folder, and by attributes that they all have."""

    documents: frozenset[str]
    folders: frozenset[str]
    where: Mapping[str, str]


@dataclass(frozen=True)
class Role:
    """Who holds it, and what it gives."""

    holders: Subjects
    gives: Scope


@dataclass(frozen=True)
class Folder:
    """Which folder it is in, and whom it lets in or keeps out, with all below it."""

    within: str | None
    readers: Subjects
    excluded: Subjects


@dataclass(frozen=True)
class Document:
    """A document of one version."""

    owner: str | None
    folder: str | None
    attributes: Mapping[str, str]
    readers: Subjects
    excluded: Subjects
    text: str


@dataclass(frozen=True)
class Chunk:
    """A chunk, and the access of its document as it was when the chunk was indexed."""

    document: str
    text: str
    readers: Subjects
    excluded: Subjects


@dataclass(frozen=True)
class State:
    """Everything that decides who may read what."""

    principals: frozenset[str]
    suspended: frozenset[str]
    groups: Mapping[str, Subjects]
    roles: Mapping[str, Role]
    folders: Mapping[str, Folder]
    documents: Mapping[str, Document]
    chunks: Mapping[str, Chunk]

    @property
    def items(self) -> frozenset[str]:
        """The ids of everything that a search may show: documents and chunks."""
        return frozenset(self.documents) | frozenset(self.chunks)


class ChangeError(ValueError):
    """A change of what is not there, or to what is there already; says what."""


def start(world: schema.World) -> State:
    """Return the state that a scenario begins in; every chunk is indexed with the access that its document has in it."""
    state = State(
        principals=frozenset(map(str, world.principals)),
        suspended=frozenset(map(str, world.suspended)),
        groups={str(name): members(group) for name, group in world.groups.items()},
        roles={str(name): Role(subjects(role.to), _scope(role.gives)) for name, role in world.roles.items()},
        folders={
            str(name): Folder(_name(one.within), subjects(one.readers), subjects(one.excluded))
            for name, one in world.folders.items()
        },
        documents={str(name): _document(document) for name, document in world.documents.items()},
        chunks={},
    )
    for name, document in world.documents.items():
        state = _indexed(state, str(name), document.chunks)
    return state


def subjects(given: schema.Subjects) -> Subjects:
    """Return the subjects that a file names."""
    everyone: list[Subject] = [Everyone()] if given.everyone else []
    return frozenset([*everyone, *members(given)])


def members(given: schema.Subjects | schema.Group | schema.AddMember | schema.RemoveMember) -> Subjects:
    """Return the principals and groups that a file names."""
    return frozenset([*(Principal(str(name)) for name in given.principals), *(Group(str(n)) for n in given.groups)])


def folders_of(state: State, folder: str | None) -> Iterator[str]:
    """Yield a folder and all that it is in, from the inside out."""
    while folder is not None:
        yield folder
        folder = state.folders[folder].within


def gives(state: State, scope: Scope, name: str) -> bool:
    """Whether a document is in the scope of a role."""
    document = state.documents[name]
    return (
        name in scope.documents
        or not scope.folders.isdisjoint(folders_of(state, document.folder))
        or (bool(scope.where) and scope.where.items() <= document.attributes.items())
    )


def access(state: State, name: str) -> tuple[Subjects, Subjects]:
    """Return the subjects that may read a document, and those that are kept from it whatever else holds."""
    document = state.documents[name]
    above = [state.folders[folder] for folder in folders_of(state, document.folder)]
    owner: Subjects = frozenset([Principal(document.owner)] if document.owner is not None else [])
    by_role = [role.holders for role in state.roles.values() if gives(state, role.gives, name)]
    readers = owner.union(document.readers, *(folder.readers for folder in above), *by_role)
    return readers, document.excluded.union(*(folder.excluded for folder in above))


# -- changes -----------------------------------------------------------------------------------------------------------


def after(state: State, change: schema.Change) -> State:  # noqa: PLR0911, PLR0912 -- one for each kind of change
    """Return the state after a change whose names are all known.

    Raises:
        ChangeError: it changes what is not there, or gives what is there already.
    """
    match change:
        case schema.Grant() | schema.Revoke() | schema.Exclude() | schema.Lift():
            return _at_place(state, change)
        case schema.Move(folder=None, document=document, to=target):
            return _with_document(state, document, lambda one: replace(one, folder=_name(target)))
        case schema.Move(folder=folder, to=target):
            if target is not None and str(folder) in folders_of(state, str(target)):
                raise ChangeError(f"the folder {folder!s} would be in itself")
            moved = replace(state.folders[_known(state.folders, folder, "folder")], within=_name(target))
            return replace(state, folders={**state.folders, str(folder): moved})
        case schema.AddMember(group=group):
            held = _more(state.groups[str(group)], members(change), f"the group {group!s}", "a member of")
            return replace(state, groups={**state.groups, str(group): held})
        case schema.RemoveMember(group=group):
            held = _less(state.groups[str(group)], members(change), f"the group {group!s}", "a direct member of")
            return replace(state, groups={**state.groups, str(group): held})
        case schema.GiveRole(role=role, to=to):
            held = _more(state.roles[str(role)].holders, subjects(to), f"the role {role!s}", "given")
            return replace(state, roles={**state.roles, str(role): replace(state.roles[str(role)], holders=held)})
        case schema.TakeRole(role=role, from_=who):
            held = _less(state.roles[str(role)].holders, subjects(who), f"the role {role!s}", "given")
            return replace(state, roles={**state.roles, str(role): replace(state.roles[str(role)], holders=held)})
        case schema.ChangeRole(role=role, gives=scope):
            narrowed = replace(state.roles[str(role)], gives=_scope(scope))
            return replace(state, roles={**state.roles, str(role): narrowed})
        case schema.Suspend(principals=names):
            return replace(state, suspended=_more(state.suspended, _names(names), "the suspended", "one of"))
        case schema.Reinstate(principals=names):
            return replace(state, suspended=_less(state.suspended, _names(names), "the suspended", "one of"))
        case schema.Add(document=name, as_=document):
            if str(name) in state.items:
                raise ChangeError(f"there is a document or chunk {name!s} already")
            return _indexed(_put(state, str(name), document), str(name), document.chunks)
        case schema.Delete(document=name, leave_chunks=leave):
            _known(state.documents, name, "document")
            rest = {key: one for key, one in state.documents.items() if key != name}
            without = replace(state, documents=rest, roles=_forgotten(state.roles, str(name)))
            return without if leave else replace(without, chunks=_chunks_of_others(state, name))
        case schema.Replace(document=name, as_=document, leave_chunks=leave):
            _known(state.documents, name, "document")
            if leave:
                if document.chunks:
                    raise ChangeError("the old chunks are left behind, and new ones are named; do one of them")
                return _put(state, str(name), document)
            without = replace(state, chunks=_chunks_of_others(state, name))
            return _indexed(_put(without, str(name), document), str(name), document.chunks)
        case schema.Retag(document=name, attributes=attributes):
            return _with_document(state, name, lambda one: replace(one, attributes=_plain(attributes)))
        case schema.Rechunk(document=name, chunks=chunks):
            _known(state.documents, name, "document")
            return _indexed(replace(state, chunks=_chunks_of_others(state, name)), str(name), chunks)
        case schema.Reindex():
            return _reindexed(state, change)
        case schema.Wait() | schema.Native():
            return state


_Key = TypeVar("_Key")


def _more(held: frozenset[_Key], new: frozenset[_Key], whose: str, what: str) -> frozenset[_Key]:
    if not new:
        raise ChangeError("names nobody")
    if there := sorted(map(_said, held & new)):
        raise ChangeError(f"{there[0]} is {what} {whose} already")
    return held | new


def _less(held: frozenset[_Key], gone: frozenset[_Key], whose: str, what: str) -> frozenset[_Key]:
    if not gone:
        raise ChangeError("names nobody")
    if absent := sorted(map(_said, gone - held)):
        raise ChangeError(f"{absent[0]} is not {what} {whose}")
    return held - gone


def _said(one: object) -> str:
    match one:
        case Principal(name):
            return f"the principal {name}"
        case Group(name):
            return f"the group {name}"
        case Everyone():
            return "everyone"
    return str(one)


def _at_place(state: State, change: schema.Grant | schema.Revoke | schema.Exclude | schema.Lift) -> State:
    if change.folder is not None:
        folder = state.folders[_known(state.folders, change.folder, "folder")]
        readers, excluded = _edited(folder, change, f"the folder {change.folder!s}")
        new = replace(folder, readers=readers, excluded=excluded)
        return replace(state, folders={**state.folders, str(change.folder): new})

    def edit(document: Document) -> Document:
        readers, excluded = _edited(document, change, f"the document {change.document!s}")
        return replace(document, readers=readers, excluded=excluded)

    return _with_document(state, change.document, edit)


def _edited(
    one: Document | Folder, change: schema.Grant | schema.Revoke | schema.Exclude | schema.Lift, where: str
) -> tuple[Subjects, Subjects]:
    """Return readers and excluded after a change at a place."""
    match change:
        case schema.Grant(to=who):
            return _more(one.readers, subjects(who), where, "a reader of"), one.excluded
        case schema.Revoke(from_=who):
            return _less(one.readers, subjects(who), where, "named as a reader of"), one.excluded
        case schema.Exclude(subjects=who):
            return one.readers, _more(one.excluded, subjects(who), where, "excluded from")
        case schema.Lift(subjects=who):
            return one.readers, _less(one.excluded, subjects(who), where, "excluded from")


def _with_document(state: State, name: str | None, edit: Callable[[Document], Document]) -> State:
    known = _known(state.documents, name, "document")
    return replace(state, documents={**state.documents, known: edit(state.documents[known])})


def _known(among: Mapping[str, object], name: str | None, what: str) -> str:
    if name not in among:
        raise ChangeError(f"there is no {what} {name!s} at this stage")
    return str(name)


def _put(state: State, name: str, document: schema.Document) -> State:
    return replace(state, documents={**state.documents, name: _document(document)})


def _document(given: schema.Document) -> Document:
    return Document(
        owner=_name(given.owner),
        folder=_name(given.folder),
        attributes=_plain(given.attributes),
        readers=subjects(given.readers),
        excluded=subjects(given.excluded),
        text=str(given.text),
    )


def _scope(given: schema.Scope) -> Scope:
    return Scope(_names(given.documents), _names(given.folders), _plain(given.where))


def _forgotten(roles: Mapping[str, Role], document: str) -> Mapping[str, Role]:
    """Take a deleted document out of what roles give: one that is added under its id again is for nobody."""
    return {
        name: replace(role, gives=replace(role.gives, documents=role.gives.documents - {document}))
        for name, role in roles.items()
    }


# -- chunks ------------------------------------------------------------------------------------------------------------


def _indexed(state: State, document: str, chunks: Mapping[str, str]) -> State:
    """Put chunks of a document into the index, each with the access that the document has now."""
    readers, excluded = access(state, document)
    for name in chunks:
        if str(name) in state.items:
            raise ChangeError(f"there is a document or chunk {name!s} already")
    new = {str(name): Chunk(document, str(text), readers, excluded) for name, text in chunks.items()}
    return replace(state, chunks={**state.chunks, **new})


def _chunks_of_others(state: State, document: str) -> Mapping[str, Chunk]:
    return {name: chunk for name, chunk in state.chunks.items() if chunk.document != document}


def _reindexed(state: State, change: schema.Reindex) -> State:
    everything = not change.documents and not change.chunks
    for name in change.chunks:
        _known(state.chunks, name, "chunk")
    chunks = {}
    for name, chunk in state.chunks.items():
        if not (everything or chunk.document in change.documents or name in change.chunks):
            chunks[name] = chunk
        elif chunk.document in state.documents:
            readers, excluded = access(state, chunk.document)
            chunks[name] = replace(chunk, readers=readers, excluded=excluded)
    return replace(state, chunks=chunks)


def _name(given: str | None) -> str | None:
    return None if given is None else str(given)


def _names(given: Iterable[str]) -> frozenset[str]:
    return frozenset(map(str, given))


def _plain(given: Mapping[str, str]) -> Mapping[str, str]:
    return {str(key): str(value) for key, value in given.items()}
