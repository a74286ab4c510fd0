"""Ids and OpenFGA's names of them."""

from __future__ import annotations

import pytest

from arecall.errors import InputError, UsageError
from arecall_adapters.openfga.naming import LONGEST_OBJECT, LONGEST_USER, Names, Template


def names(principal: str = "user:{id}", document: str = "document:{id}") -> Names:
    return Names(Template(principal, "--principal-template"), Template(document, "--document-template"), "document")


def test_ids_are_put_into_the_template_as_they_are() -> None:
    assert names().users(["ann", "007", "Ann@home"]) == {
        "ann": "user:ann",
        "007": "user:007",
        "Ann@home": "user:Ann@home",
    }
    assert names(document="document:wiki-{id}").objects(["1"]) == {"1": "document:wiki-1"}


def test_a_bare_template_takes_users_usersets_and_everyone() -> None:
    asked = ["user:ann", "group:eng#member", "user:*"]
    assert names("{id}").users(asked) == {each: each for each in asked}


def test_a_template_may_name_a_userset() -> None:
    assert names("group:{id}#member").users(["eng"]) == {"eng": "group:eng#member"}


HOSTILE = ["a b", "a\tb", "a\n", "a:b", "a#b", "*", "", "a\0"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_an_id_that_openfga_cannot_hold_is_refused_by_name(hostile: str) -> None:
    with pytest.raises(InputError) as caught:
        names().users([hostile])
    assert repr(hostile) in str(caught.value)
    with pytest.raises(InputError):
        names().objects([hostile])


@pytest.mark.parametrize("loose", ["ann", "user:", ":ann", "user:a:b", "group:eng#", "a#b"])
def test_with_a_bare_template_what_is_no_name_is_refused(loose: str) -> None:
    with pytest.raises(InputError):
        names("{id}").users([loose])


def test_length_is_what_openfga_holds() -> None:
    assert names().users(["x" * (LONGEST_USER - 5)])
    assert names().objects(["x" * (LONGEST_OBJECT - 9)])
    with pytest.raises(InputError):
        names().users(["x" * (LONGEST_USER - 4)])
    with pytest.raises(InputError):
        names().objects(["x" * (LONGEST_OBJECT - 8)])


def test_a_document_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match="no object of the type 'document'"):
        names(document="{id}").objects(["folder:1"])


def test_every_bad_id_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        names().users(["a b", "fine", "c d"])
    assert caught.value.total == 2


@pytest.mark.parametrize("template", ["user", "{id}{id}", "user:{name}", "user:{id}}"])
def test_a_template_that_could_not_be_meant_is_refused(template: str) -> None:
    with pytest.raises(UsageError):
        Template(template, "--principal-template")
