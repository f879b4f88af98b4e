"""Show rows, runs, comparisons and releases in a notebook, as data frames and small tables."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Generic, overload

from evalboard.client.answers import Answer, Json, Value
from evalboard.contract.base import Contract
from evalboard.contract.compare import Comparison
from evalboard.contract.release import Release
from evalboard.contract.run import Run
from evalboard.wording.numbers import capital, counted, signed
from evalboard.wording.results import describe_end, describe_verdict

if TYPE_CHECKING:
    import pandas

SHOWN_ROWS, SHOWN_CHARACTERS = 20, 80
SCALARS = (str, int, float, bool, type(None))


class Rows(Sequence[Json]):
    """Rows with the fields of docs/api-reference.md; nested values become columns of a data frame."""

    def __init__(self, rows: Iterable[Json | Answer[Contract]]) -> None:
        self._rows = [row.json if isinstance(row, Answer) else row for row in rows]

    @overload
    def __getitem__(self, index: int) -> Json: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows": ...
    def __getitem__(self, index: int | slice) -> "Json | Rows":
        return Rows(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'row')}>"

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a data frame with columns such as `suite.slug`; names in `_at` are times, lists stay lists.

        Raises ImportError, saying what to install, if pandas is missing.
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
        """Draw the first rows as a table, their nested fields left out."""
        names = [name for name, value in self._rows[0].items() if isinstance(value, SCALARS)] if self._rows else []
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{_render_cell(row.get(name))}</td>' for name in names)}</tr>"
            for row in self._rows[:SHOWN_ROWS]
        )
        more = f", the first {SHOWN_ROWS} shown" if len(self) > SHOWN_ROWS else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{table}<p>{counted(len(self), 'row')}{more}</p>"


class NotebookAnswer(Generic[Value]):
    """An answer in a notebook. `value` has typed fields, `json` is the server's whole answer."""

    def __init__(self, answer: Answer[Value]) -> None:
        self.value, self.json = answer.value, answer.json


class NotebookRun(NotebookAnswer[Run]):
    """A run as it was when read. `range` is in points; None until it is finished in one bucket."""

    @property
    def id(self) -> str:
        return self.value.id

    @property
    def status(self) -> str:
        return self.value.status

    @property
    def is_terminal(self) -> bool:
        return self.value.is_terminal

    @property
    def range(self) -> tuple[float, float] | None:
        return self.value.range

    @property
    def labels(self) -> dict[str, str]:
        return self.value.labels

    @property
    def warnings(self) -> list[str]:
        return [warning.text for warning in self.value.warnings]

    @property
    def url(self) -> str:
        return self.value.url

    @property
    def repeats(self) -> Rows:
        """Return a row per repeat and bucket; `score` in points."""
        return Rows(
            {
                "run": self.id,
                "repeat": repeat.index,
                "score": repeat.score,
                "n_responses": repeat.n_responses,
                "bucket": bucket.id,
                "fingerprint": bucket.fingerprint.label,
                "batch_class": bucket.batch_class,
            }
            for bucket in self.value.buckets
            for repeat in bucket.repeats
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """Return its repeats as a frame."""
        return self.repeats.to_pandas()

    def __repr__(self) -> str:
        return f"<{describe_end(self.value) if self.is_terminal else self._describe_progress()}>"

    def _describe_progress(self) -> str:
        done = self.value.progress
        return f"Run {self.id} is {self.status}: {done.n_done} of {done.n_total} responses."

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])} {_link(self.url)}</p>{self.repeats._repr_html_()}"


class NotebookComparison(NotebookAnswer[Comparison]):
    """Two runs compared; `difference` is the candidate's score minus the baseline's, in points."""

    @property
    def difference(self) -> float | None:
        return self.value.score.difference

    @property
    def is_comparable(self) -> bool:
        return self.value.comparable

    @property
    def blocks(self) -> list[str]:
        """Say why the difference may not be read as one change, a sentence each."""
        return [block.text for block in self.value.blocks]

    @property
    def url(self) -> str:
        return self.value.url

    @property
    def causes(self) -> Rows:
        """List the ledger: a row for each cause, whose points add up to the difference."""
        return Rows(line.to_json() for line in self.value.ledger)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return its ledger as a frame."""
        return self.causes.to_pandas()

    def __repr__(self) -> str:
        change = "no difference given" if self.difference is None else f"{signed(self.difference)} points"
        is_comparable = "comparable" if self.is_comparable else "not comparable"
        return f"<Run {self.value.candidate} against {self.value.baseline}: {change}, {is_comparable}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}. {_link(self.url)}</p>{self.causes._repr_html_()}"


class NotebookRelease(NotebookAnswer[Release]):
    """A release; `verdict` is "ship", "no_ship", "inconclusive" or "not_comparable"."""

    @property
    def id(self) -> str:
        return self.value.id

    @property
    def verdict(self) -> str | None:
        return self.value.verdict

    @property
    def summary(self) -> str:
        return self.value.summary

    @property
    def warnings(self) -> list[str]:
        return [warning.text for warning in self.value.warnings]

    @property
    def next_steps(self) -> list[str]:
        return [step.text for step in self.value.next]

    @property
    def url(self) -> str:
        return self.value.url

    @property
    def gates(self) -> Rows:
        """List a row for each gate: the change in points, its interval, and both sides."""
        return Rows(gate.to_json() for gate in self.value.gates)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return its gates as a frame, a row each."""
        return self.gates.to_pandas()

    def __repr__(self) -> str:
        return f"<Release {self.id}: {describe_verdict(self.verdict)}. {self.summary}>"

    def _repr_html_(self) -> str:
        verdict = f"<b>{escape(capital(describe_verdict(self.verdict)))}.</b> {escape(self.summary)}"
        steps = "".join(f"<li>{escape(step)}</li>" for step in self.next_steps)
        return f"<p>{verdict} {_link(self.url)}</p>" + (f"<ul>{steps}</ul>" if steps else "")


def read_run_id(run: NotebookRun | int | str) -> str:
    """Return the id of a run that is given as an answer, or by its number."""
    return run.id if isinstance(run, NotebookRun) else str(run)


def _link(url: str) -> str:
    is_web = url.startswith(("http://", "https://"))
    return f'<a href="{escape(url)}">its page</a>' if is_web else ""


def _render_cell(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return escape(text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…")
