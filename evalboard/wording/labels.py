"""What people's labels say of a scorer, in words."""

from evalboard.contract.base import Range
from evalboard.contract.labels import RunLabels, ScorerLabels
from evalboard.wording.messages import Messages
from evalboard.wording.numbers import fixed, points

SAID = Messages(
    "labels",
    {
        ("labels", "asserts"): {
            "line": "Labels: {n:answer}; {rate}",
            "more": "{n:answer} labelled outside the random sample {n:is|are} in no figure.",
            "disputed": "{n:answer} {n:is|are} disputed: as many people say right as wrong. In the rate "
            "{n:it counts|they count} half.",
        },
        ("labels", "unknown"): {
            "none": "No answer is labelled yet.",
            "not_sampled": "{n:answer} {n:has|have} labels, and the first of the random sample has none.",
            "unscored": "no response of the sample has a score.",
            "mixed": "several buckets answered, so no pass rate is given for the whole.",
        },
        ("score", "asserts"): {
            "corrected": "corrected pass rate {corrected} ({low} to {high}), raw {raw}.",
        },
    },
)


def describe_labels(labels: RunLabels) -> str:
    """Return one line on a run's labels: "Labels: 40 answers; corrected pass rate 71.2 …"."""
    if not labels.n_labelled:
        return SAID.write("none")
    if not labels.scorers:
        return SAID.write("not_sampled", n=labels.n_labelled)
    return SAID.write("line", n=labels.n_sampled, rate=describe_rate(labels.scorers[0]))


def describe_rate(line: ScorerLabels) -> str:
    """Return the corrected pass rate with its interval and the raw one, or why there is none."""
    rate = line.rate
    if rate is None:
        return SAID.write("mixed" if line.agreement.n_labels else "unscored")
    if rate.corrected is None or rate.interval is None:
        return SAID.write("unscored")
    low, high = (points(end) for end in rate.interval)
    return SAID.write("corrected", corrected=points(rate.corrected), low=low, high=high, raw=points(rate.raw))


def list_notes(labels: RunLabels) -> tuple[str, ...]:
    """Return what else to know of the figures: labels that they leave out, and disputed answers."""
    n_more = labels.n_labelled - labels.n_sampled
    notes = [SAID.write("more", n=n_more)] if n_more and labels.scorers else []
    return (*notes, *([SAID.write("disputed", n=labels.n_disputed)] if labels.n_disputed else ()))


def kappa(value: float | None, interval: Range | None) -> str:
    """Write kappa with its interval: "0.62 (0.41 to 0.79)"."""
    if value is None or interval is None:
        return "–"
    return f"{fixed(value, 2)} ({fixed(interval[0], 2)} to {fixed(interval[1], 2)})"


def rate(value: float | None, interval: Range | None) -> str:
    """Write a share with its interval as percent: "92 % (80 to 98)"."""
    if value is None or interval is None:
        return "–"
    low, high = (fixed(100 * end, 0) for end in interval)
    return f"{fixed(100 * value, 0)}\u00a0% ({low} to {high})"
