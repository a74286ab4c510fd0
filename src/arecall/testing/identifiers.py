"""Tests of hostile identifiers: each comes back byte for byte, or is refused by name with a typed error.

An id that is trimmed, folded, cut or read as a pattern on its way gives one document's access to another. So every id
has a twin, which is what it would become; both are in one world, and each is for somebody else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pytest

from arecall.adapter import Adapter, Capability, needs
from arecall.errors import ArecallError
from arecall.testing.kit import Kit, is_refusal
from arecall.testing.roads import hold
from arecall.testing.worlds import TruthTable
from arecall.world import Group, Principal, World

TWINS: Mapping[str, tuple[str, str]] = {
    "case": ("Report", "report"),
    "sharp s": ("straße", "strasse"),
    "dotted capital i": ("\u0130d", "id"),
    "composed and decomposed": ("caf\u00e9", "cafe\u0301"),
    "compatibility form": ("\ufb01le", "file"),
    "kelvin sign": ("\u212a1", "K1"),
    "look-alike": ("\u0430nn", "ann"),
    "zero width": ("re\u200bport", "report"),
    "byte order mark": ("\ufeffreport", "report"),
    "emoji": ("📄-1", "📄-2"),
    "space before": (" report", "report"),
    "space after": ("report ", "report"),
    "two spaces": ("my  report", "my report"),
    "only a space": (" ", "report"),
    "no-break space": ("my\u00a0report", "my report"),
    "tab": ("my\treport", "my report"),
    "newline within": ("my\nreport", "my"),
    "newline at the end": ("report\n", "report"),
    "carriage return": ("report\r", "report"),
    "null character": ("report\0x", "report"),
    "comma": ("report,draft", "report"),
    "semicolon": ("report;draft", "report"),
    "colon": ("report:draft", "report"),
    "type prefix": ("document:report", "report"),
    "hash": ("report#draft", "report"),
    "comment": ("#report", "report"),
    "at": ("report@home", "report"),
    "single quote": ("o'report", "oreport"),
    "double quote": ('"report"', "report"),
    "backslash": ("my\\report", "myreport"),
    "escape": ("my\\nreport", "my\nreport"),
    "slash": ("my/report", "my"),
    "slash at the end": ("report/", "report"),
    "path upwards": ("my/../report", "report"),
    "percent": ("my%20report", "my report"),
    "plus": ("my+report", "my report"),
    "sql wildcard": ("rep_rt%", "report"),
    "star alone": ("*", "report"),
    "star at the end": ("rep*", "report"),
    "question mark": ("rep?rt", "report"),
    "regular expression": ("rep.*", "report"),
    "group of a regular expression": ("(report)", "report"),
    "path parameter": ("/:id", "/report"),
    "brackets": ("[report]", "report"),
    "template": ("{{report}}", "report"),
    "dollar": ("${report}", "report"),
    "leading dash": ("-report", "report"),
    "leading underscore": ("_report", "report"),
    "leading zeros": ("007", "7"),
    "number": ("1e3", "1000"),
    "boolean": ("no", "false"),
    "null": ("null", "None"),
    "long": ("x" * 511 + "y", "x" * 511 + "z"),
    "long and cut": ("x" * 512, "x" * 256),
}
"""Ids, each with the twin that it must not be taken for."""

EXPRESSIONS = (
    "*",
    "?",
    "%",
    ".*",
    "a*",
    "ANN",
    "ann ",
    " ann",
    "ann\n",
    "ann\0",
    "ann,bob",
    "ann' OR '1'='1",
    'ann" || "1"=="1',
    "user:ann",
    "user:*",
    "group:staff",
    "group:staff#member",
    "staff",
    "../ann",
    "everyone",
    "public",
    "anonymous",
    "null",
)
"""Ids that nobody bears, and that mean somebody else, a group or everyone where they are read as more than an id."""

_WHERE: Mapping[str, Callable[[str, str], TruthTable]] = {
    "document": lambda this, twin: TruthTable(
        World(
            principals=frozenset(["ann", "bob"]),
            documents=frozenset([this, twin]),
            grants=frozenset([(Principal("ann"), this), (Principal("bob"), twin)]),
        ),
        {"ann": frozenset([this]), "bob": frozenset([twin])},
    ),
    "principal": lambda this, twin: TruthTable(
        World(
            principals=frozenset([this, twin]),
            documents=frozenset(["memo", "plan"]),
            grants=frozenset([(Principal(this), "memo"), (Principal(twin), "plan")]),
        ),
        {this: frozenset(["memo"]), twin: frozenset(["plan"])},
    ),
    "group": lambda this, twin: TruthTable(
        World(
            principals=frozenset(["ann", "bob", "cat"]),
            documents=frozenset(["memo", "plan"]),
            groups={this: frozenset([Principal("cat")]), twin: frozenset([Principal("bob")])},
            grants=frozenset([(Group(this), "memo"), (Group(twin), "plan")]),
        ),
        {"ann": frozenset(), "bob": frozenset(["plan"]), "cat": frozenset(["memo"])},
    ),
}


class Identifiers(Kit):
    """Ids that look like something else."""

    @pytest.mark.parametrize("twins", TWINS)
    @pytest.mark.parametrize("where", _WHERE)
    def test_id_is_kept_or_refused_by_name(self, adapter: Adapter, where: str, twins: str) -> None:
        """Of two ids that nearly are one, each is for somebody else."""
        this, twin = TWINS[twins]
        self._kept_or_refused(adapter, _WHERE[where](this, twin), (this, twin))

    def test_group_is_not_the_principal_of_its_name(self, adapter: Adapter) -> None:
        """Who is called as a group is, is not in it; and what is granted to the one is not granted to the other."""
        world = World(
            principals=frozenset(["ann", "staff"]),
            documents=frozenset(["memo", "plan"]),
            groups={"staff": frozenset([Principal("ann")])},
            grants=frozenset([(Group("staff"), "memo"), (Principal("staff"), "plan")]),
        )
        readable = {"ann": frozenset(["memo"]), "staff": frozenset(["plan"])}
        self._kept_or_refused(adapter, TruthTable(world, readable), ("staff",))

    def test_document_is_not_the_principal_of_its_name(self, adapter: Adapter) -> None:
        """Who is called as a document is, has no right to it by that."""
        world = World(
            principals=frozenset(["ann", "memo"]),
            documents=frozenset(["ann", "memo"]),
            grants=frozenset([(Principal("ann"), "memo")]),
        )
        readable = {"ann": frozenset(["memo"]), "memo": frozenset[str]()}
        self._kept_or_refused(adapter, TruthTable(world, readable), ("memo", "ann"))

    @pytest.mark.parametrize("stranger", EXPRESSIONS)
    def test_stranger_is_nobody_else(self, adapter: Adapter, stranger: str) -> None:
        """Whoever asks under an id that nobody bears is given nobody's documents."""
        groups = self.spec.support(Capability.GROUPS).supported
        world = World(
            principals=frozenset(["ann", "bob"]),
            documents=frozenset(["memo", "plan"]),
            groups={"staff": frozenset([Principal("bob")])} if groups else {},
            grants=frozenset([(Principal("ann"), "memo"), (Group("staff") if groups else Principal("bob"), "plan")]),
        )
        self.prepare(adapter, world)
        allowed = frozenset(world.documents) if adapter.describe().missing_identity == "allow" else frozenset[str]()
        for road in self.roads:
            try:
                answers = road.ask(adapter, [stranger], ["memo", "plan"])
            except ArecallError as error:
                _must_name(error, [stranger])
                continue
            if adapter.describe().missing_identity != "error":
                hold(answers, {stranger: allowed}, road.value)
            elif any(decision.plain for decision in answers[stranger].values()):
                pytest.fail(f"missing_identity is 'error', and {road.value} decided {answers}", pytrace=False)

    def _kept_or_refused(self, adapter: Adapter, table: TruthTable, ids: Collection[str]) -> None:
        __tracebackhide__ = True
        for capability in needs(table.world):
            self.need(capability)
        try:
            self.provision(adapter, table.world)
            for road in self.roads:
                answers = road.ask(adapter, sorted(table.readable), sorted(table.world.documents))
                hold(answers, table.readable, road.value)
        except ArecallError as error:
            _must_name(error, ids)


def _must_name(error: ArecallError, ids: Collection[str]) -> None:
    """Fail unless `error` refuses one of `ids` by name; a long one may be cut after 32 characters."""
    __tracebackhide__ = True
    if not is_refusal(error):
        raise error
    forms = {form for name in ids for form in (name[:32], repr(name)[1:-1][:32])}
    if not any(form in str(error) for form in forms):
        pytest.fail(f"one of {sorted(ids)!r:.200} was refused, but not by name: {error}", pytrace=False)
