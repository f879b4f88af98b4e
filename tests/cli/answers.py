"""Answers of a server, for what is written of them; the parts that reports read, and no others."""

from typing import Any

from evalboard.cli.answers import ReleaseAnswer, RunAnswer

URL = "https://board.example"


def run(**changes: Any) -> RunAnswer:
    known: dict[str, Any] = {
        "id": "3",
        "suite": {"slug": "colours", "version": 2, "n_cases": 8},
        "endpoint": "local",
        "profile": "pinned",
        "sampled": None,
        "status": "finished",
        "progress": {"n_done": 16, "n_total": 16, "eta_seconds": None},
        "repeats": [{"index": 1, "score": 87.5}, {"index": 2, "score": 75.0}],
        "range": [75.0, 87.5],
        "n_buckets": 1,
        "warnings": [],
        "url": f"{URL}/runs/3/",
    }
    return RunAnswer({**known, **changes})


def gate(**changes: Any) -> dict[str, Any]:
    side = {"run": "1", "n_repeats": 5, "score": 100.0}
    known = {
        "suite": "colours",
        "suite_version": 2,
        "tier": "critical",
        "verdict": "no_ship",
        "leaning": None,
        "difference": -50.0,
        "low": -60.0,
        "high": -40.0,
        "baseline": side,
        "candidate": {**side, "run": "3", "score": 50.0},
        "n_cases": 8,
        "changed": {"broken": ["sea"], "fixed": []},
    }
    return {**known, **changes}


def release(*gates: dict[str, Any], **changes: Any) -> ReleaseAnswer:
    known: dict[str, Any] = {
        "id": "9",
        "verdict": "no_ship",
        "summary": "colours scored 50.0 against 100.0.",
        "headline_gate": 0,
        "gates": list(gates) or [gate()],
        "next": [{"text": "Look at the 4 cases that broke."}],
        "warnings": [{"text": "Below 200 cases one is worth 12.5 points."}],
        "url": f"{URL}/releases/9/",
    }
    return ReleaseAnswer({**known, **changes})
