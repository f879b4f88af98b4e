"""Say how a run ended and which way a release leans, for the command line, notebooks and CI reports."""

from typing import TYPE_CHECKING

from evalboard.wording.numbers import (
    change_and_interval,
    counted,
    interval_digits,
    points,
    score_range,
    scores_apart,
    signed,
)
from evalboard.wording.release_names import verdict_name

if TYPE_CHECKING:
    from evalboard.contract.release import Gate
    from evalboard.contract.run import Run, RunHead

NO_VERDICT = "A tendency, not a verdict: cases were batched as they came, so runs differ and this decides nothing."


def describe_end(run: "RunHead") -> str:
    """Return how a run ended, in a sentence."""
    n_left_out = sum(line.n_left_out > 0 for line in run.repeats)
    n_read = len(run.repeats) - (n_left_out if run.range is not None else 0)
    repeats = ", ".join(filter(None, (counted(n_read, "repeat"), run.sampled.words if run.sampled else "")))
    if run.range is not None:
        aside = f"; {counted(n_left_out, 'repeat')} with cached or fallback answers left out" if n_left_out else ""
        return f"Run {run.id} finished: {score_range(*run.range)} over {repeats}{aside}."
    if run.status != "finished":
        return f"Run {run.id} is {run.status}: {run.progress.n_done} of {run.progress.n_total} responses, no score."
    if run.n_buckets > 1:
        pooled = "" if run.pooled is None else f"; pooled {points(run.pooled)}"
        apart = f": {scores_apart(run.bucket_scores, run.backends)}{pooled}." if run.bucket_scores else "."
        return f"Run {run.id} finished in {run.n_buckets} buckets, each scored separately{apart}"
    if n_left_out:
        return f"Run {run.id} finished. It has no range: every repeat has answers from a cache or a fallback."
    return f"Run {run.id} finished over {repeats}, with no score."


def describe_draws(run: "Run") -> str:
    """Return the metrics over samples of a sampled run from one bucket; "" for other runs."""
    metrics = run.buckets[0].metrics if len(run.buckets) == 1 else None
    if not metrics:
        return ""
    return f"Over samples: {', '.join(f'{each.name} {points(each.points)}' for each in metrics)}."


def describe_verdict(verdict: str | None) -> str:
    return "no verdict" if verdict is None else verdict_name(verdict)


def describe_lean(lean: str) -> str:
    return f"tendency: {verdict_name(lean)}" if lean in ("ship", "no_ship") else "no tendency"


def find_lean(gate: "Gate") -> str | None:
    """Return which way a gate leans: "ship", "no_ship" or "none"; None if unknown."""
    if gate.verdict in ("ship", "no_ship"):
        return gate.verdict
    return gate.leaning if gate.verdict == "inconclusive" else None


def render_change(gate: "Gate") -> str:
    """Return the change with its interval, "−0.6 [−1.1, −0.1]"; "" where there is none."""
    if gate.difference is None:
        return ""
    return " ".join(change_and_interval(gate.difference, *gate.interval)) if gate.interval else signed(gate.difference)


def change_digits(gate: "Gate") -> int:
    """Count the decimals with which `render_change` writes a gate's change."""
    return interval_digits(*gate.interval) if gate.interval else 1
