"""Describe a judge in words: its run, its noise, and whether it moved."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evalboard.wording.messages import Claim, Messages, speak

if TYPE_CHECKING:
    from evalboard.contract.judge import Judging

JUDGING = Messages(
    "judging",
    {
        ("judge", "asserts"): {
            "begins": "All answers are in. The judge {endpoint} begins within 15 seconds.",
            "waits": "All answers are in. It waits for its judge: {n_done:,} of {n:,} judgements are done, "
            "in run {judge_run}.",
            "judged": "{endpoint} judged it: {n:judgement}, {n_tokens:token} written.",
            "judged_in_part": "{endpoint} gave {n_done:,} of {n:,} judgements, {n_tokens:token} written.",
            "failed": "{error}",
            "noise": "The judge disagrees with itself on {share:share} of answers ({least:share} to {most:share}).",
            "split": "Repeats differ by {total:points} points: {model:points} by the answers, {judge:points} by the "
            "judge.",
            "moved": "The judge moved: it scores the same {n:answer} {points:signed} points apart from {before} "
            "({low:signed} to {high:signed}).",
        },
        ("judge", "denies"): {
            "stayed": "The judge did not move measurably since {before}: {points:signed} points on the same "
            "{n:answer} ({low:signed} to {high:signed}).",
        },
        ("judge", "unknown"): {
            "no_noise": "The judge's noise is unknown: no answer was judged twice.",
            "no_anchors": "Whether the judge moves is unknown: it has no fixed answers.",
            "first": "The judge scored {n:fixed answer}, which later runs are compared by.",
            "no_shift": "Whether the judge moved since {before} is unknown: too few fixed answers have a score.",
        },
    },
)


def describe_judging(judging: "Judging") -> str:
    """Say who judged a run, how far the judge agrees with itself, and whether it moved."""
    return speak(_claims(judging))


def _claims(judging: "Judging") -> Iterator[Claim]:
    known: dict[str, Any] = {"endpoint": judging.endpoint, "judge_run": judging.judge_run, "error": judging.error}
    known |= {"n": judging.n_judgements, "n_done": judging.n_done, "n_tokens": judging.n_tokens}
    if judging.status == "running":
        yield JUDGING.claim("waits" if judging.judge_run else "begins", known)
        return
    if judging.status == "failed":
        yield JUDGING.claim("failed", known)
        return
    yield JUDGING.claim("judged" if judging.n_done == judging.n_judgements else "judged_in_part", known)
    if judging.noise is None:
        yield JUDGING.claim("no_noise")
    else:
        least, most = judging.noise.disagreement_interval
        yield JUDGING.claim("noise", share=judging.noise.disagreement, least=least, most=most)
    if judging.split is not None:
        yield JUDGING.claim("split", dict(judging.split))
    if judging.anchors is None:
        yield JUDGING.claim("no_anchors")
    elif judging.anchors.before is None:
        yield JUDGING.claim("first", n=judging.anchors.n_anchors)
    elif judging.anchors.shift is None:
        yield JUDGING.claim("no_shift", before=_before(judging))
    else:
        shift = judging.anchors.shift
        low, high = shift.interval
        facts = {"n": shift.n_anchors, "points": shift.points, "before": _before(judging)}
        facts |= {"low": low, "high": high}
        yield JUDGING.claim("moved" if shift.has_moved else "stayed", facts)


def _before(judging: "Judging") -> str:
    before = judging.anchors and judging.anchors.before
    return "its earlier judging of this run" if before == judging.run else f"run {before}"
