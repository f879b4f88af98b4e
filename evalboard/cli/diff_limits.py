"""What `--fail-on` of a comparison names, which of its limits are reached, and which these logs cannot tell."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalboard.cli.arguments import split
from evalboard.client.errors import WrongUse
from evalboard.core.compare import CAUSES
from evalboard.wording.numbers import counted, points

if TYPE_CHECKING:
    from evalboard.logged.comparing import LogComparison

WORDS = ("flip", "shift", "text", "score")
Limit = tuple[str, str]  # what is limited, and by how much; "" where any is too many


def parse_limits(text: str) -> list[Limit]:
    """Return the limits of "flip,points=1,cause=near_tie". Raises WrongUse."""
    limits = []
    for part in split(text):
        name, has_value, value = part.partition("=")
        is_known = (
            (name in WORDS and not has_value)
            or (name in ("points", "kl") and _is_number(value))
            or (name == "cause" and value in CAUSES)
        )
        if not is_known:
            causes = f" The causes are {', '.join(CAUSES)}." if name == "cause" else ""
            raise WrongUse(f"--fail-on takes {', '.join(WORDS)}, points=N, kl=N and cause=NAME, not {part}.{causes}")
        limits.append((name, value))
    return limits


def find_reached(made: "LogComparison", limits: Sequence[Limit]) -> tuple[list[str], list[str]]:
    """Return a sentence for each limit that is reached, and one for each of which nobody can say whether it is."""
    reached, unknown = [], []
    for name, value in limits:
        if text := _check(made, name, value):
            reached.append(text)
        elif text := _find_lack(made, name):
            unknown.append(f"{name}: {text}")
    return reached, unknown


def _find_lack(made: "LogComparison", name: str) -> str:
    """Return why these logs cannot tell whether a limit is reached that was not seen to be; "" where they can."""
    comparison, judged = made.comparison, made.comparison.computation
    sides = comparison.sides.baseline, comparison.sides.candidate
    if name in ("kl", "flip", "shift") and made.terms.is_prompt:
        return "answers to different prompts are not compared by their tokens"
    if name == "kl" and made.mean_kl is None:
        return "no position has logprobs of the same tokens on both sides"
    if name == "flip" and not made.has_tokens:
        return "no answer of a side has tokens"
    if name == "shift" and (judged is None or judged.answer == "unknown"):
        return "whether both sides are one computation is not known" if judged is None else judged.text.rstrip(".")
    if name == "score" and any(all(repeat.score is None for repeat in side.repeats) for side in sides):
        return "a side has no scores"
    return "no difference of scores is given" if name == "points" and comparison.score.difference is None else ""


def _check(made: "LogComparison", name: str, value: str) -> str:
    comparison, n_other_text = made.comparison, made.n_other_text
    counts, judged, change = comparison.counts, comparison.computation, comparison.score.difference
    match name:
        case "flip":
            return f"flip: {counted(counts.flipped, 'pair')} chose another token" if counts.flipped else ""
        case "text":
            return f"text: {counted(n_other_text, 'pair')} differ in their text" if n_other_text else ""
        case "score":
            return f"score: {counted(counts.score_changed, 'pair')} changed their score" if counts.score_changed else ""
        case "shift":
            is_moved = judged is not None and judged.answer in ("two", "apart")
            return f"shift: {judged.text.rstrip('.')}" if judged is not None and is_moved else ""
        case "kl":
            kl = made.mean_kl
            return f"kl: {kl:.3g} nats a position" if kl is not None and kl >= float(value) else ""
        case "points":
            has_fallen = change is not None and change < 0 and -change >= float(value)
            return f"points: the score fell by {points(-change)}" if change is not None and has_fallen else ""
    n = next((each.n_pairs for each in comparison.causes if each.cause == value), 0)
    return f"cause: {counted(n, 'pair')} of {value}" if n else ""


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < 1e6
    except ValueError:
        return False
