"""A release of two archives of runs on an external server judges as that of the runs did."""

import io
import json
import re
import zipfile
from typing import Any

import pytest

from evalboard.core.digest import canonical_json
from evalboard.wording import run as wording
from runs import exports
from runs.imports import store_archive
from runs.models import ResponseRecord, RunRecord
from runs.release import create_release
from runs.run import delete_run, run_report
from tests.runs import logs
from tests.runs.logs import log, response
from tests.scripted import Received, Reply, ScriptedServer, ok
from tests.worker.test_external_seeds import N_CASES, N_REPEATS, ran, runner, server, suite, temperature_of
from worker.runner import Runner

__all__ = ["runner", "server", "suite"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)
NEW = ("is_one_draw", "is_reported", "is_log", "tool", "settings_seen")  # of a run, since version 4


def archived(run: RunRecord, *, version: int = 4) -> RunRecord:
    """Export a run, delete it and read the export back. version: 3 lacks what the next one added."""
    content = b"".join(exports.run_archive(run.pk))
    delete_run(run_id=run.pk)
    return store_archive(content if version == 4 else _earlier(content), name="run.zip", labels={}, user=None)


def _earlier(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as given, zipfile.ZipFile(out, "w") as written:
        for member in given.infolist():
            data = given.read(member)
            if member.filename == "manifest.json":
                manifest = json.loads(data)
                manifest["version"] = 3
                for name in NEW:
                    del manifest["run"][name]
                data = json.dumps(manifest).encode()
            written.writestr(member.filename, data, compress_type=member.compress_type)
    return out.getvalue()


def verdict(baseline: RunRecord, candidate: RunRecord) -> Any:
    """What a release of the two says, but for what to do next, the runs' numbers being 1 and 2."""
    gate = {"suite": baseline.suite_version.suite.slug, "baseline": baseline.pk, "candidate": candidate.pk}
    release = create_release(gates=[gate], treatment="service")
    assert release.verdict is not None
    document = {**release.verdict.document, "next": None}
    document["gates"] = [{**each, "next": None} for each in document["gates"]]
    release.delete()
    text = canonical_json(document).decode()
    for number, run in enumerate((baseline, candidate), 1):
        text = re.sub(rf'([Rr]un |"run":){run.pk}\b', rf"\g<1>{number}", text)
    return json.loads(text)


@pytest.mark.nightly
@pytest.mark.parametrize("version", [3, 4])
def test_two_archives_judge_as_the_runs_did(runner: Runner, version: int) -> None:
    one, other = ran(runner), ran(runner, seed=7)
    before, course = verdict(one, other), wording.describe_course(run_report(one.pk))
    codes = {each["code"] for each in before["warnings"]}
    assert {"sampled", "reported"} <= codes
    one, other = archived(one, version=version), archived(other, version=version)
    assert verdict(one, other) == before
    assert wording.describe_course(run_report(one.pk)) == course


@pytest.mark.nightly
def test_an_archive_keeps_what_its_calls_and_the_newest_check_showed(runner: Runner) -> None:
    run = ran(runner)
    seen, fact = run.settings_seen, temperature_of(run)
    assert seen["n_left_out"] == {"temperature": N_CASES * N_REPEATS}
    back = archived(run)
    assert (back.is_reported, back.is_log, back.settings_seen) == (True, False, seen)
    assert temperature_of(back) == fact
    again = archived(back)
    assert (again.is_reported, again.is_log, again.settings_seen) == (True, False, seen)


@pytest.mark.nightly
def test_tokens_that_are_not_measured_come_back_with_their_reason(server: ScriptedServer, runner: Runner) -> None:
    server.script = _of_zeros
    run = ran(runner, repeats=1)
    names = ("text", "ending", "trace_reason", "unmeasured_trace", "trace_digest")
    before = list(ResponseRecord.objects.filter(repeat__run=run).order_by("case_index").values(*names))
    assert {row["trace_reason"] for row in before} == {"all_zero"}
    assert all(row["unmeasured_trace"] for row in before)
    back = archived(run)
    after = ResponseRecord.objects.filter(repeat__run=back).order_by("case_index").values(*names)
    assert list(after) == before
    assert [note.code for note in run_report(back.pk).warnings if note.code == "text_only"]


def _of_zeros(received: Received) -> Reply:
    """An answer whose logprobs are all 0, as of a server that gives none."""
    choice = json.loads(json.dumps(received.good["choices"][0]))
    for position in choice["logprobs"]["content"]:
        position["logprob"], position["top_logprobs"] = 0.0, []
    return ok(choices=[choice])


def test_the_archive_of_a_log_is_a_log_with_its_own_scores() -> None:
    given = [response(case, repeat, score=0.25 * repeat) for case in logs.CASES for repeat in (1, 2)]
    run = logs.stored(log(*given, sampling={"temperature": 0.5}))
    before = run_report(run.pk)
    back = run_report(archived(run).pk)
    assert back.settings == before.settings
    assert {fact.source for fact in back.settings} == {"log"}
    assert [repeat.score for repeat in back.repeats] == [repeat.score for repeat in before.repeats] == [25, 50]
    assert back.source is not None
    assert back.source.tool == "eval_tool 1.2.3"
