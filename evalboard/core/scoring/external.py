"""Scorers that a team brings: packages, programs and services. A worker runs them (docs/suites.md)."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evalboard.core.digest import canonical_json
from evalboard.core.document import Problems, at, storage_problems
from evalboard.core.errors import InvalidInput
from evalboard.core.scoring.kind import (
    REQUIRED,
    Option,
    Options,
    Reader,
    Score,
    ScorerKind,
    Tools,
    capped,
    number_from,
    or_none,
    text_of,
    whole_from,
)

MAX_OPTIONS_BYTES = 10_000
MAX_SCORES = 20  # of one response
MAX_ANSWER_CHARS = 10_000
SCORER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class UnreadableReply(Exception):
    """What a scorer wrote is no score; the text says why, for people.

    is_in_step: the line answers the response that was asked about, so that the scorer may be asked on.
    """

    def __init__(self, text: str, *, is_in_step: bool = True) -> None:
        super().__init__(text)
        self.is_in_step = is_in_step


@dataclass(frozen=True, slots=True)
class ScorerReply:
    """What a scorer gave for one response.

    value: from 0 to 1, None where it left the response unscored. scores: its single scores by name, if it gave any.
    """

    value: float | None
    reason: str
    answer: str | None = None
    scores: Mapping[str, float] | None = None


def read_reply(spec: Mapping[str, Any], line: bytes, *, number: int) -> ScorerReply:
    """Read a scorer's line: `{"id", "value", "reason", "answer", "scores"}`, or `{"id", "error"}`.

    number: the id of what was asked; a late or second line has another. `decides`, `weights` and `pass_at` of the spec
    are applied: the value that comes back is the one that counts. Raises UnreadableReply.
    """
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableReply(f"wrote a line that is no JSON: {_excerpt(line)}", is_in_step=False) from None
    if not isinstance(reply, dict) or reply.get("id") != number or isinstance(reply["id"], bool):
        text = f'wrote a line that is no JSON object with "id": {number}: {_excerpt(line)}'
        raise UnreadableReply(text, is_in_step=False)
    if reply.get("error") is not None:
        return ScorerReply(None, _text(reply, "error") or "It gave an error without words.")
    scores = _read_scores(reply.get("scores"))
    value = _decide(spec, reply.get("value"), scores)
    if value is not None and spec["pass_at"] is not None:
        value = 1.0 if value >= spec["pass_at"] else 0.0
    return ScorerReply(value, _text(reply, "reason") or "", _answer(reply), scores or None)


def single_plan(plan: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the plan under which one of a response's several scores is kept: there, that score decides."""

    def single(spec: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if spec is None or spec["kind"] not in EXTERNAL:
            return spec
        return {**spec, "decides": name, "weights": None, "pass_at": None}

    return {"default": single(plan["default"]), "cases": {case: single(spec) for case, spec in plan["cases"].items()}}


def _decide(spec: Mapping[str, Any], value: Any, scores: Mapping[str, float]) -> float | None:
    weights = spec["weights"]
    names = list(weights) if weights else [spec["decides"]] if spec["decides"] else []
    if missing := [name for name in names if name not in scores]:
        raise UnreadableReply(f"gave no score {missing[0]!r}, which decides")
    if weights:
        return float(sum(scores[name] * weight for name, weight in weights.items()) / sum(weights.values()))
    if names:
        return scores[names[0]]
    return None if value is None else _fraction(value, "value")


def _read_scores(scores: Any) -> dict[str, float]:
    if scores is None:
        return {}
    if not isinstance(scores, dict) or len(scores) > MAX_SCORES:
        raise UnreadableReply(f'gave "scores" that are no object of at most {MAX_SCORES} numbers')
    if wrong := [name for name in scores if not SCORER_NAME.fullmatch(name)]:
        raise UnreadableReply(f"gave a score the name {wrong[0][:80]!r}; letters, digits, '.', '_' and '-' make one")
    return {name: _fraction(value, f"score {name}") for name, value in scores.items()}


def _fraction(value: Any, what: str) -> float:
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, int | float) or not 0 <= value <= 1:  # NaN fails both
        raise UnreadableReply(f"gave a {what} that is no number from 0 to 1: {str(value)[:80]}")
    return float(value)


