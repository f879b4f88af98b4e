"""Scores as their authors mean them: from 0 to 1, on a scale that a person names, or words."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from evalboard.core.errors import InvalidInput
from evalboard.importers.records import LoggedResponse, LoggedRun, LoggedScore
from evalboard.wording.numbers import counted

Scale = tuple[float, float]

_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)", re.ASCII)


def parse_scale(words: str) -> Scale | None:
    """Return a scale such as 0..10, None for "". Raises InvalidInput at `scale`."""
    match = _SCALE.fullmatch(words.strip())
    if words and (match is None or float(match[1]) >= float(match[2])):
        problem = "Must be the lowest and the highest score, as in 0..10."
        raise InvalidInput("The log cannot be read.", fields={"scale": problem})
    return (float(match[1]), float(match[2])) if match else None


def read_scores(run: LoggedRun, scale: Scale | None) -> LoggedRun:
    """Return the run with scores from 0 to 1, and notes on those that have none.

    A scorer with any value outside 0 to 1 is on a scale: without `scale` all its values are words, for nobody but its
    author knows what the best one is.
    """
    beyond: dict[str, Scale] = {}
    for response in run.responses:
        for name, score in response.scores.items():
            if score.value is not None and not 0 <= score.value <= 1:
                low, high = beyond.get(name, (score.value, score.value))
                beyond[name] = min(low, score.value), max(high, score.value)
    if beyond:
        responses = tuple(_read(response, beyond, scale) for response in run.responses)
        run = replace(run, responses=responses)
    return replace(run, notes=(*run.notes, *_notes(run, beyond, scale)))


def _read(response: LoggedResponse, names: dict[str, Scale], scale: Scale | None) -> LoggedResponse:
    scores = {name: _scaled(score, scale) if name in names else score for name, score in response.scores.items()}
    return replace(response, scores=scores)


def _scaled(score: LoggedScore, scale: Scale | None) -> LoggedScore:
    if score.value is None:
        return score
    reason = score.reason or f"{score.value:g}"
    if scale is None or not scale[0] <= score.value <= scale[1]:
        return LoggedScore(None, reason)
    return LoggedScore((score.value - scale[0]) / (scale[1] - scale[0]), reason)


def _notes(run: LoggedRun, beyond: dict[str, Scale], scale: Scale | None) -> Iterator[str]:
    for name, (low, high) in beyond.items():
        if scale is None:
            values = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            yield f"{name} has values outside 0 to 1 ({values}), kept as words. `--scale 0..10` reads such a scale."
        else:
            yield f"{name} is read on a scale of {scale[0]:g} to {scale[1]:g}."
    there = [response for response in run.responses if not response.error]
    unscored = Counter(name for one in there for name in run.scorers if not _has_value(one, name))
    for name, n in unscored.items():
        if name not in beyond and n < len(there):
            yield f"{counted(n, 'answer')} of {len(there):,} unscored by {name}: its score is over the others."


def _has_value(response: LoggedResponse, name: str) -> bool:
    return name in response.scores and response.scores[name].value is not None
