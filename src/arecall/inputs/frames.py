"""Tables in Arrow form: Parquet files, and anything that exports an Arrow stream (Polars, pandas 2.2, PyArrow).

Types are never guessed: an id column must hold strings, a number column numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arecall.decisions import id_problem
from arecall.errors import InputError
from arecall.inputs.coding import Coded
from arecall.inputs.lines import PYTHON, File
from arecall.inputs.problems import Problems, near

_PANDAS_INDEX = "__index_level_"  # how pandas names an index without a name when it exports a frame


class Frame:
    """An Arrow table, with columns read as what the caller says they are.

    `name` is the file's name or `"<python>"`; `where(row)` names a row (counted from 0) in messages. Whatever does not
    fit (a missing column, another type, null, an empty id) is an `InputError`, or a problem where one is collected.
    """

    def __init__(self, name: str, where: Callable[[int], str], load: Callable[[], Any]) -> None:
        import pyarrow as pa

        self.name = name
        self.where = where
        try:
            self._table = load()
            self._table.validate(full=True)  # strings from elsewhere are not known to be UTF-8
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError.single(name, f"cannot be read as a table: {error}") from error
        self.columns: list[str] = self._table.column_names
        for column in self.columns:
            if self.columns.count(column) > 1:
                raise InputError.single(name, f"has the column {column!r} twice")

    @classmethod
    def parquet(cls, file: File) -> Frame:
        """Read the content of a Parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        return cls(file.source.name, file.row, lambda: pq.ParquetFile(pa.BufferReader(file.data)).read())

    @classmethod
    def arrow(cls, obj: object) -> Frame:
        """Read a Python object that has `__arrow_c_stream__`."""
        import pyarrow as pa

        def load() -> Any:
            return obj if isinstance(obj, pa.Table) else pa.table(obj)

        return cls(PYTHON, lambda row: f"{PYTHON}, row {row + 1}", load)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def find(self, *names: str) -> str | None:
        """Return the one column that has any of `names`, or None; two of them are an `InputError`."""
        found = [name for name in names if name in self.columns]
        if len(found) > 1:
            raise InputError.single(self.name, f"has both {found[0]!r} and {found[1]!r}: keep one of the two columns")
        return found[0] if found else None

    def need(self, *names: str) -> str:
        """Return the one column that has any of `names`; `InputError` if there is none."""
        if found := self.find(*names):
            return found
        has = ", ".join(map(repr, self.columns))
        raise InputError.single(self.name, f"has no column {' or '.join(map(repr, names))} (it has {has or 'none'})")

    def refuse_others(self, known: tuple[str, ...]) -> None:
        """Raise `InputError` for columns that are not among `known`."""
        problems = Problems()
        for column in self.columns:
            if column not in known and not column.startswith(_PANDAS_INDEX):
                problems.add(self.name, f"has an unknown column {column!r}{near(column, known)}")
        problems.check()

    def ids(self, column: str, problems: Problems) -> Coded:
        """Return a column of ids; null is a problem."""
        coded = self.ids_or_null(column, problems)
        self._refuse_null(coded.codes < 0, column, problems)
        return coded

    def ids_or_null(self, column: str, problems: Problems) -> Coded:
        """Return a column of ids in which null has the code -1."""
        self._check_strings(column, self._table.schema.field(column).type)
        return self._coded(self._table.column(column), column, self.where, problems)

    def id_lists(self, column: str, problems: Problems) -> tuple[NDArray[np.int64], Coded]:
        """Return a column of lists of ids as the (N,) lengths and all their elements; null anywhere is a problem."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = self._table.schema.field(column).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise InputError.single(self.name, f"the column {column!r} must hold lists of strings, not {kind}")
        self._check_strings(column, kind.value_type)
        lists = self._table.column(column)
        self._refuse_null(lists.is_null().to_numpy(), column, problems)
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        ends = np.cumsum(lengths)

        def where(element: int) -> str:
            return self.where(int(np.searchsorted(ends, element, side="right")))

        coded = self._coded(pc.list_flatten(lists), column, where, problems)
        problems.add_rows(np.flatnonzero(coded.codes < 0), where, lambda _: f"a null in the list {column!r}")
        return lengths, coded

    def floats(self, column: str, problems: Problems) -> NDArray[np.float64]:
        """Return a column of floats or integers as float64; null, NaN and infinity are problems."""
        import pyarrow as pa

        kind = self._table.schema.field(column).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise InputError.single(self.name, f"the column {column!r} must hold numbers, not {kind}")
        values = self._table.column(column)
        self._refuse_null(values.is_null().to_numpy(), column, problems)
        numbers: NDArray[np.float64] = values.drop_null().to_numpy().astype(np.float64)
        if len(numbers) == len(self):
            problems.add_rows(
                np.flatnonzero(~np.isfinite(numbers)),
                self.where,
                lambda row: f"{column!r} is {numbers[row]}, not a finite number",
            )
        return numbers

    def integers(self, column: str, problems: Problems) -> NDArray[np.int64]:
        """Return a column of integers as int64; null is a problem."""
        values, null = self.integers_or_null(column)
        self._refuse_null(null, column, problems)
        return values

    def integers_or_null(self, column: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return a column of integers as int64, in which null reads 0, and which rows are null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = self._table.schema.field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise InputError.single(self.name, f"the column {column!r} must hold integers, not {kind}")
        values = self._table.column(column)
        try:
            numbers = pc.fill_null(values.cast(pa.int64()), 0)
        except pa.ArrowInvalid as error:
            raise InputError.single(self.name, f"the column {column!r} holds integers out of range: {error}") from error
        return numbers.to_numpy(), values.is_null().to_numpy()

    def _check_strings(self, column: str, kind: Any) -> None:
        import pyarrow as pa

        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
        if not any(is_kind(inner) for is_kind in strings):
            raise InputError.single(
                self.name, f"the column {column!r} must hold strings, not {kind}: ids are strings, as written"
            )

    def _coded(self, values: Any, column: str, where: Callable[[int], str], problems: Problems) -> Coded:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(values.type):  # the cast lacks kernels for some kinds of dictionary
            parts = [part.dictionary.cast(pa.large_string()).take(part.indices) for part in values.chunks]
            values = pa.chunked_array(parts, pa.large_string())
        encoded = values.cast(pa.large_string()).combine_chunks().dictionary_encode()
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int32)
        ids: list[str] = encoded.dictionary.to_pylist()
        for code, value in enumerate(ids):
            if problem := id_problem(value):
                rows = np.flatnonzero(codes == code)
                problems.add_rows(rows, where, lambda _, problem=problem: f"{column!r}: {problem}")  # type: ignore[misc]
        return Coded(ids, codes)

    def _refuse_null(self, null: NDArray[np.bool_], column: str, problems: Problems) -> None:
        problems.add_rows(np.flatnonzero(null), self.where, lambda _: f"{column!r} is null")
