"""Random worlds of scenarios and changes of them, for Hypothesis; few names, so that everything meets."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from arecall.scenario import schema
from arecall.scenario.state import ChangeError, State, after, start

PEOPLE = ("ann", "bob", "cat")
GROUPS = ("inner", "middle", "outer")
FOLDERS = ("top", "sub")
ROLES = ("clerk", "chief")
DOCUMENTS = ("memo", "plan", "note")
EXTRA = ("later", "memo")

some_people = st.lists(st.sampled_from(PEOPLE), max_size=2, unique=True)
some_groups = st.lists(st.sampled_from(GROUPS), max_size=2, unique=True)
attributes = st.dictionaries(st.sampled_from(("kind", "region")), st.sampled_from(("a", "b")))
subjects = st.builds(
    schema.Subjects, principals=some_people, groups=some_groups, everyone=st.sampled_from((False, False, False, True))
)
scopes = st.builds(
    schema.Scope,
    documents=st.lists(st.sampled_from(DOCUMENTS), max_size=1),
    folders=st.lists(st.sampled_from(FOLDERS), max_size=1),
    where=attributes,
)
folder = st.none() | st.sampled_from(FOLDERS)


nobody = st.just(schema.Subjects())


def documents(
    chunks: Sequence[str], excluded: st.SearchStrategy[schema.Subjects] = subjects
) -> st.SearchStrategy[schema.Document]:
    """Documents of all kinds, with some of these chunks."""
    return st.builds(
        schema.Document,
        owner=st.none() | st.sampled_from(PEOPLE),
        folder=folder,
        attributes=attributes,
        readers=subjects,
        excluded=excluded,
        text=st.sampled_from(("", "one", "two")),
        chunks=st.dictionaries(st.sampled_from(chunks), st.sampled_from(("part", "piece"))) if chunks else st.just({}),
    )


def worlds(excluded: st.SearchStrategy[schema.Subjects] = subjects) -> st.SearchStrategy[schema.World]:
    """Worlds in which groups nest (each within those after it, so that there is no cycle)."""
    return st.builds(
        schema.World,
        principals=st.just(list(PEOPLE)),
        suspended=st.lists(st.sampled_from(PEOPLE), max_size=1),
        groups=st.fixed_dictionaries(
            {
                group: st.builds(
                    schema.Group,
                    principals=some_people,
                    groups=st.lists(st.sampled_from(GROUPS[:number]), max_size=1) if number else st.just([]),
                )
                for number, group in enumerate(GROUPS)
            }
        ),
        roles=st.fixed_dictionaries({role: st.builds(schema.Role, to=subjects, gives=scopes) for role in ROLES}),
        folders=st.fixed_dictionaries(
            {
                "top": st.builds(schema.Folder, readers=subjects, excluded=excluded),
                "sub": st.builds(schema.Folder, within=st.none() | st.just("top"), readers=subjects),
            }
        ),
        documents=st.fixed_dictionaries({name: documents((f"{name}/1", f"{name}/2"), excluded) for name in DOCUMENTS}),
    )


known = st.sampled_from((*DOCUMENTS, "later"))
place = st.one_of(
    st.fixed_dictionaries({"document": known}), st.fixed_dictionaries({"folder": st.sampled_from(FOLDERS)})
)
CHANGES: st.SearchStrategy[schema.Change] = st.one_of(
    st.builds(lambda at, who: schema.Grant(**at, to=who), place, subjects),
    st.builds(lambda at, who: schema.Revoke(**at, from_=who), place, subjects),
    st.builds(lambda at, who: schema.Exclude(**at, subjects=who), place, subjects),
    st.builds(lambda at, who: schema.Lift(**at, subjects=who), place, subjects),
    st.builds(lambda name, to: schema.Move(document=name, to=to), known, folder),
    st.builds(lambda to: schema.Move(folder="sub", to=to), st.none() | st.just("top")),
    st.builds(schema.AddMember, group=st.sampled_from(GROUPS), principals=some_people),
    st.builds(schema.AddMember, group=st.just("outer"), groups=st.lists(st.sampled_from(GROUPS[:2]), max_size=1)),
    st.builds(
        schema.RemoveMember, group=st.sampled_from(GROUPS), principals=some_people, groups=st.just([])
    ),
    st.builds(schema.GiveRole, role=st.sampled_from(ROLES), to=subjects),
    st.builds(schema.TakeRole, role=st.sampled_from(ROLES), from_=subjects),
    st.builds(schema.ChangeRole, role=st.sampled_from(ROLES), gives=scopes),
    st.builds(schema.Suspend, principals=some_people),
    st.builds(schema.Reinstate, principals=some_people),
    st.builds(schema.Add, document=st.just("later"), as_=documents(("later/1",))),
    st.builds(schema.Delete, document=known, leave_chunks=st.booleans()),
    st.builds(schema.Replace, document=known, as_=documents(()), leave_chunks=st.booleans()),
    st.builds(schema.Replace, document=st.just("memo"), as_=documents(("memo/1", "memo/3"))),
    st.builds(schema.Retag, document=known, attributes=attributes),
    st.builds(schema.Rechunk, document=st.just("plan"), chunks=st.sampled_from(({}, {"plan/1": "new"}, {"plan/9": "x"}))),
    st.builds(schema.Reindex, documents=st.lists(st.sampled_from(DOCUMENTS), max_size=2)),
)  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[schema.Change, State, State]]:
    """Changes of a world, each with the states before and after it; those that cannot be made are left out."""
    state = start(draw(worlds()))
    made = []
    for change in draw(st.lists(CHANGES, min_size=1, max_size=8)):
        try:
            new = after(state, change)
        except ChangeError:
            continue
        if new.documents:  # nobody can be asked about no document
            made.append((change, state, new))
            state = new
    return made
