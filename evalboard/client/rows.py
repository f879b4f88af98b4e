"""Rows of an answer: a list of dictionaries as the API gives them, a data frame, a table in a notebook."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import pandas

SHOWN_ROWS, SHOWN_CHARACTERS = 20, 80
SCALARS = (str, int, float, bool, type(None))

Json = dict[str, Any]


class Rows(Sequence[Json]):
    """Rows with the fields of docs/api.md. What is nested keeps its shape here, and becomes columns in a frame."""

    def __init__(self, rows: Iterable[Json]) -> None:
        self._rows = list(rows)

    @overload
    def __getitem__(self, index: int) -> Json: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows": ...
    def __getitem__(self, index: int | slice) -> "Json | Rows":
        return Rows(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{_counted(len(self))}>"

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame: `suite.slug` is a column of its own, lists stay lists, and what ends in `_at` is a time.

        Raises ImportError, saying what to install, where pandas is not there.
        """
        try:
            import pandas
        except ImportError as missing:
            raise ImportError("to_pandas needs pandas: pip install 'evalboard[notebook]'") from missing
        frame = pandas.json_normalize(self._rows)
        for name in frame.columns:
            if str(name).endswith("_at"):
                frame[name] = pandas.to_datetime(frame[name], utc=True)
        return frame

    def _repr_html_(self) -> str:
        """The first rows as a table, their nested fields left out."""
        names = [name for name, value in self._rows[0].items() if isinstance(value, SCALARS)] if self._rows else []
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{_shown(row.get(name))}</td>' for name in names)}</tr>"
            for row in self._rows[:SHOWN_ROWS]
        )
        more = f", the first {SHOWN_ROWS} shown" if len(self) > SHOWN_ROWS else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{table}<p>{_counted(len(self))}{more}</p>"


def _counted(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def _shown(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return escape(text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…")
