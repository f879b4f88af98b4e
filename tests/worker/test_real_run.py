"""Runs, a probe, forced scorings, replays and a bisect on the real engine and the real model, by one worker.

A start of vLLM costs more than what it decodes here, so an engine that is warm serves whatever may be served by it, as
it does in production: four starts serve all. How each kind of work is claimed, in each set-up, is tested with the
scripted engine.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalboard.contract import forced as contract_forced
from evalboard.contract import replay as contract
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.trace import read_trace
from runs.catalogue import create_endpoint, create_profile
from runs.compare import compare, report_of
from runs.forced import create_forced
from runs.forced.read import forced_row
from runs.judging import judgings_of
from runs.lab import experiment_detail, plan_bisect, start_experiment
from runs.models import EndpointRecord, EngineProcess, ForcedAnswerRecord, RepeatScore, ResponseRecord, RunRecord
from runs.probes import create_probe
from runs.probes.read import probe_calls, probe_detail
from runs.replays import create_body_replay, create_replay
from runs.replays.read import replay_row
from runs.run import create_run, run_report
from runs.suites import push_suite, rescore_run
from runs.sweep import reconcile
from runs.work import open_judgings
from tests import build
from tests.worker.conftest import Start, Wait, ended
from worker.engines.vllm import describe

pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.django_db(transaction=True)]

QUESTIONS = ("What is the capital of France?", "Name a colour.", "List five animals.", "Count to ten.")
CASES = [{"id": f"case-{n}", "prompt": prompt, "target": "blue"} for n, prompt in enumerate(QUESTIONS)]
TOO_LONG = {"id": "long", "prompt": "word " * 600, "target": "none"}


@pytest.fixture
def new_run(settings: Any, sample_model: Path) -> Callable[..., RunRecord]:
    settings.MODEL_ROOTS = [sample_model.parent]
    for slug, cases in (("real", CASES), ("too-long", [*CASES[:2], TOO_LONG])):
        suite = {"slug": slug, "title": "Real", "max_tokens": 8, "scorer": {"kind": "contains"}, "cases": cases}
        push_suite(document=suite)
    create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    for dtype in ("float32", "bfloat16"):
        create_endpoint(slug=dtype, model_path=str(sample_model), dtype=dtype, line="smollm2", max_model_len=512)

    def create(suite: str, endpoint: str, repeats: int) -> RunRecord:
        return create_run(suite=suite, endpoint=endpoint, profile="pinned", repeats=repeats)

    return create


# Real engines of a team, rung for through Redis, are in tests/faults/test_two_workers.py.
@pytest.mark.parametrize("setup", ["one machine"], indirect=True)
def test_what_the_real_engine_gives_is_the_same_to_the_bit_wherever_nothing_was_moved(
    new_run: Callable[[str, str, int], RunRecord],
    start_worker: Start,
    wait_until: Wait,
    vllm_python: Path,
    sample_model: Path,
) -> None:
    start_worker(
        EVALBOARD_VLLM_PYTHON=str(vllm_python),
        EVALBOARD_MODEL_ROOTS=str(sample_model.parent),
        EVALBOARD_RESPONSE_SECONDS="120",
        EVALBOARD_LEASE_SECONDS="30",
    )

    def decode(suite: str, endpoint: str, repeats: int) -> RunRecord:
        run = new_run(suite, endpoint, repeats)
        wait_until(lambda: ended(run), "the run has ended")
        return run

    first, second = decode("real", "float32", 2), decode("real", "float32", 1)
    assert_runs_repeat_to_the_byte(first, second)
    assert_seeds_are_honoured(wait_until)
    assert_the_node_is_certified_and_audited(wait_until)
    assert_replays_of_the_same_stack_are_the_same(second, wait_until)
    assert_a_request_of_production_is_decoded_as_it_was_sent(second, wait_until)
    assert_the_same_stack_prefers_its_own_tokens(first, wait_until)
    assert_the_model_judges_its_own_answers(first, wait_until)
    assert_a_bisect_convicts_two_settings_that_matter_only_together(wait_until)
    other = decode("too-long", "bfloat16", 1)
    assert_another_dtype_lands_in_another_bucket(first, other)
    assert_another_dtype_holds_the_tokens_otherwise(first, other, wait_until)
    assert_a_replay_in_another_dtype_is_another_model_s(second, wait_until)

    second.refresh_from_db()
    dtypes = set(EngineProcess.objects.filter(repeats__run=second).values_list("manifest__engine__dtype", flat=True))
    assert dtypes == {"float32"}  # what other variants started is not the run's


def second_build(python: Path, folder: Path, *, patched: str = "") -> Path:
    """Make an interpreter with the same packages and a vllm folder of its own: links, and one file that differs."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    ask = "import importlib.util; print(importlib.util.find_spec('vllm').submodule_search_locations[0])"
    vllm = Path(subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip())
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "first.pth").write_text(f"{vllm.parent}\n", encoding="utf-8")  # behind its own packages
    shutil.copytree(vllm, packages / "vllm", copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
    if patched:
        file = packages / "vllm" / patched
        text = file.read_text(encoding="utf-8")
        file.unlink()
        file.write_text(f"{text}\n# A build of our own.\n", encoding="utf-8")
    return folder / "bin" / "python"


@pytest.mark.parametrize("setup", ["one machine"], indirect=True)
def test_two_builds_of_vllm_in_two_pools_are_two_fingerprints(
    new_run: Callable[[str, str, int], RunRecord],
    start_worker: Start,
    wait_until: Wait,
    vllm_python: Path,
    sample_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each pool's worker has an interpreter of its own. One file of vLLM differs; no version does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    copied = second_build(vllm_python, tmp_path / "copied")
    patched = second_build(vllm_python, tmp_path / "patched", patched="v1/sample/sampler.py")
    versions = {python: describe(python)["versions"] for python in (vllm_python, copied, patched)}
    assert versions[copied] == versions[vllm_python]
    differing = {name for name, value in versions[patched].items() if value != versions[vllm_python][name]}
    assert differing == {"vllm_code"}

    EndpointRecord.objects.filter(slug="float32").update(pool="stable")
    path = str(sample_model)
    create_endpoint(slug="next", model_path=path, dtype="float32", line="smollm2", max_model_len=512, pool="next")
    runs = [new_run("real", endpoint, 1) for endpoint in ("float32", "next")]
    for pool, python in (("stable", vllm_python), ("next", patched)):
        start_worker(
            "--pool",
            pool,
            EVALBOARD_VLLM_PYTHON=str(python),
            EVALBOARD_MODEL_ROOTS=str(sample_model.parent),
            EVALBOARD_RESPONSE_SECONDS="120",
            EVALBOARD_LEASE_SECONDS="30",
        )
    for run in runs:
        wait_until(lambda run=run: ended(run), f"the run on {run.endpoint} has ended")
    [stable], [newer] = (run_report(run.pk).buckets for run in runs)
    assert stable.model.digest == newer.model.digest
    assert stable.fingerprint.id != newer.fingerprint.id
    report = report_of(compare(baseline=runs[0].pk, candidate=runs[1].pk))
    assert {each.field for each in report.moved} == {"versions.vllm_code"}


def assert_runs_repeat_to_the_byte(first: RunRecord, second: RunRecord) -> None:
    """Across runs and engine processes: repeat 1 of the first was decoded by the one before the second's."""
    report = run_report(second.pk)
    assert report.twin is not None
    assert (report.twin.run, report.twin.n_equal, report.twin.n_compared) == (str(first.pk), 4, 4)
    for run in (first, second):
        served = run_report(run.pk)
        assert served.status == "finished"
        assert served.pins.broken == ()
        assert all(process.self_checks_same for process in served.processes)
    assert len(run_report(first.pk).processes) == 2  # the halves of a run come from processes of their own
    engines = [EngineProcess.objects.get(repeats__run=run, repeats__index=1) for run in (first, second)]
    assert engines[0] != engines[1]
    assert first.bucket_id == second.bucket_id

    stored = ResponseRecord.objects.filter(repeat__run=first, error_code="").select_related("trace_block")
    assert stored.count() == 8
    for response in stored:
        assert response.trace_block is not None
        assert response.trace_slot is not None
        trace = read_trace(bytes(response.trace_block.data), response.trace_slot)
        assert len(trace) == response.n_tokens
        assert (response.batch_min, response.batch_max, response.n_cached_tokens) == (1, 1, 0)
        assert (trace.logprobs == trace.alternative_logprobs[:, 0]).all()  # greedy: the chosen one is the first


def assert_the_model_judges_its_own_answers(run: RunRecord, wait_until: Wait) -> None:
    """A small judge is no good one. But its judgements are a run on the bucket that served the answers."""
    template = "Question: {{prompt}}\nAnswer: {{answer}}\nIs the answer right? Say only Yes or No."
    judge = {"kind": "judge", "endpoint": "float32", "profile": "pinned", "template": template, "max_tokens": 4}
    rescore_run(run_id=run.pk, scorer={**judge, "reads": {"choice": {"yes": 1, "no": 0}}, "twice": 2, "anchors": 0})
    wait_until(lambda: not open_judgings().exists(), "the judge has scored the run")
    [judging] = judgings_of(run.pk)
    assert (judging.status, judging.n_judgements, judging.error) == ("finished", 2 * 4 + 2 * 2, None)
    assert judging.noise is not None
    assert judging.noise.disagreement == 0.0  # a pinned judge repeats itself to the bit
    judged = run_report(int(judging.judge_run or 0))
    assert (judged.status, judged.judge_of, judged.buckets[0].id) == ("finished", str(run.pk), str(run.bucket_id))
    first, second = RepeatScore.objects.filter(repeat__run=run, scorer__spec__default__kind="judge").order_by("repeat")
    assert first.n_scored == 4
    assert bytes(first.scores) == bytes(second.scores)  # equal answers, judged apart


def assert_another_dtype_lands_in_another_bucket(first: RunRecord, other: RunRecord) -> None:
    partial = run_report(other.pk)
    assert partial.status == "incomplete"  # one prompt does not fit; the others have their responses
    assert partial.errors.by_code == {"prompt_too_long": 1}
    assert (partial.progress.n_done, partial.progress.n_total) == (2, 3)
    [ours], [theirs] = run_report(first.pk).buckets, partial.buckets
    assert ours.id != theirs.id
    assert ours.model.digest == theirs.model.digest


def assert_the_same_stack_prefers_its_own_tokens(run: RunRecord, wait_until: Wait) -> None:
    """Read in one pass where it was decoded token by token: float32's rounding apart nothing moves."""
    row = forced(run, "float32", wait_until)
    assert (row.status, row.tokens, row.n_rendered, row.errors) == ("finished", {"same": 4}, 0, {})
    assert row.bucket == str(run.bucket_id)
    assert row.figures is not None
    assert (row.figures.n_positions, row.figures.n_not_top) == (row.n_tokens, 0)
    assert row.figures.worst is not None
    assert abs(row.figures.worst.log_ratio) < 1e-3
    again = forced(run, "float32", wait_until)
    assert digests(row) == digests(again)


def assert_another_dtype_holds_the_tokens_otherwise(run: RunRecord, other: RunRecord, wait_until: Wait) -> None:
    row = forced(run, "bfloat16", wait_until)
    assert row.bucket == str(other.bucket_id)
    assert row.figures is not None
    assert row.figures.gap_median is not None
    assert 1e-4 < row.figures.gap_median.value < 0.5


def forced(run: RunRecord, endpoint: str, wait_until: Wait) -> contract_forced.ForcedScoring:
    scoring = create_forced(run_id=run.pk, endpoint=endpoint)
    wait_until(lambda: forced_row(scoring.pk).is_terminal, "the scoring has ended")
    return forced_row(scoring.pk)


def digests(row: contract_forced.ForcedScoring) -> list[bytes]:
    """Of the forced traces of a scoring, in the order of its answers."""
    answers = ForcedAnswerRecord.objects.filter(scoring=int(row.id)).select_related("trace_block").order_by("pk")
    return [
        read_trace(bytes(each.trace_block.data), each.trace_slot or 0).digest for each in answers if each.trace_block
    ]


def assert_seeds_are_honoured(wait_until: Wait) -> None:
    """The real sampler honours seeds, and is given every one of them."""
    parameters = {"prompts": 2, "calls_per_group": 5, "max_tokens": 8}
    probe = create_probe(endpoint="float32", kind="seed", parameters=parameters)
    wait_until(lambda: probe_detail(probe.pk).is_terminal, "the probe has ended")
    detail = probe_detail(probe.pk)
    assert (detail.status, detail.error, detail.progress.n_done) == ("finished", None, 22)
    assert detail.finding is not None
    assert detail.finding.state == "honoured", detail.finding.sentence
    calls = probe_calls(probe.pk)
    for prompt in (0, 1):
        same = {call.text for call in calls if (call.prompt, call.group) == (prompt, "same")}
        different = {call.text for call in calls if (call.prompt, call.group) == (prompt, "different")}
        assert len(same) == 1  # alone in each step, an answer follows from its seed to the bit
        assert len(different) == 5
    assert all(len(call.tokens) == 8 for call in calls)  # drawn with the real vocabulary
    assert not any("token" in word for call in calls for word in call.tokens if word.startswith("⟨"))


def assert_the_node_is_certified_and_audited(wait_until: Wait) -> None:
    """Alone in its step, with others waiting, and from one audit to the next: the same tokens and logprobs."""

    def found(kind: str, **parameters: Any) -> tuple[str, dict[str, Any]]:
        probe = create_probe(endpoint="float32", kind=kind, parameters={"prompts": 2, "max_tokens": 8, **parameters})
        wait_until(lambda: probe_detail(probe.pk).is_terminal, "the probe has ended")
        finding = probe_detail(probe.pk).finding
        assert finding is not None
        return finding.state, finding.numbers

    state, numbers = found("determinism", passes=1)
    assert (state, numbers["seats"], numbers["seats_reached"]) == ("certified", 1, 1)
    [row] = numbers["workers"]
    assert len({each["digest"] for each in row["conditions"]}) == 1
    assert (numbers["covers"]["dtype"], numbers["covers"]["n_devices"]) == ("float32", 1)
    assert [found("audit")[0] for _ in range(2)] == ["nothing_held", "identical"]


def assert_replays_of_the_same_stack_are_the_same(run: RunRecord, wait_until: Wait) -> None:
    as_it_was = replay(run, wait_until)
    assert as_it_was.reading == ("Identical: every token and logprob equals the run’s response to the bit.",)
    facts = as_it_was.results[0]
    assert (facts["same_bucket"], facts["same_prompt"], facts["batch_max"]) == (True, True, 1)

    by_size = replay(run, wait_until, batch_sizes=[1, 4])
    alone, full = by_size.results
    assert alone["outcome"] == "identical"
    assert (full["batch_min"], full["batch_max"], full["neighbours"]) == (4, 4, [3, 0, 1])
    assert (full["same_fingerprint"], full["same_bucket"]) == (True, False)
    assert full["outcome"] != "error"  # what it gives is this processor's own; docs/node.md has what was measured
    assert not any("not reached" in line or "not held" in line for line in by_size.reading)


def assert_a_request_of_production_is_decoded_as_it_was_sent(run: RunRecord, wait_until: Wait) -> None:
    """On the warm engine: the case's own messages give its own answer, cut where the request says; and refusals."""
    recorded = ResponseRecord.objects.get(repeat__run=run, case_index=2)

    def decode(content: str, **changes: Any) -> contract.Replay:
        body = {"messages": [{"role": "user", "content": content}], "temperature": 0, "max_tokens": 4, **changes}
        created = create_body_replay(endpoint="float32", profile="pinned", body=body)
        wait_until(lambda: replay_row(created.pk).is_terminal, "the replay has ended")
        return replay_row(created.pk)

    row = decode(QUESTIONS[2], stream=True, user="u-1", top_logprobs=5)
    assert (row.status, row.error) == ("finished", None)
    assert row.production is not None
    answer = row.production.answer
    assert answer is not None
    assert recorded.text.startswith(answer.text)
    assert answer.trace is not None
    assert answer.trace.length == 4
    assert {len(position.alternatives) for position in answer.trace.positions} == {5}
    assert (answer.sampling["max_tokens"], answer.engine["dtype"]) == (4, "float32")
    assert answer.bucket == str(run.bucket_id)  # sampling is no part of a bucket
    drawn = [decode(QUESTIONS[2], temperature=1.5, seed=seed).production for seed in (1, 1, 2)]
    texts = [each.answer.text for each in drawn if each is not None and each.answer is not None]
    assert texts[0] == texts[1] != texts[2]
    too_long = decode("word " * 600)
    assert too_long.status == "failed"
    assert str(too_long.error).startswith("prompt_too_long") or "prompt" in str(too_long.error)


def assert_a_bisect_convicts_two_settings_that_matter_only_together(wait_until: Wait) -> None:
    """With all but the likeliest token cut off nothing is drawn at any temperature, nor with nothing cut off at 0."""
    pinned = DEFAULT_PROFILES["pinned"]["settings"]
    runs = []
    for slug, temperature, top_k in (("narrow", 0.0, 1), ("drawn", 1.5, 0)):
        sampling = {**pinned["sampling"], "temperature": temperature, "top_k": top_k}
        create_profile(slug=slug, title="", settings={**pinned, "sampling": sampling})
        runs.append(create_run(suite="real", endpoint="float32", profile=slug, repeats=1))
        wait_until(lambda: ended(runs[-1]), "the run has ended")
    planned = plan_bisect(baseline=runs[0].pk, candidate=runs[1].pk, user=build.user())
    start_experiment(experiment_id=planned.pk)

    def has_ended() -> bool:
        reconcile()
        return experiment_detail(planned.pk).is_terminal

    wait_until(has_ended, "the bisect has ended")
    bisect = experiment_detail(planned.pk).bisect
    assert bisect is not None
    assert bisect.n_reproduced == len(bisect.cases) > 0
    assert {field.name: (field.state, field.n_made, field.n_undone) for field in bisect.fields} == dict.fromkeys(
        ("sampling.temperature", "sampling.top_k"), ("together", 0, bisect.n_reproduced)
    )


def assert_a_replay_in_another_dtype_is_another_model_s(run: RunRecord, wait_until: Wait) -> None:
    """The run's own dtype, asked for by name among others, is tested with the scripted engine."""
    [other] = replay(run, wait_until, dtypes=["bfloat16"]).results
    assert other["outcome"] in ("drift", "flip", "shorter", "longer")
    assert other["same_model"] is True
    assert other["drift_onset"] == 0 or other["flip_position"] == 0  # eight bits of mantissa move the first logprob


def replay(run: RunRecord, wait_until: Wait, **variants: Any) -> contract.Replay:
    created = create_replay(run_id=run.pk, case_id="case-2", **variants)
    wait_until(lambda: replay_row(created.pk).is_terminal, "the replay has ended")
    row = replay_row(created.pk)
    assert (row.status, row.error) == ("finished", None)
    return row
