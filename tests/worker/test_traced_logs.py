"""A log that `evalboard trace` records, imported, has the facts that a run on the same endpoint has."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalboard.cli.main import main
from evalboard.importers.files import LogFile
from runs.imports.imports import import_logs
from runs.models import EndpointRecord, ResponseRecord, RunRecord
from runs.run import run_report
from tests.scripted import Received, Reply, ScriptedServer, status
from tests.worker.test_remote_runs import by, endpoint, new_run, new_runner, number, runner, server, worked
from worker.runner import Runner

__all__ = ["endpoint", "new_run", "new_runner", "runner", "server"]
pytestmark = pytest.mark.django_db(transaction=True)

FACTS = (
    *("case_index", "text", "reasoning", "is_truncated", "finish_reason", "ending", "trace_reason", "text_digest"),
    *("trace_digest", "prompt_digest", "n_tokens", "n_prompt_tokens", "seed_sent", "marks"),
)


def odd() -> Callable[[Received], Reply]:
    """A script of two backends, a refused case, one out of a cache, one that is tried twice, and one that is cut."""
    tries: Counter[int] = Counter()

    def script(received: Received) -> Reply:
        case = number(received)
        tries[case] += 1
        if case == 3:
            return status(422, words="no such thing")
        if case == 5 and tries[case] == 1:
            return status(503, {"Retry-After": "0"})
        more = {"X-Cache": "HIT from the edge"} if case == 4 else {}
        return by("a" if case % 2 else "b", **more)

    return script


def facts(run: RunRecord) -> tuple[list[Any], list[Any]]:
    """What is stored of each answer, and the share and score of each backend."""
    rows = ResponseRecord.objects.filter(repeat__run=run, error_code="").order_by("case_index")
    buckets = run_report(run.pk).buckets
    shares = sorted((each.share, [repeat.score for repeat in each.repeats]) for each in buckets)
    return [[_plain(each) for each in row] for row in rows.values_list(*FACTS)], shares


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.mark.nightly
def test_an_imported_trace_has_the_facts_of_a_run(
    server: ScriptedServer,
    endpoint: EndpointRecord,
    new_run: Callable[..., RunRecord],
    runner: Runner,
    tmp_path: Path,
) -> None:
    server.script = odd()
    run = worked(runner, new_run(12, max_tokens=5))
    cases = [{"id": f"case-{n}", "prompt": f"Say {n}.", "target": "blue"} for n in range(12)]
    suite, log = tmp_path / "words.json", tmp_path / "a.jsonl"
    suite.write_text(json.dumps({"slug": "words", "max_tokens": 5, "scorer": {"kind": "exact"}, "cases": cases}))
    server.script = odd()
    asked = ["--base-url", server.base_url, "--model", endpoint.model_repo, "--seed", str(run.seed), "-o", str(log)]
    with pytest.raises(SystemExit) as ended:
        main(["trace", str(suite), *asked, "--top-logprobs", "2"])
    assert ended.value.code == 4  # one case was refused
    _, [imported], _ = import_logs(files=[LogFile(log.name, log)], user=None)
    assert imported.suite_version == run.suite_version  # whose scorer judges both
    assert facts(imported) == facts(run)
    assert len(facts(run)[0]) == 11
    assert {row[-1] for row in facts(run)[0]} != {0}
