"""Answers of a server, for what is written of them: recorded ones (tests/data/answers.json.gz), changed."""

import gzip
import json
from functools import cache
from typing import Any

from evalboard.client.answers import Answer, Kind, parse
from evalboard.contract.release import Gate, Release
from evalboard.contract.response import CaseOfRun
from evalboard.contract.run import Run
from tests.recorded import DATA

URL = "https://board.example"

Json = dict[str, Any]


@cache
def recorded() -> dict[str, tuple[int, Any]]:
    """Return status and body by address below /api/v1."""
    return json.loads(gzip.decompress((DATA / "answers.json.gz").read_bytes()))  # type: ignore[no-any-return]


def changed(kind: type[Kind], body: Json, **changes: Any) -> Answer[Kind]:
    answer = {**body, **changes}
    return Answer(parse(kind, answer, url=URL), answer)


def run(**changes: Any) -> Answer[Run]:
    """Return a run of two repeats over 8 cases."""
    body = recorded()["/runs/1/"][1]
    repeats = [{**body["repeats"][0], "index": index, "score": score} for index, score in ((1, 87.5), (2, 75.0))]
    base: Json = {
        "id": "3",
        "suite": {**body["suite"], "version": 2, "n_cases": 8},
        "repeats": repeats,
        "range": [75.0, 87.5],
        "warnings": [],
        "created_at": "2026-11-20T08:00:00Z",
        "url": f"{URL}/runs/3/",
    }
    return changed(Run, body, **{**base, **changes})


def gate(**changes: Any) -> Json:
    """Return a gate in which 4 of 8 cases broke."""
    body = recorded()["/releases/2/"][1]["gates"][0]
    base: Json = {
        "verdict": "no_ship",
        "leaning": None,
        "difference": -50.0,
        "low": -60.0,
        "high": -40.0,
        "baseline": {**body["baseline"], "run": "1", "score": 100.0},
        "candidate": {**body["candidate"], "run": "3", "score": 50.0},
        "changed": {**body["changed"], "broken": ["sea"]},
    }
    return {**body, **base, **changes}


def parsed_gate(**changes: Any) -> Gate:
    return parse(Gate, gate(**changes), url=URL)


def release(*gates: Json, **changes: Any) -> Answer[Release]:
    body = recorded()["/releases/2/"][1]
    base: Json = {
        "id": "9",
        "verdict": "no_ship",
        "summary": "colours scored 50.0 against 100.0.",
        "gates": list(gates) or [gate()],
        "next": [step("Look at the 4 cases that broke.")],
        "warnings": [warning("Below 200 cases one is worth 12.5 points.")],
        "url": f"{URL}/releases/9/",
    }
    return changed(Release, body, **{**base, **changes})


def step(text: str) -> Json:
    return {**note(text), "sides": [], "block": None}


def note(text: str) -> Json:
    return {"code": "some", "gate": None, "text": text}


def warning(text: str, severity: str = "warning") -> Json:
    return {**note(text), "severity": severity, "must_act": None}


def case(name: str, *scores: float | None, errors: tuple[str, ...] = ()) -> Answer[CaseOfRun]:
    """Return one case of a run with its score in each repeat, from 0 to 1."""
    known = [score for score in scores if score is not None]
    return changed(
        CaseOfRun,
        recorded()["/runs/1/cases/"][1]["results"][0],
        case=name,
        score=sum(known) / len(known) if known else None,
        scores=list(scores),
        errors=list(errors),
        marks=[[] for _ in scores],
        reason="red is not blue",
        url=f"{URL}/{name}",
    )
