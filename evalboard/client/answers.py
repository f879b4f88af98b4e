"""Runs, comparisons and releases as the client gives them: `json` is the whole answer, as docs/api.md has it."""

from html import escape
from typing import TYPE_CHECKING, Any

from evalboard.cli import run_words
from evalboard.cli import verdict_words as words
from evalboard.cli.answers import ComparisonAnswer, ReleaseAnswer, RunAnswer
from evalboard.client.rows import Rows
from evalboard.core.verdict_names import verdict_name

if TYPE_CHECKING:
    import pandas


class Run(RunAnswer):
    """A run as it was when it was asked for. `range` is in points, and None until it is finished in one bucket."""

    __slots__ = ()

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.json["labels"])

    @property
    def repeats(self) -> Rows:
        """A row for each repeat of each bucket that served it; `score` in points."""
        return Rows(
            {
                "run": self.id,
                "repeat": line["index"],
                "score": line["score"],
                "n_responses": line["n_responses"],
                "bucket": bucket["id"],
                "fingerprint": bucket["fingerprint"]["label"],
                "batch_class": bucket["batch_class"],
            }
            for bucket in self.json["buckets"]
            for line in bucket["repeats"]
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """Its repeats."""
        return self.repeats.to_pandas()

    def __repr__(self) -> str:
        return f"<{run_words.of_end(self) if self.is_terminal else self._standing()}>"

    def _standing(self) -> str:
        return f"Run {self.id} is {self.status}: {self.n_done} of {self.n_total} responses."

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])} {_link(self.url)}</p>{self.repeats._repr_html_()}"


class Comparison(ComparisonAnswer):
    """Two runs compared; `difference` is the candidate's score minus the baseline's, in points."""

    __slots__ = ()

    @property
    def causes(self) -> Rows:
        """The ledger: a row for each cause, whose points add up to the difference."""
        return Rows(self.ledger)

    def to_pandas(self) -> "pandas.DataFrame":
        """Its ledger."""
        return self.causes.to_pandas()

    def __repr__(self) -> str:
        change = "no difference given" if self.difference is None else f"{words.points(self.difference)} points"
        is_comparable = "comparable" if self.is_comparable else "not comparable"
        return f"<Run {self.json['candidate']} against {self.json['baseline']}: {change}, {is_comparable}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}. {_link(self.url)}</p>{self.causes._repr_html_()}"


class Release(ReleaseAnswer):
    """A release; `verdict` is "ship", "no_ship", "inconclusive" or "not_comparable"."""

    __slots__ = ()

    def to_pandas(self) -> "pandas.DataFrame":
        """Its gates, a row each."""
        return Rows(self.gates).to_pandas()

    def __repr__(self) -> str:
        return f"<Release {self.id}: {verdict_name(self.verdict)}. {self.summary}>"

    def _repr_html_(self) -> str:
        said = f"<b>{escape(words.capital(verdict_name(self.verdict)))}.</b> {escape(self.summary)}"
        steps = "".join(f"<li>{escape(step)}</li>" for step in self.next_steps)
        return f"<p>{said} {_link(self.url)}</p>" + (f"<ul>{steps}</ul>" if steps else "")


def id_of(thing: Run | int | str) -> str:
    """The id of a run that is given as an answer, or by its number."""
    return thing.id if isinstance(thing, RunAnswer) else str(thing)


def _link(url: Any) -> str:
    is_web = str(url).startswith(("http://", "https://"))
    return f'<a href="{escape(str(url))}">its page</a>' if is_web else ""
