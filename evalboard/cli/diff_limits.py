"""Parse `--fail-on`, and find which limits a comparison reaches or cannot decide."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli.arguments import split
from evalboard.cli.errors import FAILED, LIMIT_REACHED
from evalboard.client.errors import WrongUse
from evalboard.wording.numbers import counted, points

if TYPE_CHECKING:
    from evalboard.contract.compare import Comparison

OF_COMPARISON = ("flip", "shift", "text", "score", "points", "cause")
OF_LOGS = (*OF_COMPARISON, "kl")
WHERE_ELSE = {"kl": " `evalboard diff` of the two runs, http…/runs/7 and http…/runs/12, measures it."}

FailOn = Annotated[
    str,
    typer.Option("--fail-on", metavar="LIMITS", help="Exit with 5 where a limit is reached; several with commas."),
]
Limit = tuple[str, str]  # what is limited, and by how much; "" where any is too many
# Returns a sentence if the limit is reached, and one if it cannot be told.
Judge = Callable[[str, str], tuple[str, str]]


def parse_limits(text: str, names: Sequence[str]) -> list[Limit]:
    """Parse limits such as "flip,points=1". names: the allowed ones. Raises WrongUse."""
    return [_parse_limit(part, names) for part in split(text)]


def _parse_limit(part: str, names: Sequence[str]) -> Limit:
    # Here, as it brings numpy, which no help waits for.
    from evalboard.core.compare import CAUSES

    name, has_value, value = part.partition("=")
    takes = {"points": _is_number(value), "kl": _is_number(value), "cause": value in CAUSES}
    if name in names and takes.get(name, not has_value):
        return name, value
    more = f" The causes are {', '.join(CAUSES)}." if name in names and name == "cause" else ""
    more = WHERE_ELSE.get(name, "") if name not in names else more
    forms = {"points": "points=N", "kl": "kl=N", "cause": "cause=NAME"}
    raise WrongUse(f"--fail-on takes {', '.join(forms.get(each, each) for each in names)} here, not {part}.{more}")


def find_reached(limits: Sequence[Limit], judge: Judge) -> tuple[list[str], list[str]]:
    """Return a sentence for each reached limit, and for each that cannot be decided."""
    reached, unknown = [], []
    for name, value in limits:
        text, lack = judge(name, value)
        if text:
            reached.append(f"{name}: {text}")
        elif lack:
            unknown.append(f"{name}: {lack}")
    return reached, unknown


def conclude(reached: Sequence[str], unknown: Sequence[str]) -> int:
    """Print which limits are reached or undecided; return the exit code."""
    if not reached and not unknown:
        return 0
    typer.echo(f"evalboard: --fail-on: {'; '.join([*reached, *unknown])}.", err=True)
    return LIMIT_REACHED if reached else FAILED


def tell_ending(fail_on: str, reached: Sequence[str], unknown: Sequence[str]) -> str:
    """Return what the command exits with, and why, for a report."""
    if reached or unknown:
        return f"exit code {LIMIT_REACHED if reached else FAILED}: {'; '.join([*reached, *unknown])}"
    return f"exit code 0: {f'no limit of --fail-on {fail_on} is reached' if fail_on else 'no limit was set'}"


def judge_comparison(comparison: "Comparison", find_kl: Callable[[], float | None] = lambda: None) -> Judge:
    """Return a judge of limits. find_kl: measures the mean KL in nats per position, or None."""

    def judge(name: str, value: str) -> tuple[str, str]:
        if not comparison.counts.n_pairs:
            return "", "no answer of one side can be paired with one of the other"
        if name == "kl":
            kl = find_kl()
            if kl is None:
                return "", "no position has logprobs of the same tokens on both sides"
            return (f"{kl:.3g} nats a position" if kl >= float(value) else ""), ""
        return _check(comparison, name, value), _find_lack(comparison, name, value)

    return judge


def _find_lack(comparison: "Comparison", name: str, value: str) -> str:
    """Return why it cannot be decided whether a limit is reached; "" if it can."""
    counts, judged = comparison.counts, comparison.computation
    sides = comparison.sides.baseline, comparison.sides.candidate
    if name in ("flip", "shift") and comparison.prompts is not None:
        return "answers to different prompts are not compared by their tokens"
    if name == "cause" and value in comparison.unseen:
        return f"what shows {value} is not known of both sides"
    if name == "flip" and counts.untraced == counts.n_pairs:
        return "no pair of answers has tokens on both sides"
    if name == "flip" and (n := counts.text_only):
        return f"{counted(n, 'pair')} without tokens {'differs' if n == 1 else 'differ'} in text"
    if name == "shift" and (judged is None or judged.answer == "unknown"):
        return "whether both sides are one computation is not known" if judged is None else judged.text.rstrip(".")
    if name == "score" and any(all(repeat.score is None for repeat in side.repeats) for side in sides):
        return "a side has no scores"
    return "no difference of scores is given" if name == "points" and comparison.score.difference is None else ""


def _check(comparison: "Comparison", name: str, value: str) -> str:
    """Return what reaches a limit; "" where nothing is seen to."""
    counts, judged, change = comparison.counts, comparison.computation, comparison.score.difference
    match name:
        case "flip":
            return f"{counted(counts.flipped, 'pair')} chose another token" if counts.flipped else ""
        case "text":
            n = counts.other_text or 0
            return f"{counted(n, 'pair')} {'differs' if n == 1 else 'differ'} in text" if n else ""
        case "score":
            return f"{counted(counts.score_changed, 'pair')} changed their score" if counts.score_changed else ""
        case "shift":
            is_moved = judged is not None and judged.answer in ("two", "apart")
            return judged.text.rstrip(".") if judged is not None and is_moved else ""
        case "points":
            has_fallen = change is not None and change < 0 and -change >= float(value)
            return f"the score fell by {points(-change)}" if change is not None and has_fallen else ""
    n = sum(each.n_pairs for each in (*comparison.causes, *comparison.looks) if each.cause == value)
    return f"{counted(n, 'pair')} of {value}" if n else ""


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < 1e6
    except ValueError:
        return False
