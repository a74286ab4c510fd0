"""From the command line's options, and from Python, to an adapter and its record."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casbin
import msgspec
import pytest

from arecall.decisions import Decision
from arecall.errors import MissingExtra, PolicyError, UsageError
from arecall.record import Backend
from arecall_adapters.casbin import ADAPTER, CasbinAdapter, connect, from_enforcer, installed
from unit.casbin.enforcers import DENY_OVERRIDE, Notes, Rule, checked, enforcer, listed, model

ACL = model("r.sub == p.sub && r.obj == p.obj && r.act == p.act")
RULES: list[Rule] = [("p", "ann", "d1", "read"), ("p", "bob", "d2", "write")]


@pytest.fixture
def files(tmp_path: Path) -> Mapping[str, Any]:
    (tmp_path / "model.conf").write_text(ACL)
    (tmp_path / "policy.csv").write_text("\n".join(", ".join(rule) for rule in RULES))
    return {"model": tmp_path / "model.conf", "policy": tmp_path / "policy.csv"}


def test_importing_the_adapter_imports_no_casbin() -> None:
    script = "import sys, arecall_adapters.casbin; sys.exit('casbin' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_casbin_the_extra_is_named(files: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "casbin", None)
    with pytest.raises(MissingExtra, match=r"pip install 'arecall\[casbin\]'"):
        connect(files)


def test_a_model_and_a_policy_file_are_asked(files: Mapping[str, Any]) -> None:
    with connect(files) as adapter:
        answers = listed(adapter, ["ann", "bob"], ["d1", "d2"])
        assert {pair for pair, decision in answers.items() if decision is Decision.ALLOW} == {("ann", "d1")}
    with connect({**files, "action": "write"}) as adapter:
        assert checked(adapter, ["bob"], ["d2"]) == {("bob", "d2"): Decision.ALLOW}


def test_the_defaults_of_the_options_are_those_of_python(files: Mapping[str, Any]) -> None:
    defaults = {option.name.replace("-", "_"): option.default for option in ADAPTER.options}
    given = connect({**defaults, **files}).describe()
    assert given == connect(files).describe()
    assert given.settings == from_enforcer(enforcer(ACL, RULES)).describe().settings


def test_attributes_and_values_come_from_files_and_options(files: Mapping[str, Any], tmp_path: Path) -> None:
    (tmp_path / "model.conf").write_text(
        model("r.sub.team == r.obj.team && r.now < r.until && r.domain == 't1'", request="sub, obj, now, until, domain")
    )
    (tmp_path / "people.jsonl").write_text('{"id": "ann", "team": "red"}\n{"id": "bob", "team": "blue"}\n')
    (tmp_path / "papers.jsonl").write_text('{"id": "d1", "team": "red"}\n')
    (tmp_path / "now.json").write_text('{"now": 3, "until": 5}')
    adapter = connect(
        {
            **files,
            "subjects": tmp_path / "people.jsonl",
            "objects": tmp_path / "papers.jsonl",
            "environment": tmp_path / "now.json",
            "value": ("domain=t1",),
            "request": "{subject}, {object}, {now}, {until}, {domain}",
        }
    )
    assert listed(adapter, ["ann", "bob", "eve"], ["d1"]) == {
        ("ann", "d1"): Decision.ALLOW,
        ("bob", "d1"): Decision.DENY,
        ("eve", "d1"): Decision.CONDITIONAL,
    }
    settings = adapter.describe().settings
    assert all(settings[name].startswith("sha256:") for name in ("subjects", "objects", "environment"))


@pytest.mark.parametrize("values", [("domain",), ("=t1",), ("a-b=1",), ("x=1", "x=2")])
def test_a_malformed_value_is_refused(files: Mapping[str, Any], values: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"no NAME=VALUE|given twice"):
        connect({**files, "value": values})


def test_a_value_may_hold_an_equals_sign(files: Mapping[str, Any]) -> None:
    adapter = connect({**files, "value": ("x=a=b",), "request": "{principal}, {document}, {x}"})
    assert adapter.request.values("ann", "d1") == ("ann", "d1", "a=b")


@pytest.mark.parametrize(
    ("left_out", "given", "says"),
    [
        ("model", {}, "a --model is needed"),
        ("policy", {}, "a --policy is needed"),
        ("", {"enforcer": "x:y"}, "brings its own model and policy"),
        ("", {"context": "r2,p2"}, "a context names four types"),
    ],
)
def test_options_that_do_not_fit_are_refused(files: Mapping[str, Any], left_out: str, given: Any, says: str) -> None:
    options = {name: value for name, value in files.items() if name != left_out}
    with pytest.raises(UsageError, match=says):
        connect({**options, **given})


def test_a_model_that_uses_no_policy_is_asked_without_one(files: Mapping[str, Any]) -> None:
    files["model"].write_text(model("r.sub == r.obj"))
    adapter = connect({"model": files["model"], "allow_empty_policy": True})
    assert listed(adapter, ["ann"], ["ann", "d1"]) == {("ann", "ann"): Decision.ALLOW, ("ann", "d1"): Decision.DENY}
    assert adapter.method() == "fast:equality"


@pytest.mark.parametrize("text", ["nonsense", "[request_definition]\nr = sub\n"])
def test_a_broken_model_is_refused(files: Mapping[str, Any], text: str) -> None:
    files["model"].write_text(text)
    with pytest.raises(PolicyError):
        connect(files)


def test_a_missing_file_is_refused(files: Mapping[str, Any], tmp_path: Path) -> None:
    for name in files:
        with pytest.raises(PolicyError, match="nowhere"):
            connect({**files, name: tmp_path / "nowhere"})


# -- an enforcer of the user's --------------------------------------------------------------------------------------------


def test_an_enforcer_is_built_by_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "access_control.py").write_text(
        "import casbin\n"
        "def build():\n"
        f"    made = casbin.Enforcer(casbin.Enforcer.new_model(text={model('mine(r.sub, p.sub)')!r}))\n"
        "    made.add_function('mine', lambda name, other: name.startswith(other))\n"
        "    made.add_policy('an', 'd1', 'read')\n"
        "    return made\n"
        "def broken():\n"
        "    raise LookupError('no database')\n"
        "def nothing():\n"
        "    return 7\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    adapter = connect({"enforcer": "access_control:build"})
    assert checked(adapter, ["ann", "bob"], ["d1"]) == {("ann", "d1"): Decision.ALLOW, ("bob", "d1"): Decision.DENY}
    assert adapter.describe().policy.identity == {"enforcer": "access_control:build"}
    for name, says in (
        ("broken", "LookupError: no database"),
        ("nothing", "returned a int"),
        ("absent", "AttributeError"),
    ):
        with pytest.raises(PolicyError, match=says):
            connect({"enforcer": f"access_control:{name}"})
    with pytest.raises(PolicyError, match="ModuleNotFoundError"):
        connect({"enforcer": "no_such_module:build"})
    with pytest.raises(UsageError, match="no MODULE:FUNCTION"):
        connect({"enforcer": "access_control"})


def test_multiple_types_are_asked_for_by_a_context() -> None:
    text = ACL + "\nm2 = eval(p2.rule) && r2.obj == p2.obj\n"
    text = text.replace("p = sub, obj, act", "p = sub, obj, act\np2 = rule, obj, eft")
    text = text.replace("r = sub, obj, act", "r = sub, obj, act\nr2 = sub, obj")
    made = enforcer(text, [*RULES, ("p2", "r2.sub.age > 18", "d1", "allow")])
    adapter = from_enforcer(
        made,
        request="{subject}, {document}",
        context=("r2", "p2", "e", "m2"),
        subjects={"ann": {"age": 20}, "bob": {"age": 9}},
    )
    expected = {("ann", "d1"): Decision.ALLOW, ("bob", "d1"): Decision.DENY}
    assert listed(adapter, ["ann", "bob"], ["d1"]) == expected == checked(adapter, ["ann", "bob"], ["d1"])
    assert adapter.describe().settings["context"] == "r2,p2,e,m2"


def test_the_fast_road_follows_a_context() -> None:
    text = (
        ACL.replace("p = sub, obj, act", "p = sub, obj, act\np2 = obj, sub, eft")
        + "\nm2 = r.sub == p2.sub && r.obj == p2.obj\n"
    )
    made = enforcer(text, [*RULES, ("p2", "d1", "eve", "allow"), ("p2", "d2", "eve", "deny")])
    adapter = from_enforcer(made, context=("r", "p2", "e", "m2"))
    answers = listed(adapter, ["ann", "eve"], ["d1", "d2"])
    assert {pair for pair, decision in answers.items() if decision is Decision.ALLOW} == {("eve", "d1")}
    assert answers == checked(adapter, ["ann", "eve"], ["d1", "d2"])
    assert adapter.method() == "fast:equality"


@pytest.mark.parametrize("made", [casbin.SyncedEnforcer, casbin.FastEnforcer])
def test_other_enforcers_of_casbin_are_asked(made: Any, files: Mapping[str, Any]) -> None:
    adapter = from_enforcer(made(str(files["model"]), str(files["policy"])))
    answers = listed(adapter, ["ann", "bob"], ["d1", "d2"])
    assert {pair for pair, decision in answers.items() if decision is Decision.ALLOW} == {("ann", "d1")}
    assert adapter.method() == ("fast:equality" if made is casbin.SyncedEnforcer else "enforce")
    assert adapter.describe().settings["enforcer"] == made.__name__


def test_an_enforcer_with_code_of_its_own_is_asked_plainly() -> None:
    class Mine(casbin.Enforcer):  # type: ignore[misc]
        def enforce(self, *values: Any) -> bool:
            return values[0] == "root" or bool(super().enforce(*values))

    adapter = from_enforcer(Mine(casbin.Enforcer.new_model(text=ACL), enforcer(ACL, RULES).get_adapter()))
    notes = Notes()
    answers = listed(adapter, ["root", "bob"], ["d1"], notes)
    assert answers == {("root", "d1"): Decision.ALLOW, ("bob", "d1"): Decision.DENY}
    assert notes.notes == ["enforce() is asked about every pair: the enforcer is a Mine with code of its own"]


def test_an_unknown_casbin_is_asked_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arecall_adapters.casbin.matcher.PROVED", frozenset())
    adapter = from_enforcer(enforcer(ACL, RULES))
    notes = Notes()
    assert listed(adapter, ["ann"], ["d1"], notes) == {("ann", "d1"): Decision.ALLOW}
    assert adapter.method() == "enforce"
    assert "is not a casbin that the fast road was proved against" in notes.notes[0]


def test_the_plain_road_can_be_asked_for(files: Mapping[str, Any]) -> None:
    adapter = connect({**files, "road": "enforce"})
    notes = Notes()
    listed(adapter, ["ann"], ["d1"], notes)
    assert (adapter.method(), notes.notes) == ("enforce", [])


# -- the record -----------------------------------------------------------------------------------------------------------


def _described(adapter: CasbinAdapter) -> Backend:
    found = adapter.describe()
    assert found == adapter.describe()
    return msgspec.convert(msgspec.to_builtins(found), Backend)


def test_the_record_names_what_decides(files: Mapping[str, Any]) -> None:
    found = _described(connect(files))
    assert (found.kind, found.identity, found.action) == ("casbin", "model.conf, policy.csv", "read")
    assert found.version in ("pycasbin 2.8.0", "casbin 1.43.0")
    assert found.policy.identity == {"model": "model.conf", "policy": "policy.csv"}
    assert found.revision == found.policy.digest
    assert (found.missing_acl, found.missing_identity) == ("deny", "public_only")
    assert found.settings == {
        "effect": "some(where (p_eft == allow))",
        "matcher": "r_sub == p_sub and r_obj == p_obj and r_act == p_act".replace("and", "&&"),
        "request": "{principal}, {document}, {action}",
    }


def test_an_effect_that_allows_by_default_is_named() -> None:
    found = _described(from_enforcer(enforcer(model("r.sub == p.sub", effect=DENY_OVERRIDE), RULES)))
    assert (found.missing_acl, found.missing_identity) == ("allow", "allow")


def test_an_effector_that_was_set_is_asked_and_named() -> None:
    made = enforcer(model("r.sub == p.sub"), RULES)
    made.set_effector(casbin.effect.DenyOverrideEffector())
    adapter = from_enforcer(made)
    found = _described(adapter)
    assert (found.missing_acl, found.settings["effector"]) == ("allow", "DenyOverrideEffector")
    assert listed(adapter, ["eve"], ["d1"]) == checked(adapter, ["eve"], ["d1"]) == {("eve", "d1"): Decision.ALLOW}
    assert adapter.method() == "fast:equality"


def test_an_effector_of_the_users_is_asked_plainly() -> None:
    class Contrary(casbin.effect.AllowOverrideEffector):  # type: ignore[misc]
        def final_effect(self, effects: Any) -> Any:
            allow = casbin.effect.Effector.ALLOW
            return casbin.effect.Effector.DENY if allow in effects else allow

    made = enforcer(model("r.sub == p.sub"), RULES)
    made.set_effector(Contrary())
    adapter = from_enforcer(made)
    answers = listed(adapter, ["ann", "eve"], ["d1"])
    assert answers == {("ann", "d1"): Decision.DENY, ("eve", "d1"): Decision.ALLOW}
    assert (adapter.method(), _described(adapter).missing_acl) == ("enforce", "allow")


def test_links_that_were_not_built_are_not_followed() -> None:
    made = casbin.Enforcer(casbin.Enforcer.new_model(text=model("g(r.sub, p.sub)", roles={"g": "_, _"})))
    made.enable_auto_build_role_links(False)
    made.set_adapter(
        enforcer(
            model("g(r.sub, p.sub)", roles={"g": "_, _"}), [("p", "staff", "d", "r"), ("g", "ann", "staff")]
        ).get_adapter()
    )
    made.load_policy()
    adapter = from_enforcer(made)
    assert listed(adapter, ["ann", "staff"], ["d"]) == {("ann", "d"): Decision.DENY, ("staff", "d"): Decision.ALLOW}
    assert adapter.method() == "fast:link"
    made.build_role_links()
    assert listed(adapter, ["ann"], ["d"]) == checked(adapter, ["ann"], ["d"]) == {("ann", "d"): Decision.ALLOW}


def test_role_managers_are_described() -> None:
    made = enforcer(model("g(r.sub, p.sub)", roles={"g": "_, _"}), RULES)
    made.add_named_matching_func("g", casbin.util.key_match_func)
    assert _described(from_enforcer(made)).settings["role_managers"] == {
        "g": {"class": "RoleManager", "follows": 9, "matching_func": "key_match_func"}
    }


def test_the_digest_covers_model_rules_and_their_order() -> None:
    digests = {
        from_enforcer(enforcer(text, rules)).describe().policy.digest
        for text in (ACL, ACL.replace("r.act == p.act", "r.act != p.act"))
        for rules in (RULES, RULES[::-1], RULES[:1], [("p", "annd", "1", "read"), RULES[1]])
    }
    assert len(digests) == 8


def test_the_digest_tells_a_number_from_its_text() -> None:
    one, other = ([("p", "ann", value, "read")] for value in (1, "int 1"))
    assert _digest(one) != _digest(other) != _digest([("p", "ann", "1", "read")])


def _digest(rules: Any) -> str:
    return from_enforcer(enforcer(ACL, rules)).describe().policy.digest


def test_the_digest_is_read_anew() -> None:
    made = enforcer(ACL, RULES)
    adapter = from_enforcer(made)
    before = adapter.describe().revision
    made.get_model().add_policy("p", "p", ["eve", "d1", "read"])
    assert adapter.describe().revision != before
    assert checked(adapter, ["eve"], ["d1"]) == listed(adapter, ["eve"], ["d1"]) == {("eve", "d1"): Decision.ALLOW}


class _Installed:
    """A distribution whose recorded digests fit the files, or not."""

    def __init__(self, name: str, version: str, *, fits: bool) -> None:
        self.name, self.version, self.fits = name, version, fits


@pytest.mark.parametrize(
    ("fits", "named"),
    [
        ({"casbin": True}, "casbin 9"),
        ({"casbin": False, "pycasbin": True}, "pycasbin 9"),
        ({"casbin": False, "pycasbin": False}, "casbin 9 or pycasbin 9, installed over each other"),
        ({}, "unknown"),
    ],
)
def test_the_distribution_whose_files_are_there_is_named(
    fits: Mapping[str, bool], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: {"casbin": list(fits)})
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: _Installed(name, "9", fits=fits[name]))
    monkeypatch.setattr(installed, "_is_on_disk", lambda found, _: found.fits)
    installed.version.cache_clear()
    try:
        assert installed.version() == named
    finally:
        installed.version.cache_clear()


def test_a_distribution_fits_the_files_that_it_recorded(tmp_path: Path) -> None:
    (name,) = set(importlib.metadata.packages_distributions()["casbin"])
    distribution = importlib.metadata.distribution(name)
    package = tmp_path / "casbin"
    shutil.copytree(Path(casbin.__file__).parent, package)
    assert installed._is_on_disk(distribution, package)
    (package / "enforcer.py").write_text("")
    assert not installed._is_on_disk(distribution, package)
    (package / "enforcer.py").unlink()
    assert not installed._is_on_disk(distribution, package)