def _text(reply: Mapping[str, Any], name: str) -> str | None:
    text = reply.get(name)
    return None if text is None else capped(text if isinstance(text, str) else json.dumps(text))


def _answer(reply: Mapping[str, Any]) -> str | None:
    answer = reply.get("answer")
    if answer is not None and not isinstance(answer, str):
        answer = json.dumps(answer, sort_keys=True)
    return None if answer is None else str(answer)[:MAX_ANSWER_CHARS]


def _excerpt(line: bytes) -> str:
    return capped(repr(line[:80].decode("utf-8", "replace")))


def _matching(pattern: re.Pattern[str], words: str) -> Reader:
    def read(value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            problems.add(path, words)
        return value

    return read


def _json_object(value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, Mapping):
        problems.add(path, "must be an object")
        return value
    before = problems.n_found
    for place, text in storage_problems(value, path):
        problems.add(place, text)
    if problems.n_found == before and len(canonical_json(value)) > MAX_OPTIONS_BYTES:
        problems.add(path, f"must have at most {MAX_OPTIONS_BYTES} bytes as JSON")
    return value


def _weights(value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, Mapping) or not 1 <= len(value) <= MAX_SCORES:
        problems.add(path, f"must be an object of 1 to {MAX_SCORES} weights by the names of scores")
        return value
    weigh, read = number_from(1e-6, 1e6), {}
    for name, weight in value.items():
        SCORE_NAME(name, at(path, str(name)), problems)
        read[name] = weigh(weight, at(path, str(name)), problems)
    return read


def _conflict(options: Options) -> str | None:
    return "decides and weights exclude each other; give one" if options["decides"] and options["weights"] else None


def _refuse(_options: Options, _text: str, _targets: list[Any], _tools: Tools) -> Score:
    raise InvalidInput("A worker runs this scorer; it cannot score here.")


SCORE_NAME: Final = _matching(
    SCORER_NAME, "must be 1 to 80 letters, digits, '.', '_' or '-', beginning with a letter or digit"
)
OPTIONS: Final[dict[str, Option]] = {
    "name": Option(REQUIRED, SCORE_NAME),
    "digest": Option("", _matching(re.compile(f"|{_DIGEST.pattern}"), "must be 64 hexadecimal digits")),
    "options": Option({}, _json_object),
    "decides": Option("", text_of(at_most=80)),
    "weights": Option(None, or_none(_weights)),
    "pass_at": Option(None, or_none(number_from(0, 1))),
    "seconds": Option(10.0, number_from(0.1, 600)),
}
CONFINED: Final[dict[str, Option]] = {
    "memory_mb": Option(1024, whole_from(64, 65_536)),
    "processes": Option(1, whole_from(1, 64)),
    "scratch_mb": Option(0, whole_from(0, 4096)),
}


def _kind(name: str, options: Mapping[str, Option]) -> ScorerKind:
    return ScorerKind(
        name=name,
        version=1,
        options=options,
        target_problem=lambda _options, _target: None,
        score=_refuse,
        needs_target=lambda _options: False,
        conflict=_conflict,
        scores_here=False,
        is_external=True,
    )


PYTHON, COMMAND, HTTP = (
    _kind("python", OPTIONS | CONFINED),
    _kind("command", OPTIONS | CONFINED),
    _kind("http", OPTIONS),
)
EXTERNAL: Final = (PYTHON.name, COMMAND.name, HTTP.name)


def external_specs(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the specs of a plan that a worker must run."""
    for spec in (plan["default"], *plan["cases"].values()):
        if spec is not None and spec["kind"] in EXTERNAL:
            yield spec


def name_code(plan: Mapping[str, Any]) -> str:
    """Name the team's code that a plan scores by, with its digest: "folded 3f2a9c10"; "" without any."""
    return ", ".join(dict.fromkeys(f"{spec['name']} {spec['digest'][:8]}" for spec in external_specs(plan)))


def is_external(plan: Mapping[str, Any]) -> bool:
    """Tell whether a plan has a scorer that only a worker can run."""
    return next(external_specs(plan), None) is not None
