"""What an engine must offer beside search, in words that both have; each engine's package says how."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arecall_adapters.dls.wire import Refused, Requester, Wire

THIS_ROLE = "@role@"
"""Stands for the role's own name in the query of a role that a world is built with."""


@dataclass(frozen=True)
class About:
    """What is asked.

    Attributes:
        version: of the server, as it tells it.
        cluster: its name and uuid.
        settings: what alters decisions (licence, how empty role queries are read); the same while nothing changes.
    """

    version: str
    cluster: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Policy:
    """The roles that say anything of an access path, and who holds them.

    Attributes:
        roles: by name, verbatim.
        mappings: rules that give roles to users of other realms, verbatim.
        holders: the users that the engine itself keeps and that hold one of the roles: their roles, attributes that role
            queries may use, and whether they are enabled.
        unreadable: why a part could not be read; then nothing is known of its changes.
        ignored: roles that the engine takes for not there, whoever holds them, because its licence does not cover them.
    """

    roles: Mapping[str, Any]
    mappings: Mapping[str, Any]
    holders: Mapping[str, Any]
    unreadable: str = ""
    ignored: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Identity:
    """Who a request was taken to come from.

    Attributes:
        name: as the engine calls it.
        roles: in effect.
    """

    name: str
    roles: tuple[str, ...]


class Unknown(Exception):
    """There is nobody of that name, or the capturing account may not ask as them."""


class Disabled(Exception):
    """There is such a user, who is not let in."""


class Engine(abc.ABC):
    """One cluster."""

    kind: str
    wire: Wire

    grants_by_name: bool
    """Whether a role grants the name that it holds and that name alone: what is then shown by an alias or a pattern is not what
    is shown by the indices behind it, and a point in time knows these alone."""

    @abc.abstractmethod
    def about(self) -> About:
        """Say what is asked."""

    @abc.abstractmethod
    def policy(self, names: Sequence[str]) -> Policy:
        """Read the roles that say anything of one of `names` (the access path and what it stands for) and their holders."""

    @abc.abstractmethod
    def open_point_in_time(self, access_path: str, keep_alive: str, requester: Requester) -> str:
        """Open one and return its id."""

    @abc.abstractmethod
    def close_point_in_time(self, name: str) -> None:
        """Close one."""

    @abc.abstractmethod
    def as_user(self, name: str) -> Requester:
        """Ask as the user `name`, by the capturing account's right to do so.

        Raises:
            ValueError: no such name can be sent.
        """

    @abc.abstractmethod
    def with_key(self, name: str, key: str) -> Requester:
        """Ask with an API key; `name` is what it is called in messages.

        Raises:
            UsageError: the engine has no API keys.
        """

    @abc.abstractmethod
    def identify(self, requester: Requester) -> Identity:
        """Ask the engine whom it takes `requester` for. An identity that is not applied would be asked as the account itself.

        Raises:
            Unknown: see there.
            Disabled: see there.
        """

    @abc.abstractmethod
    def restricted(self, access_path: str) -> str:
        """Say why the capturing account may itself not see every document of the path; "" if it sees all."""

    @abc.abstractmethod
    def problem(self, policy: Policy, roles: Sequence[str], access_path: str) -> str:
        """Say why what a holder of `roles` is shown is no decision (a role query that nobody can run); "" if it is one.

        Raises:
            PolicyError: document-level security is not in the licence.
        """

    @abc.abstractmethod
    def unlicensed(self, refused: Refused) -> bool:
        """Whether a refusal says that document-level security is not in the licence."""

    @abc.abstractmethod
    def own_key(self, requester: Requester) -> Requester | None:
        """Make an API key as `requester`, which holds the roles of now; None where that is not possible."""

    @abc.abstractmethod
    def make_key(self, name: str, owner: Requester, descriptors: Mapping[str, Any]) -> Requester:
        """Make an API key called `name` as `owner`, narrowed by role descriptors if there are any.

        Raises:
            UsageError: the engine has no API keys.
            PolicyError: the owner may make none.
        """

    def measure_overrides(self, access_path: str) -> None:  # noqa: B027 -- only where a role without a query is read in two ways
        """Find out by trying what no API tells of how roles without a query are read."""

    @abc.abstractmethod
    def keys(self, requesters: Mapping[str, Requester]) -> Mapping[str, Mapping[str, Any]]:
        """Read what each API key of `requesters` may do, and what its owner could when it was made.

        Requesters without a key are left out; a key that may not be read says why, as `unreadable`.
        """

    # -- temporary principals ---------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def roles_of(self, names: Sequence[str]) -> Mapping[str, Any]:
        """Read roles by name; those that do not exist are left out."""

    @abc.abstractmethod
    def hold(self, name: str, roles: Mapping[str, Any]) -> Requester:
        """Make a temporary principal called `name` that holds `roles` (by name, verbatim), and return who asks as it."""

    @abc.abstractmethod
    def temporaries(self) -> Sequence[str]:
        """Name every temporary principal that is left of this run or another."""

    @abc.abstractmethod
    def dismiss(self, names: Sequence[str]) -> None:
        """Remove temporary principals by name."""

    # -- worlds -----------------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def put_roles(self, roles: Mapping[str, str], index: str) -> None:
        """Make or change roles that may read `index`, each under its query, in which `THIS_ROLE` is its name."""

    @abc.abstractmethod
    def put_descriptors(self, roles: Mapping[str, Any]) -> None:
        """Make or change roles by their descriptors, verbatim.

        Raises:
            PolicyError: the engine does not take one.
        """

    @abc.abstractmethod
    def put_users(
        self, users: Mapping[str, Sequence[str]], more: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Make or change users, each with its roles; nobody can log in as them, only be asked for.

        `more` is what else the engine keeps of them, in its own terms.
        """

    @abc.abstractmethod
    def remove_roles(self, names: Sequence[str]) -> None:
        """Remove roles; those that are gone are no error."""

    @abc.abstractmethod
    def remove_users(self, names: Sequence[str]) -> None:
        """Remove users; those that are gone are no error."""

    @property
    @abc.abstractmethod
    def own_roles(self) -> str:
        """What a template of a role query writes for the JSON list of the asking user's roles."""

    @property
    @abc.abstractmethod
    def own_user(self) -> str:
        """What a template of a role query writes for the asking user's name."""
