"""What a response costs that a team's own scorer scores: a confined package and a confined program."""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from bench.row import Row, median_row
from evalboard.cli.scorer_files import write_program
from evalboard.core.scoring import check_spec
from runs.work import ToScore
from worker.scorers import PlanScorer, find_scorers

N, ROUNDS = 2000, 5
AIMS = {"python": "at most 1", "command": "at most 3"}
PACKAGE = "def score(case, response):\n    return response.text.strip().lower() == case.target.lower()\n"


def measure() -> list[Row]:
    with _installed():
        rows = []
        for own in find_scorers():
            assert not own.problem, own.problem
            spec = check_spec({"kind": own.kind, "name": own.name, "digest": own.digest})
            with PlanScorer({"default": spec, "cases": {}}, check=lambda: None) as scorer:
                scorer.score(_response(0))  # the process starts
                readings = [_time(scorer) for _ in range(ROUNDS)]
            rows.append(median_row(f"a response scored by a {own.kind} scorer", readings, "ms", aim=AIMS[own.kind]))
        return rows


def _time(scorer: PlanScorer) -> float:
    began = time.perf_counter()
    for number in range(1, N + 1):
        scored = scorer.score(_response(number))
        assert scored.value is not None, scored.reason
    return 1000 * (time.perf_counter() - began) / N


def _response(number: int) -> ToScore:
    case = (f"case-{number}", [{"role": "user", "content": "What is the capital of Norway? " * 8}], "Oslo", None, ())
    return ToScore(number, *case, text="Oslo. " * 20, thinking=None, is_truncated=None, finish_reason="stop")


@contextmanager
def _installed() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as programs:
        folder, about = Path(name), Path(name, "bench-1.dist-info")
        about.mkdir()
        (folder / "bench_scorer.py").write_text(PACKAGE)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bench\nVersion: 1\n")
        (about / "entry_points.txt").write_text("[evalboard.scorers]\nbench = bench_scorer:score\n")
        settings.SCORERS_DIR = Path(programs)
        write_program(settings.SCORERS_DIR / "folded")
        sys.path.insert(0, name)
        try:
            yield
        finally:
            sys.path.remove(name)
