"""Adapters that are wrong on purpose, each in one way that real ones have been wrong, and the kit test for it.

Each is the in-memory adapter with one defect. `fails` names the tests of the kit that must find it; `passes` names
neighbours of those that must not, so that a mutant which is merely broken proves nothing.
"""

from __future__ import annotations

import fnmatch
import itertools
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec

from arecall.adapter import AdapterSpec, Capability, Listing, Option, Progress, Support, View
from arecall.decisions import ALLOWED, DENIED, Outcome
from arecall.errors import BackendError, BackendUnavailable, PolicyError
from arecall.record import Backend
from arecall.world import (
    Change,
    Everyone,
    Exclude,
    Grant,
    Group,
    Principal,
    RemoveMember,
    Revoke,
    Subject,
    World,
    authorized,
    subjects_of,
)
from arecall_adapters.memory import ADAPTER, MemoryAdapter


@dataclass(frozen=True)
class Mutant:
    """A wrong adapter, its spec, and what the kit must say of it."""

    adapter: Callable[[], MemoryAdapter]
    fails: tuple[str, ...]
    passes: tuple[str, ...]
    spec: AdapterSpec = ADAPTER


MUTANTS: dict[str, Mutant] = {}
"""All of them, by name."""


def caught_by(
    *fails: str, passes: Sequence[str], spec: AdapterSpec = ADAPTER
) -> Callable[[type[MemoryAdapter]], type[MemoryAdapter]]:
    """Enter the class below among the mutants."""

    def enter(adapter: type[MemoryAdapter]) -> type[MemoryAdapter]:
        MUTANTS[adapter.__name__] = Mutant(adapter, fails, tuple(passes), spec)
        return adapter

    return enter


def without(*capabilities: Capability, reason: str = "the backend has none") -> AdapterSpec:
    """Return the spec of the in-memory adapter, with less declared."""
    return replace(
        ADAPTER, capabilities={**ADAPTER.capabilities, **dict.fromkeys(capabilities, Support(False, reason))}
    )


def on_every_road(test: str) -> tuple[str, ...]:
    """Name `test` on each road."""
    return tuple(f"{test}[{road}]" for road in ("check", "list", "snapshot"))


# -- decisions ---------------------------------------------------------------------------------------------------------


@caught_by(
    *on_every_road("test_nothing_is_granted_by_default"),
    "test_snapshot_needs_no_backend[json]",
    "test_snapshot_needs_no_backend[parquet]",
    passes=["test_describes_what_is_asked"],
)
class AllowsAll(MemoryAdapter):
    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        return [ALLOWED for _ in documents]

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        yield from (Listing(principal, universe) for principal in principals)


