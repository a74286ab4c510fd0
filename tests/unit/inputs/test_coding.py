from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arecall.inputs.coding import Coded, Coder, offsets_of, repeats


@pytest.mark.parametrize("rows", [0, 1, 5_000])  # numpy sorts a few rows in another way than many
def test_repeats_are_the_later_rows_of_a_pair_with_the_first_row_of_each(rows: int) -> None:
    rng = np.random.default_rng(rows)
    lists, items = rng.integers(0, 20, rows, dtype=np.int32), rng.integers(0, 40, rows, dtype=np.int32)
    expected: list[tuple[int, int]] = []
    first_row: dict[tuple[int, int], int] = {}
    for row, pair in enumerate(zip(lists.tolist(), items.tolist(), strict=True)):
        if (first := first_row.setdefault(pair, row)) != row:
            expected.append((row, first))
    later, first_rows = repeats(lists, items)
    assert list(zip(later.tolist(), first_rows.tolist(), strict=True)) == expected


def test_pairs_of_large_codes_are_told_apart() -> None:
    top = np.iinfo(np.int32).max
    codes = np.array([0, top, top - 1, 1], dtype=np.int32)
    assert len(repeats(codes, codes[::-1].copy())[0]) == 0
    assert repeats(np.array([top, top], np.int32), np.array([top, top], np.int32))[0].tolist() == [1]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=2)))
def test_sorting_a_column_changes_codes_and_no_row(column: list[str]) -> None:
    coder = Coder()
    for value in column:
        coder.append(coder.code(value))
    coded = coder.coded().sorted()
    assert [coded[row] for row in range(len(column))] == column
    assert list(coded.ids) == sorted(set(column), key=str.encode)


def test_the_id_of_a_row_is_found_by_its_code() -> None:
    assert Coded(["b", "a"], np.array([1, 0, 1], dtype=np.int32))[2] == "a"


def test_lists_without_rows_have_empty_ranges() -> None:
    assert offsets_of(np.array([1, 1, 3], dtype=np.int32), 5).tolist() == [0, 0, 2, 2, 3, 3]
    assert offsets_of(np.array([], dtype=np.int32), 2).tolist() == [0, 0, 0]
