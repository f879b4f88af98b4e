"""Find the last change of a case's results that has lasted ever since."""

from collections.abc import Sequence
from typing import NamedTuple


class ResultsChange(NamedTuple):
    """at: the first run after the change; is_pass: the result of every repeat since.

    chance: of as many equal runs by chance, if each were as likely as a repeat before the change.
    """

    at: int
    is_pass: bool
    chance: float


def find_lasting_change(runs: Sequence[Sequence[bool]]) -> ResultsChange | None:
    """Return the change after which every repeat passes or every repeat fails; None if there is none.

    runs: whether each repeat passed, oldest run first; no run is empty. Repeats of a run may be copies, so a run
    counts once in `chance`.
    """
    if not runs or len(set(runs[-1])) > 1:
        return None
    is_pass = runs[-1][0]
    at = next((place + 1 for place in reversed(range(len(runs))) if set(runs[place]) != {is_pass}), 0)
    if at == 0:
        return None
    before = [result for run in runs[:at] for result in run]
    rate = (before.count(is_pass) + 1) / (len(before) + 2)
    return ResultsChange(at, is_pass, rate ** (len(runs) - at))
