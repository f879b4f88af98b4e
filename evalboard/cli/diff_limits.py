"""What `--fail-on` of a comparison names, and which of its limits are reached."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalboard.cli.arguments import split
from evalboard.cli.errors import CommandError
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


def find_reached(made: "LogComparison", limits: Sequence[Limit]) -> list[str]:
    """Return a sentence for each limit that is reached."""
    texts = [_check_kl(made, value) if name == "kl" else _check(made, name, value) for name, value in limits]
    return [text for text in texts if text]


def _check_kl(made: "LogComparison", value: str) -> str:
    kl = made.measure_kl()
    if kl is None:
        raise CommandError("--fail-on kl: no position has logprobs of the same tokens on both sides.")
    return f"kl: {kl:.3g} nats a position" if kl >= float(value) else ""


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
        case "points":
            has_fallen = change is not None and -change >= float(value)
            return f"points: the score fell by {points(-change)}" if change is not None and has_fallen else ""
    n = next((each.n_pairs for each in comparison.causes if each.cause == value), 0)
    return f"cause: {counted(n, 'pair')} of {value}" if n else ""


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < 1e6
    except ValueError:
        return False
