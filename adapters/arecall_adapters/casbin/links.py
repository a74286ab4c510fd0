"""The engine's own role managers: what a name is linked to, and what they must not remember."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from arecall_adapters.casbin import installed

Manager = Any
"""A role manager of casbin's, which ships no types."""


DEEP = 100
"""A limit on links in a row above which nothing is taken for plain: `has_link` calls itself for each."""


def is_plain(manager: Manager) -> bool:
    """Whether a link is a plain question of the graph: no pattern among names, no condition, no code of the user's.

    A `DomainManager` starts with a matching function too, plain equality. A matching function for domains only says
    which domains' links make up a domain's graph; it is plain where it is one of casbin's own that reads no clock.
    """
    roles = installed.load().rbac.default_role_manager.role_manager
    if type(manager) not in (roles.RoleManager, roles.DomainManager):
        return False
    own = {"has_link", "_has_link", "get_roles", "_get_role", "_get_role_manager"} & vars(manager).keys()
    if own or not 0 < manager.max_hierarchy_level <= DEEP:
        return False
    if type(manager) is roles.RoleManager:
        return manager.matching_func is None
    domains = manager.domain_matching_func
    return _is_equality(manager.matching_func) and (domains is None or domains in _pure_functions())


@functools.cache
def _pure_functions() -> frozenset[Any]:
    util = installed.load().util
    names = ("key_match", *(f"key_match{n}" for n in range(2, 6)), "regex_match", "glob_match", "ip_match")
    return frozenset(getattr(util, name + suffix) for name in names for suffix in ("", "_func"))


def _is_equality(function: Any) -> bool:
    """Whether this is the matching function that a `DomainManager` starts with; each has a lambda of its own."""
    return getattr(function, "__code__", None) is _equality()


@functools.cache
def _equality() -> Any:
    return installed.load().rbac.default_role_manager.role_manager.DomainManager().matching_func.__code__


def remembers(manager: Manager) -> bool:
    """Whether an answer of a manager of casbin's may depend on what it was asked before.

    A manager with a matching function makes a node of every name that it is asked about, gives it the links of the
    patterns that match, and takes it for a pattern from then on.
    """
    matching = getattr(manager, "matching_func", None)
    return matching is not None and not _is_equality(matching)


def forget(managers: Iterable[Manager]) -> None:
    """Take from managers that remember what they were asked, so that a pair is decided as if it were the first.

    Whatever a question adds to the graph has, at one end, a node for a name that no link of the policy names; without
    those nodes the graph is as it was when the policy had been loaded.
    """
    for manager in managers:
        if remembers(manager):
            for graph in manager.rm_map.values() if hasattr(manager, "rm_map") else (manager,):
                for name in graph.all_roles.keys() - {name for link in graph.all_links for name in link}:
                    _remove(graph, name)


def _remove(graph: Manager, name: str) -> None:
    node = graph.all_roles.pop(name)
    for role in node.roles:
        role.users.discard(node)
    for user in node.users:
        user.roles.discard(node)


class Links:
    """Which of the names `among` a name is linked to, as a plain role manager's own `has_link` says.

    `has_link` follows nothing but what `get_roles` returns, so whatever it can reach is in the closure of
    `get_roles`; the closure only narrows down what is worth asking. Each name in it is put to `has_link`, which has
    the last word, and the limit on depth. A name that has no node in a plain graph has no links, and is linked to
    itself alone.
    """

    def __init__(self, manager: Manager, among: Collection[str]) -> None:
        self._manager = manager
        self._among = frozenset(among)
        self.linked = functools.cache(self._linked)
        self.has = functools.cache(manager.has_link)

    def _linked(self, name: str, *domain: str) -> frozenset[str]:
        reachable = (
            {name, *closure(self._manager, name, *domain)} if _has_node(self._manager, name, *domain) else {name}
        )
        return frozenset(other for other in reachable & self._among if self._manager.has_link(name, other, *domain))


def _has_node(manager: Manager, name: str, *domain: str) -> bool:
    if not hasattr(manager, "rm_map"):
        return name in manager.all_roles
    key = domain[0] if domain else ""
    if key not in manager.rm_map:
        manager.get_roles(name, *domain)
    return name in manager.rm_map[key].all_roles


def closure(manager: Manager, name: str, *domain: str) -> Mapping[str, str]:
    """Return every name that links lead to from `name`, however far, each with the name before it on a shortest way."""
    before: dict[str, str] = {}
    waiting = deque([name])
    while waiting:
        current = waiting.popleft()
        for role in manager.get_roles(current, *domain):
            if role not in before and role != name:
                before[role] = current
                waiting.append(role)
    return before


def chain(manager: Manager, start: str, end: str, *domain: str) -> tuple[str, ...]:
    """Return a shortest chain of links from `start` to `end`, both included; empty where there is none."""
    if start == end:
        return (start,)
    before = closure(manager, start, *domain)
    if end not in before:
        return ()
    names = [end]
    while names[-1] != start:
        names.append(before[names[-1]])
    return tuple(reversed(names))


def followed(manager: Manager) -> int | None:
    """Return how many links in a row the manager follows; None where it is not one of casbin's own."""
    roles = installed.load().rbac.default_role_manager.role_manager
    if type(manager) in (roles.RoleManager, roles.DomainManager):
        return int(manager.max_hierarchy_level) - 1
    if type(manager) in (roles.ConditionalRoleManager, roles.ConditionalDomainManager):
        return int(manager.max_hierarchy_level)
    return None


def too_long(rules: Iterable[Sequence[str]], limit: int) -> tuple[str, ...]:
    """Return a shortest chain of more than `limit` links between two names of `rules` (member, role[, domain]), or ().

    A chain whose ends are also joined by a shorter one is followed, and no matter.
    """
    graphs: dict[str, dict[str, list[str]]] = {}
    for member, role, *domain in rules:
        graphs.setdefault(domain[0] if domain else "", {}).setdefault(member, []).append(role)
    for graph in graphs.values():
        # Every link of a shortest chain ends in a role of its own, all but the last of which are members in turn.
        if sum(role in graph for role in {role for roles in graph.values() for role in roles}) < limit:
            continue
        for member in graph:
            found = _farther(graph, member, limit)
            if found:
                return found
    return ()


def _farther(graph: Mapping[str, Sequence[str]], start: str, limit: int) -> tuple[str, ...]:
    before = {start: start}
    layer = [start]
    for _ in range(limit + 1):
        following = []
        for name in layer:
            for role in graph.get(name, ()):
                if role not in before:
                    before[role] = name
                    following.append(role)
        layer = following
    if not layer:
        return ()
    names = [layer[0]]
    while names[-1] != start:
        names.append(before[names[-1]])
    return tuple(reversed(names))


def describe(manager: Manager) -> dict[str, Any]:
    """Say of a role manager what alters its answers: its class, how many links it follows, its matching functions."""
    found: dict[str, Any] = {"class": type(manager).__name__}
    limit = followed(manager)
    if limit is not None:
        found["follows"] = limit
    for name in ("matching_func", "domain_matching_func"):
        function = getattr(manager, name, None)
        if function is not None and not _is_equality(function):
            found[name] = getattr(function, "__qualname__", type(function).__name__)
    return found