@caught_by(*on_every_road("test_direct_grants"), passes=on_every_road("test_nothing_is_granted_by_default"))
class DeniesAll(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return frozenset()


@caught_by(
    *on_every_road("test_empty_store_allows_nothing"), passes=on_every_road("test_nothing_is_granted_by_default")
)
class ReadsAnEmptyPolicyAsOpen(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return frozenset({"memo"}) if self._current() == World() else super()._readable(principal)


@caught_by(*on_every_road("test_groups"), passes=on_every_road("test_direct_grants"))
class IgnoresGroups(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return authorized(replace(self._current(), groups={}), principal)


@caught_by(
    *on_every_road("test_groups_add_up"), passes=[*on_every_road("test_groups"), *on_every_road("test_nested_groups")]
)
class IntersectsRoles(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        direct = {group for group, members in world.groups.items() if Principal(principal) in members}
        views = [authorized(replace(world, groups=_without(world, direct - {group})), principal) for group in direct]
        return frozenset.intersection(super()._readable(principal), *views)


@caught_by(*on_every_road("test_nested_groups"), passes=on_every_road("test_groups_add_up"))
class DropsNestedGroups(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return authorized(_flat(self._current()), principal)


@caught_by(*on_every_road("test_nested_groups"), passes=on_every_road("test_groups"))
class ReadsNestingBackwards(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        inverted: dict[str, set[Subject]] = {g: set(members) for g, members in _flat(world).groups.items()}
        for outer, members in world.groups.items():
            for member in members:
                if isinstance(member, Group):
                    inverted[member.id].add(Group(outer))
        return authorized(replace(world, groups={g: frozenset(m) for g, m in inverted.items()}), principal)


class Follows(MemoryAdapter):
    """Follows so many links from a principal to a group, and denies what is further."""

    links: ClassVar[int]

    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        reached: set[Subject] = {Principal(principal), Everyone()}
        for _ in range(self.links):
            reached |= {Group(group) for group, members in world.groups.items() if members & reached}
        direct = {g: frozenset[Subject]([Principal(principal)]) for g in world.groups if Group(g) in reached}
        return authorized(replace(world, groups=direct), principal)


@caught_by(*on_every_road("test_deeply_nested_groups"), passes=on_every_road("test_nested_groups"))
class FollowsThreeLinks(Follows):
    links = 3


@caught_by(
    *on_every_road("test_too_deeply_nested_groups_are_decided_rightly_or_refused"),
    passes=on_every_road("test_deeply_nested_groups"),
)
class FollowsNineLinksAndSaysNothing(Follows):
    links = 9


@caught_by(*on_every_road("test_cyclic_groups"), passes=on_every_road("test_deeply_nested_groups"))
class LosesGroupsThatFormACycle(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        looped = {
            group
            for group, members in world.groups.items()
            if any(isinstance(m, Group) and Group(group) in _within(world, m) for m in members)
        }
        return authorized(replace(world, groups=_without(world, looped)), principal)


@caught_by(*on_every_road("test_public_grants"), passes=on_every_road("test_direct_grants"))
class IgnoresPublicGrants(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        return authorized(replace(world, grants=frozenset(g for g in world.grants if g[0] != Everyone())), principal)


@caught_by(
    *on_every_road("test_everyone_as_a_member_is_decided_rightly_or_refused"),
    passes=[*on_every_road("test_public_grants"), *on_every_road("test_groups")],
)
class LosesEveryoneAsAMember(MemoryAdapter):
    def provision(self, world: World) -> str:
        return super().provision(replace(world, groups={g: m - {Everyone()} for g, m in world.groups.items()}))


@caught_by(
    "test_exclusions_override_grants[check-of a principal]",
    "test_exclusions_override_grants[list-of a group]",
    "test_exclusions_override_grants[snapshot-from what is public]",
    passes=on_every_road("test_groups"),
)
class IgnoresExclusions(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return authorized(replace(self._current(), exclusions=frozenset()), principal)


@caught_by(
    "test_exclusions_override_grants[check-of a group within the group]",
    passes=["test_exclusions_override_grants[check-of a group]"],
)
class ExcludesDirectMembersOnly(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        near = subjects_of(_flat(world), principal)
        granted = authorized(replace(world, exclusions=frozenset()), principal)
        return granted - {document for subject, document in world.exclusions if subject in near}


@caught_by(
    "test_exclusions_override_grants[check-of a principal]",
    "test_exclusions_override_grants[check-of a group]",
    passes=["test_public_grants[check]"],
    spec=without(Capability.EXCLUSION),
)
class BuildsWorldsWithoutTheirExclusions(MemoryAdapter):
    def provision(self, world: World) -> str:
        return super().provision(replace(world, exclusions=frozenset()))


@caught_by(
    *on_every_road("test_unknown_principal_is_read_as_described"),
    passes=[*on_every_road("test_direct_grants"), *on_every_road("test_unknown_document_is_read_as_described")],
)
class ShowsStrangersEverything(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        return super()._readable(principal) if principal in world.principals else world.documents


@caught_by(
    *on_every_road("test_unknown_principal_reads_what_is_public_as_described"),
    passes=[*on_every_road("test_public_grants"), *on_every_road("test_unknown_principal_is_read_as_described")],
)
class ShowsStrangersLessThanItSays(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return super()._readable(principal) if principal in self._current().principals else frozenset()


@caught_by(
    *on_every_road("test_unknown_document_is_read_as_described"),
    passes=[*on_every_road("test_direct_grants"), *on_every_road("test_nothing_is_granted_by_default")],
)
class ReadsAMissingAclAsPublic(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return super()._readable(principal) | {"never-heard-of"}


# -- whole and consistent answers --------------------------------------------------------------------------------------


@caught_by(
    "test_no_answer_is_cut_short[list]",
    "test_no_answer_is_cut_short[snapshot]",
    passes=["test_no_answer_is_cut_short[check]", *on_every_road("test_direct_grants")],
)
class ListsTheFirstThousand(MemoryAdapter):
    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        for listing in super().list_authorized(principals, universe, progress):
            yield Listing(listing.principal, sorted(listing.allowed)[:1_000])


@caught_by(*on_every_road("test_no_answer_is_cut_short"), passes=on_every_road("test_direct_grants"))
class ReadsTheFirstPageOfGrants(MemoryAdapter):
    def provision(self, world: World) -> str:
        return super().provision(replace(world, grants=frozenset(sorted(world.grants, key=str)[:1_000])))


@caught_by(*on_every_road("test_no_group_is_cut_short"), passes=on_every_road("test_groups"))
class ReadsTheFirstPageOfMembers(MemoryAdapter):
    def provision(self, world: World) -> str:
        pages = {group: frozenset(sorted(members, key=str)[:1_000]) for group, members in world.groups.items()}
        return super().provision(replace(world, groups=pages))


@caught_by(
    "test_direct_grants[list]",
    "test_direct_grants[snapshot]",
    passes=["test_direct_grants[check]", "test_groups[check]"],
)
class ListsOneLessThanItChecks(MemoryAdapter):
    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        for listing in super().list_authorized(principals, universe, progress):
            yield Listing(listing.principal, sorted(listing.allowed)[1:])


@caught_by(
    "test_order_and_size_of_a_question_do_not_matter[check]",
    passes=["test_order_and_size_of_a_question_do_not_matter[list]", "test_direct_grants[check]"],
)
class DecidesInItsOwnOrder(MemoryAdapter):
    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        return super().check(principal, sorted(documents))


@caught_by("test_principals_are_those_of_the_backend_or_refused", passes=on_every_road("test_groups"))
class NamesItsGroupsAsPrincipals(MemoryAdapter):
    def principals(self) -> Sequence[str]:
        return sorted(self._current().principals | set(self._current().groups))


@caught_by("test_principals_are_those_of_the_backend_or_refused", passes=on_every_road("test_groups"))
class NamesThoseWhoHaveADirectGrant(MemoryAdapter):
    def principals(self) -> Sequence[str]:
        return sorted({subject.id for subject, _ in self._current().grants if isinstance(subject, Principal)})


@caught_by("test_only_what_was_asked_about_is_listed", passes=["test_direct_grants[list]"])
class ListsWhatItWasNotAskedAbout(MemoryAdapter):
    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        yield from (Listing(principal, self._readable(principal)) for principal in principals)


@caught_by("test_only_what_was_asked_about_is_listed", passes=["test_direct_grants[list]"])
class ReadsNobodyAsEverybody(MemoryAdapter):
    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        return super().list_authorized(principals or sorted(self._current().principals), universe, progress)


@caught_by("test_no_documents_are_no_decisions", passes=["test_direct_grants[check]"])
class ReadsNoDocumentsAsAllDocuments(MemoryAdapter):
    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        return super().check(principal, documents or sorted(self._current().documents))


@caught_by("test_backends_are_apart", passes=["test_describes_what_is_asked"])
class SharesItsWorld(MemoryAdapter):
    shared: ClassVar[list[World]] = []

    def provision(self, world: World) -> str:
        self.shared.append(world)
        return super().provision(world)

    def _readable(self, principal: str) -> frozenset[str]:
        self._current()
        return frozenset[str]().union(*(authorized(world, principal) for world in self.shared))


# -- changes -----------------------------------------------------------------------------------------------------------


class Stale(MemoryAdapter):
    """Goes on answering from before a change of one of these kinds."""

    kinds: ClassVar[tuple[type[Change], ...]]

    def __init__(self) -> None:
        super().__init__()
        self._seen = World()

    def provision(self, world: World) -> str:
        self._seen = world
        return super().provision(world)

    def apply(self, change: Change) -> str:
        revision = super().apply(change)
        if not isinstance(change, self.kinds):
            self._seen = self._current()
        return revision

    def _readable(self, principal: str) -> frozenset[str]:
        self._current()
        return authorized(self._seen, principal)


@caught_by(
    "test_revocation_holds_from_the_next_read[check-grant]",
    "test_revocation_holds_from_the_next_read[list-membership]",
    "test_revocation_holds_from_the_next_read[snapshot-exclusion of a principal]",
    passes=["test_grant_holds_from_the_next_read[check-grant]", "test_grant_holds_from_the_next_read[list-membership]"],
)
class RemembersWhatWasRevoked(Stale):
    kinds = (Revoke, RemoveMember, Exclude)


@caught_by(
    "test_grant_holds_from_the_next_read[check-grant]",
    "test_grant_holds_from_the_next_read[snapshot-grant to a group]",
    passes=["test_revocation_holds_from_the_next_read[check-grant]"],
)
class LearnsOfGrantsTooLate(Stale):
    kinds = (Grant,)


@caught_by(
    "test_revocation_leaves_other_grants_alone[check-direct grant, still granted through a group]",
    passes=[
        "test_revocation_holds_from_the_next_read[check-last grant]",
        "test_revocation_leaves_other_grants_alone[check-one of two roads into a group]",
    ],
)
class RevokesForEveryReason(MemoryAdapter):
    def apply(self, change: Change) -> str:
        revision = super().apply(change)
        if isinstance(change, Revoke):
            world = self._current()
            self._hold(replace(world, grants=frozenset(g for g in world.grants if g[1] != change.document)))
        return revision


@caught_by("test_revision_follows_changes", passes=["test_describes_what_is_asked"])
class KeepsItsRevision(MemoryAdapter):
    def describe(self) -> Backend:
        return msgspec.structs.replace(super().describe(), revision="1")


@caught_by(
    "test_order_of_insertion_does_not_matter[exclusion of a group]",
    passes=["test_order_of_insertion_does_not_matter[nested]", "test_exclusions_override_grants[check-of a group]"],
)
class LetsTheLastRuleWin(MemoryAdapter):
    def apply(self, change: Change) -> str:
        if isinstance(change, Grant):
            world = self._current()
            self._hold(replace(world, exclusions=frozenset(e for e in world.exclusions if e[1] != change.document)))
        return super().apply(change)


# -- failures ----------------------------------------------------------------------------------------------------------


@caught_by(
    "test_dead_backend_is_an_error[check]", passes=["test_dead_backend_is_an_error[list]", "test_direct_grants[check]"]
)
class DeniesWhenItFails(MemoryAdapter):
    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        try:
            return super().check(principal, documents)
        except BackendError:
            return [DENIED for _ in documents]


@caught_by(
    "test_dead_backend_is_an_error[list]", passes=["test_dead_backend_is_an_error[check]", "test_direct_grants[list]"]
)
class ListsNothingWhenItFails(MemoryAdapter):
    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        for principal in principals:
            try:
                yield from super().list_authorized([principal], universe, progress)
            except BackendError:
                yield Listing(principal, ())


@caught_by("test_dead_backend_is_an_error[describe]", passes=["test_describes_what_is_asked"])
class DescribesFromMemory(MemoryAdapter):
    def describe(self) -> Backend:
        try:
            self._described = super().describe()
        except BackendError:
            return self._described
        return self._described


@caught_by("test_dead_backend_is_an_error[principals]", passes=["test_principals_are_those_of_the_backend_or_refused"])
class KnowsNobodyWhenItFails(MemoryAdapter):
    def principals(self) -> Sequence[str]:
        try:
            return super().principals()
        except BackendError:
            return []


@caught_by("test_dead_backend_is_an_error[apply]", passes=["test_revocation_holds_from_the_next_read[check-grant]"])
class DropsChangesWhenItFails(MemoryAdapter):
    def apply(self, change: Change) -> str:
        try:
            return super().apply(change)
        except BackendUnavailable:
            return ""


@caught_by("test_dead_backend_is_an_error[check]", passes=["test_direct_grants[check]"])
class RaisesWhateverComes(MemoryAdapter):
    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        try:
            return super().check(principal, documents)
        except BackendError as error:
            raise ConnectionError("connection refused") from error


@caught_by(*on_every_road("test_closed_adapter_gives_no_wrong_answer"), passes=["test_direct_grants[check]"])
class DeniesAllOnceClosed(MemoryAdapter):
    def close(self) -> None:
        self._world = World()


@caught_by("test_may_be_closed_twice", passes=["test_direct_grants[check]"])
class ClosesOnce(MemoryAdapter):
    def close(self) -> None:
        self._current()
        super().close()

    def __exit__(self, *_: object) -> None:
        self._open = False


# -- identifiers -------------------------------------------------------------------------------------------------------


class Rewriting(MemoryAdapter):
    """Passes every id through `rewrite` on its way in, and finds the caller's own ids by it."""

    def rewrite(self, name: str) -> str:
        raise NotImplementedError

    def provision(self, world: World) -> str:
        return super().provision(_renamed(world, self.rewrite))

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        return super().check(self.rewrite(principal), list(map(self.rewrite, documents)))

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        for principal in principals:
            allowed = self._readable(self.rewrite(principal))
            yield Listing(principal, [document for document in universe if self.rewrite(document) in allowed])


def _kept(*params: str) -> tuple[str, ...]:
    return tuple(f"test_id_is_kept_or_refused_by_name[{param}]" for param in params)


@caught_by(
    *_kept("document-case", "principal-case", "group-case"),
    "test_stranger_is_nobody_else[ANN]",
    passes=_kept("document-space after", "principal-comma"),
)
class FoldsCase(Rewriting):
    def rewrite(self, name: str) -> str:
        return name.casefold()


@caught_by(
    *_kept("document-space after", "principal-space before", "group-newline at the end"),
    passes=_kept("document-case", "principal-two spaces"),
)
class TrimsIds(Rewriting):
    def rewrite(self, name: str) -> str:
        return name.strip()


@caught_by(
    *_kept("document-composed and decomposed", "principal-composed and decomposed", "group-kelvin sign"),
    passes=_kept("document-case", "principal-compatibility form"),
)
class NormalisesUnicode(Rewriting):
    def rewrite(self, name: str) -> str:
        return unicodedata.normalize("NFC", name)


@caught_by(*_kept("document-long", "principal-long and cut"), passes=_kept("document-case", "principal-slash"))
class CutsLongIds(Rewriting):
    def rewrite(self, name: str) -> str:
        return name[:256]


@caught_by(*_kept("document-number", "principal-leading zeros"), passes=_kept("document-case", "group-boolean"))
class GuessesNumbers(Rewriting):
    def rewrite(self, name: str) -> str:
        try:
            return str(int(float(name)))
        except ValueError:
            return name


@caught_by(*_kept("document-comma", "principal-comma"), passes=_kept("document-colon", "principal-newline within"))
class WritesUnquotedCsv(Rewriting):
    def rewrite(self, name: str) -> str:
        return name.partition(",")[0]


@caught_by(
    *_kept("document-star alone", "document-star at the end", "document-question mark", "document-brackets"),
    passes=_kept("document-regular expression", "principal-star alone"),
)
class ReadsDocumentsAsPatterns(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        patterns = super()._readable(principal)
        return frozenset(d for d in self._current().documents if any(fnmatch.fnmatchcase(d, p) for p in patterns))


@caught_by(*_kept("document-star alone"), passes=["test_direct_grants[list]", "test_direct_grants[snapshot]"])
class ListsByPatternWhatItChecksByName(MemoryAdapter):
    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        for listing in super().list_authorized(principals, universe, progress):
            named = [d for d in universe if any(fnmatch.fnmatchcase(d, p) for p in listing.allowed)]
            yield Listing(listing.principal, named)


@caught_by(
    *_kept("principal-star alone"),
    passes=[*_kept("document-star alone", "principal-star at the end"), "test_public_grants[check]"],
)
class ReadsStarAsEveryone(MemoryAdapter):
    def provision(self, world: World) -> str:
        grants = {(Everyone() if subject == Principal("*") else subject, d) for subject, d in world.grants}
        return super().provision(replace(world, grants=frozenset(grants)))


@caught_by(*_kept("document-colon", "principal-colon"), passes=_kept("document-slash"))
class RefusesWithoutTheName(MemoryAdapter):
    def provision(self, world: World) -> str:
        if any(":" in name for name in world.principals | world.documents):
            raise PolicyError("the backend refused a request", "try another")
        return super().provision(world)


@caught_by("test_group_is_not_the_principal_of_its_name", passes=on_every_road("test_groups"))
class KeepsGroupsAndPrincipalsTogether(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        grants = {(Principal(s.id), d) for s, d in world.grants if isinstance(s, Group)}
        return authorized(replace(world, grants=world.grants | grants), principal)


@caught_by("test_document_is_not_the_principal_of_its_name", passes=on_every_road("test_direct_grants"))
class OwnsWhatBearsItsName(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return super()._readable(principal) | ({principal} & self._current().documents)


@caught_by(
    "test_stranger_is_nobody_else[user:ann]",
    passes=["test_stranger_is_nobody_else[group:staff]", *on_every_road("test_unknown_principal_is_read_as_described")],
)
class StripsTypePrefixes(MemoryAdapter):
    def _readable(self, principal: str) -> frozenset[str]:
        return super()._readable(principal.removeprefix("user:"))


# -- views -------------------------------------------------------------------------------------------------------------


@caught_by(
    "test_views_show_what_may_be_read[direct]",
    passes=["test_direct_grants[check]", "test_direct_grants[list]", "test_dead_view_is_an_error"],
)
class ShowsNothing(MemoryAdapter):
    def views(self, principal: str) -> Mapping[str, View]:
        def nothing(documents: Sequence[str]) -> frozenset[str]:
            self.check(principal, documents)
            return frozenset()

        return {"check": nothing}


@caught_by(
    "test_views_show_nothing_that_was_not_asked_about",
    passes=["test_views_show_what_may_be_read[direct]", "test_fresh_views_show_a_change"],
)
class ShowsAllThatMayBeRead(MemoryAdapter):
    def views(self, principal: str) -> Mapping[str, View]:
        return {"check": lambda _: self._readable(principal)}


@caught_by(
    "test_fresh_views_show_a_change",
    passes=["test_views_show_what_may_be_read[direct]", "test_revocation_holds_from_the_next_read[check-grant]"],
)
class RemembersWhatItShowed(MemoryAdapter):
    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[tuple[str, ...], frozenset[str]] = {}

    def views(self, principal: str) -> Mapping[str, View]:
        def remembered(documents: Sequence[str]) -> frozenset[str]:
            key = (principal, *documents)
            if key not in self._shown:
                self._shown[key] = self._readable(principal) & set(documents)
            return self._shown[key]

        return {"check": remembered}


@caught_by("test_dead_view_is_an_error", passes=["test_dead_backend_is_an_error[check]"])
class ShowsNothingWhenDead(MemoryAdapter):
    def views(self, principal: str) -> Mapping[str, View]:
        def quiet(documents: Sequence[str]) -> frozenset[str]:
            try:
                return self._readable(principal) & set(documents)
            except BackendError:
                return frozenset()

        return {"check": quiet}


# -- the declaration ---------------------------------------------------------------------------------------------------


@caught_by(
    "test_required_capabilities_are_supported",
    passes=["test_what_is_not_supported_has_a_reason"],
    spec=without(Capability.CHECK),
)
class DeclaresThatItCannotCheck(MemoryAdapter):
    pass


@caught_by(
    "test_what_is_not_supported_has_a_reason",
    passes=["test_required_capabilities_are_supported"],
    spec=without(Capability.SEARCH, reason=" "),
)
class GivesNoReason(MemoryAdapter):
    pass


@caught_by("test_nested_groups_are_groups", passes=["test_direct_grants[check]"], spec=without(Capability.GROUPS))
class NestsGroupsThatItDoesNotHave(MemoryAdapter):
    pass


@caught_by(
    "test_declared_and_implemented_methods_are_the_same[list_authorized]",
    passes=["test_declared_and_implemented_methods_are_the_same[apply]"],
    spec=without(Capability.LIST),
)
class ListsWithoutSayingSo(MemoryAdapter):
    pass


@caught_by(
    "test_declared_and_implemented_methods_are_the_same[search]",
    passes=["test_declared_and_implemented_methods_are_the_same[provision]"],
    spec=replace(ADAPTER, capabilities={**ADAPTER.capabilities, Capability.SEARCH: Support(True)}),
)
class PromisesASearch(MemoryAdapter):
    pass


@caught_by(
    "test_options_are_well_formed",
    passes=["test_direct_grants[check]"],
    spec=replace(ADAPTER, options=(Option("api-key", "the key", secret=True, default="letmein"),)),
)
class ShipsItsSecret(MemoryAdapter):
    pass


@caught_by("test_describes_what_is_asked", passes=["test_revision_follows_changes"])
class DescribesTheTimeOfDay(MemoryAdapter):
    ticks: ClassVar[Iterator[int]] = itertools.count()

    def describe(self) -> Backend:
        return msgspec.structs.replace(super().describe(), settings={"asked": next(self.ticks)})


# -- worlds, made wrong ------------------------------------------------------------------------------------------------


def _without(world: World, groups: set[str]) -> Mapping[str, frozenset[Subject]]:
    return {group: members for group, members in world.groups.items() if group not in groups}


def _flat(world: World) -> World:
    groups = {g: frozenset(m for m in members if not isinstance(m, Group)) for g, members in world.groups.items()}
    return replace(world, groups=groups)


def _within(world: World, group: Group) -> set[Subject]:
    reached: set[Subject] = {group}
    while True:
        more = {m for g in reached if isinstance(g, Group) for m in world.groups.get(g.id, ())} - reached
        if not more:
            return reached
        reached |= more


def _renamed(world: World, rewrite: Callable[[str], str]) -> World:
    def subject(of: Subject) -> Subject:
        return of if isinstance(of, Everyone) else type(of)(rewrite(of.id))

    groups: dict[str, frozenset[Subject]] = {}
    for group, members in world.groups.items():
        groups[rewrite(group)] = groups.get(rewrite(group), frozenset()) | frozenset(map(subject, members))
    return World(
        principals=frozenset(map(rewrite, world.principals)),
        documents=frozenset(map(rewrite, world.documents)),
        groups=groups,
        grants=frozenset((subject(s), rewrite(d)) for s, d in world.grants),
        exclusions=frozenset((subject(s), rewrite(d)) for s, d in world.exclusions),
    )
