"""How an id becomes OpenFGA's name of a user or an object, and back; what OpenFGA cannot hold is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from arecall.decisions import id_problem
from arecall.errors import InputError, Problem, UsageError

PLACE = "{id}"

LONGEST_OBJECT = 256
LONGEST_USER = 512
"""Characters, as the API has them."""

# White space as the server's expressions know it, and control characters, which do not survive every transport.
_IMPOSSIBLE = re.compile(r"[\s\x00-\x1f\x7f]", re.ASCII)
_TYPE = r"[^:#@*\s]{1,254}"
_USERSET = re.compile(rf"{_TYPE}:[^:#\s]+#[^:#@\s]{{1,50}}\Z", re.ASCII)
_EVERYONE = re.compile(rf"{_TYPE}:\*\Z", re.ASCII)
_OBJECT = re.compile(rf"{_TYPE}:[^:#\s]+\Z", re.ASCII)


@dataclass(frozen=True)
class Template:
    """Text with one `{id}` in it, such as `user:{id}`; `{id}` alone takes names as OpenFGA has them."""

    text: str
    option: str

    def __post_init__(self) -> None:
        """Refuse a template that does not hold the id once."""
        before, place, after = self.text.partition(PLACE)
        if not place or PLACE in after or "{" in before + after or "}" in before + after:
            raise UsageError(f"{self.option} {self.text!r} must hold {PLACE} once, as in user:{PLACE}")

    @property
    def typed(self) -> bool:
        """Whether the template gives the type, so that ids are bare."""
        return ":" in self.text.partition(PLACE)[0]

    def fill(self, name: str) -> str:
        """Put `name` into its place."""
        return self.text.replace(PLACE, name)


@dataclass(frozen=True)
class Names:
    """The names of principals and documents.

    With the template `{id}` a principal is a user with its type (`user:ann`), a userset (`group:eng#member`) or everyone
    (`user:*`). With `user:{id}` it is a bare id, and none of these: `ann` and `user:ann` would be one person with two names.
    """

    principal: Template
    document: Template
    type: str

    def users(self, principals: Iterable[str]) -> dict[str, str]:
        """Return OpenFGA's name of each principal.

        Raises:
            InputError: names each principal that OpenFGA cannot hold, and each two that are one to it.
        """
        return self._named(principals, "principals", self.user)

    def objects(self, documents: Iterable[str]) -> dict[str, str]:
        """Return OpenFGA's name of each document.

        Raises:
            InputError: names each document that OpenFGA cannot hold, and each two that are one to it.
        """
        return self._named(documents, "documents", self.object)

    def user(self, principal: str) -> str:
        """Return OpenFGA's name of a principal; a `ValueError` says why it has none."""
        self._demand_id(principal)
        if self.principal.typed and (":" in principal or "#" in principal):
            raise ValueError(
                "holds ':' or '#', which no bare id does; for users with their type, usersets (group:eng#member) and user:*,"
                " say --principal-template '{id}'"
            )
        if self.principal.typed and principal == "*":
            raise ValueError("stands for everyone; say --principal-template '{id}', and write it as user:*")
        name = self.principal.fill(principal)
        if len(name) > LONGEST_USER:
            raise ValueError(f"is longer than the {LONGEST_USER} characters that OpenFGA holds for a user")
        if not (_OBJECT.match(name) or _USERSET.match(name) or _EVERYONE.match(name)):
            raise ValueError(f"is none that OpenFGA can hold ({name!r} is no type:id, type:id#relation or type:*)")
        return name

    def object(self, document: str) -> str:
        """Return OpenFGA's name of a document; a `ValueError` says why it has none."""
        self._demand_id(document)
        if self.document.typed and (":" in document or "#" in document):
            raise ValueError(
                "holds ':' or '#', which no id of OpenFGA does; for ids that bring their type, --document-template '{id}'"
            )
        name = self.document.fill(document)
        if len(name) > LONGEST_OBJECT:
            raise ValueError(f"is longer than the {LONGEST_OBJECT} characters that OpenFGA holds for an object")
        if not _OBJECT.match(name) or name.endswith(":*"):
            raise ValueError(f"is none that OpenFGA can hold ({name!r} is no type:id)")
        if not name.startswith(f"{self.type}:"):
            raise ValueError(f"becomes {name!r}, which is no object of the type {self.type!r}")
        return name

    @staticmethod
    def _demand_id(value: str) -> None:
        if problem := id_problem(value):
            raise ValueError(problem)
        if found := _IMPOSSIBLE.search(value):
            raise ValueError(f"holds {found[0]!r}, and OpenFGA holds no id with white space or control characters")

    @staticmethod
    def _named(ids: Iterable[str], what: str, name: Callable[[str], str]) -> dict[str, str]:
        named: dict[str, str] = {}
        whose: dict[str, str] = {}
        problems = []
        for each in ids:
            try:
                named[each] = name(each)
            except ValueError as error:
                problems.append(Problem(what, f"the id {each!r} {error}"))
                continue
            first = whose.setdefault(named[each], each)
            if first != each:
                problems.append(Problem(what, f"{first!r} and {each!r} are both {named[each]!r} to OpenFGA"))
        if problems:
            raise InputError(problems)
        return named
