"""What is odd in a listing, beside the decisions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from arecall.record import Finding
from arecall_adapters.dls.documents import Documents

Positions = np.ndarray[tuple[int], np.dtype[np.uint32]]
"""Sorted positions in the universe that was asked about."""


def absent(documents: Documents, universe: Sequence[str]) -> Iterator[Finding]:
    """Tell which documents of the universe are not there at all, which nobody is shown and nobody is denied."""
    there = set(documents.ids)
    for document in universe:
        if document not in there:
            yield Finding(kind="absent", what=f"{document} is not in the index", document=document)


def fewer_with_more_roles(
    role_sets: Mapping[str, Sequence[str]], seen: Mapping[str, Positions], universe: Sequence[str]
) -> Iterator[Finding]:
    """Tell of each two sets of roles of which the larger sees less: a document that another role takes away."""
    for small, large in itertools.permutations(seen, 2):
        if not set(role_sets[small]) < set(role_sets[large]):
            continue
        for position in np.setdiff1d(seen[small], seen[large], assume_unique=True):
            document = universe[int(position)]
            more = "+".join(sorted(set(role_sets[large]) - set(role_sets[small])))
            yield Finding(
                kind="more roles see less",
                what=f"{small} sees {document}; with {more} added, {large} does not",
                principal=large,
                document=document,
            )
