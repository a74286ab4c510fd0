"""What a model has, and which conditions a decision may come to."""

from __future__ import annotations

from typing import Any

import pytest

from arecall.errors import PolicyError
from arecall_adapters.openfga.model import Model


def direct(*restrictions: dict[str, Any]) -> dict[str, Any]:
    return {"directly_related_user_types": list(restrictions)}


MODEL = Model(
    "m",
    {
        "id": "m",
        "schema_version": "1.1",
        "conditions": {"awake": {"parameters": {"hour": {}}}, "near": {"parameters": {"place": {}, "range": {}}}},
        "type_definitions": [
            {"type": "user"},
            {
                "type": "folder",
                "relations": {"viewer": {"this": {}}, "plain": {"this": {}}},
                "metadata": {
                    "relations": {
                        "viewer": direct(
                            {"type": "user", "condition": "awake"}, {"type": "folder", "relation": "viewer"}
                        ),
                        "plain": direct({"type": "user"}),
                    }
                },
            },
            {
                "type": "document",
                "relations": {
                    "parent": {"this": {}},
                    "blocked": {"this": {}},
                    "plain": {"this": {}},
                    "inherited": {
                        "tupleToUserset": {
                            "tupleset": {"relation": "parent"},
                            "computedUserset": {"relation": "viewer"},
                        }
                    },
                    "viewer": {
                        "difference": {
                            "base": {
                                "union": {"child": [{"this": {}}, {"computedUserset": {"relation": "inherited"}}]}
                            },
                            "subtract": {"computedUserset": {"relation": "blocked"}},
                        }
                    },
                },
                "metadata": {
                    "relations": {
                        "parent": direct({"type": "folder"}),
                        "blocked": direct({"type": "user", "condition": "near"}),
                        "plain": direct({"type": "user"}),
                        "viewer": direct({"type": "user"}),
                    }
                },
            },
        ],
    },
)


def test_conditions_are_found_through_every_kind_of_rewrite() -> None:
    assert MODEL.parameters("document", "inherited") == {"hour"}
    assert MODEL.parameters("document", "viewer") == {"hour", "place", "range"}
    assert MODEL.parameters("document", "plain") == set()
    assert MODEL.parameters("folder", "plain") == set()


def test_what_the_model_has_is_not_refused() -> None:
    MODEL.demand("document", "viewer")


@pytest.mark.parametrize(
    ("type_name", "relation", "said"),
    [
        ("documnt", "viewer", "no type 'documnt' .did you mean 'document'"),
        ("document", "veiwer", "no relation 'veiwer' .did you mean 'viewer'"),
        ("user", "viewer", "it has none"),
    ],
)
def test_what_the_model_lacks_is_refused(type_name: str, relation: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        MODEL.demand(type_name, relation)


def test_the_digest_is_of_what_a_model_says_and_not_of_its_id() -> None:
    assert MODEL.digest == Model("other", {**MODEL.body, "id": "other"}).digest
    assert MODEL.digest != Model("m", {**MODEL.body, "schema_version": "1.2"}).digest
