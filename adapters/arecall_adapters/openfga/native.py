"""A store file and changes of tuples, as a scenario gives them in place of a neutral world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from arecall.adapter import Native
from arecall.errors import UsageError
from arecall_adapters.openfga.naming import Names, Template
from arecall_adapters.openfga.question import Question, TupleKey

if TYPE_CHECKING:
    from arecall_adapters.openfga.store_file import StoreFile

SETTINGS = ("type", "relation", "principal_template", "document_template")


def read(native: Native, question: Question) -> tuple[StoreFile, Question, Names]:
    """Return the store that the file `store` describes, the question to ask of it, and how ids become names.

    Raises:
        UsageError: no file, or a setting that there is not.
    """
    from arecall_adapters.openfga import store_file

    if "store" not in native.files:
        raise UsageError("a native world of openfga names a file `store` (.fga.yaml)")
    if unknown := sorted(set(native.settings) - set(SETTINGS)):
        raise UsageError(f"openfga has no setting {unknown[0]!r}; there are {', '.join(SETTINGS)}")
    given = {name: str(value) for name, value in native.settings.items()}
    type_name = given.get("type", "document")
    names = Names(
        Template(given.get("principal_template", "user:{id}"), "principal_template"),
        Template(given.get("document_template", f"{type_name}:{{id}}"), "document_template"),
        type_name,
    )
    asked = replace(question, type=type_name, relation=given.get("relation", "viewer"))
    return store_file.read(native.files["store"]), asked, names


def tuples(change: Mapping[str, Any], which: str) -> list[TupleKey]:
    """Return the tuples that a change writes or deletes.

    Raises:
        UsageError: it has another form.
    """
    if unknown := sorted(set(change) - {"write", "delete"}):
        raise UsageError(f"a native change of openfga has no {unknown[0]!r}; it has write and delete, lists of tuples")
    try:
        return msgspec.convert(change.get(which, []), list[TupleKey])
    except msgspec.ValidationError as error:
        raise UsageError(f"{which} of a native change is no list of tuples: {error}") from None
