"""A policy from a database: any casbin adapter will do; here the SQLAlchemy one, on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import casbin
import pytest

from arecall.decisions import Decision
from arecall.testing import unavailable
from arecall_adapters.casbin import from_enforcer
from unit.casbin.enforcers import checked, listed, model

try:
    import casbin_sqlalchemy_adapter as adapters
except ImportError:
    adapters = None

RBAC = model("g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act", roles={"g": "_, _"})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Any]:
    if adapters is None:
        unavailable("no SQLAlchemy adapter: pip install SQLAlchemy; pip install --no-deps casbin_sqlalchemy_adapter")
    from sqlalchemy import create_engine

    engine = create_engine(f"sqlite:///{tmp_path / 'policy.db'}")
    yield engine
    engine.dispose()


def _enforcer(database: Any) -> Any:
    return casbin.Enforcer(casbin.Enforcer.new_model(text=RBAC), adapters.Adapter(database))


def test_a_policy_in_a_database_is_asked(database: Any) -> None:
    writer = _enforcer(database)
    writer.add_policy("staff", 'é"b"', "read")
    writer.add_grouping_policy("ann", "staff")

    reader = _enforcer(database)
    adapter = from_enforcer(reader, identity={"database": "policy.db"})
    people, documents = ["ann", "Ann", "staff"], ['é"b"', "b"]
    answers = listed(adapter, people, documents)
    assert {pair for pair, decision in answers.items() if decision is Decision.ALLOW} == {
        ("ann", 'é"b"'),
        ("staff", 'é"b"'),
    }
    assert answers == checked(adapter, people, documents)
    assert adapter.method() == "fast:equality+link"
    assert adapter.describe().policy.identity == {"database": "policy.db"}

    before = adapter.describe().revision
    writer.add_policy("Ann", "b", "read")
    reader.load_policy()
    assert adapter.describe().revision != before
    assert checked(adapter, ["Ann"], ["b"]) == {("Ann", "b"): Decision.ALLOW}


def test_an_id_that_the_database_adapter_splits_is_warned_of(database: Any) -> None:
    """It joins the columns with commas, and has casbin read the line: ids with a comma come back in pieces."""
    _enforcer(database).add_policy("ann", "a, b", "read")
    adapter = from_enforcer(_enforcer(database))
    (warning,) = adapter.describe().settings["warnings"]
    assert "1 rules have other than the 3 fields of the policy definition ('ann, a, b, read' is the first)" in warning
    assert checked(adapter, ["ann"], ["a, b"]) == {("ann", "a, b"): Decision.ERROR}
