"""Small logs of other tools, as their readers give them."""

from dataclasses import replace
from typing import Any

from django.db import transaction

from evalboard.core.digest import digest_json
from evalboard.importers.records import (
    LoggedCase,
    LoggedPosition,
    LoggedPositions,
    LoggedResponse,
    LoggedRun,
    LoggedScore,
    ServedBy,
)
from runs.imports import imports
from runs.models import ImportRecord, RunRecord

CASES = ("sky", "sea", "sun")
END = b"<|im_end|>"
FLOAT32 = ServedBy(key="vllm-0.32.0-ac25", key_from="system_fingerprint", system_fingerprint="vllm-0.32.0-ac25")
BFLOAT16 = ServedBy(key="vllm-0.32.0-bfec", key_from="system_fingerprint", system_fingerprint="vllm-0.32.0-bfec")
UNKNOWN = ServedBy()


def positions(*tokens: str, shift: float = 0.0) -> LoggedPositions:
    """Positions that chose these words and then the end, "red" or "blue" being the other choice each time."""
    found = []
    for place, token in enumerate([word.encode() for word in tokens] + [END]):
        other = b"red" if token != b"red" else b"blue"
        logprob = -0.25 - place / 8 + shift
        found.append(LoggedPosition(token, logprob, ((token, logprob), (other, -2.0))))
    return LoggedPositions.from_positions(found)


def response(case_id: str, repeat: int = 1, *words: str, score: float | None = 1.0, **changes: Any) -> LoggedResponse:
    said = words or ("it", " is", " blue")
    known: dict[str, Any] = {
        "text": "".join(said),
        "finish_reason": "stop",
        "positions": positions(*said),
        "n_prompt_tokens": 7,
        "served_by": FLOAT32,
        "scores": {} if score is None else {"match": LoggedScore(score, "as the tool said")},
    }
    return LoggedResponse(case_id=case_id, repeat=repeat, **{**known, **changes})


def log(*responses: LoggedResponse, **changes: Any) -> LoggedRun:
    """A log of a tool; of every case one response in each of two repeats, unless others are given."""
    given = responses or tuple(response(case, repeat) for case in CASES for repeat in (1, 2))
    known: dict[str, Any] = {
        "slug": "colours",
        "title": "Colours",
        "tool": "eval_tool 1.2.3",
        "model": "lab/paint-1b",
        "detail": "tokens",
        "status": "finished",
        "cases": tuple(case(case_id) for case_id in CASES),
        "responses": given,
        "sampling": {"temperature": 0, "max_tokens": 24, "stop": "\n"},
        "scorers": ("match",),
        "labels": {"commit": "abc1234"},
    }
    return LoggedRun(**{**known, **changes})


def case(case_id: str, **changes: Any) -> LoggedCase:
    prompt = {"role": "user", "content": f"Which colour has {case_id}?"}
    return LoggedCase(id=case_id, **{"messages": (prompt,), "target": "blue", **changes})


def without_tokens(logged: LoggedRun) -> LoggedRun:
    return replace(logged, responses=tuple(replace(each, positions=None) for each in logged.responses), detail="text")


def served(logged: LoggedRun, by: ServedBy) -> LoggedRun:
    return replace(logged, responses=tuple(replace(each, served_by=by) for each in logged.responses))


def source(name: str = "one") -> ImportRecord:
    """An import that its runs belong to; what it covers is its name alone."""
    files = [{"name": f"{name}.json", "size": 1, "sha256": "0" * 64}]
    known = {"format": "inspect", "tool": "eval_tool 1.2.3", "files": files}
    return ImportRecord.objects.get_or_create(digest=digest_json(name), defaults=known)[0]


def stored(logged: LoggedRun, name: str = "one", suite: str | None = None) -> RunRecord:
    with transaction.atomic():
        return imports.store_log(logged=logged, source=source(name), suite=suite, user=None)
