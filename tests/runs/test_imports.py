"""Other tools' logs as runs: where they are put, what they are compared with, and what cannot be done with them."""

import io
import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from evalboard.core.archive import RunArchive
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.trace import Vocabulary
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedPosition, LoggedPositions, LoggedRun, LoggedScore
from evalboard.wording.run import describe_course
from runs import exports
from runs.baselines import set_baseline
from runs.catalogue import create_profile
from runs.compare import compare, trace_pair
from runs.health import metrics
from runs.imports import import_logs
from runs.models import (
    ComparisonRecord,
    DivergenceRecord,
    EndpointRecord,
    ImportRecord,
    ResponseRecord,
    RunRecord,
    Suite,
    SuiteVersionRecord,
)
from runs.pairs.pair_facts import draws_of, request_settings
from runs.release import create_release, release_report
from runs.replays import create_replay
from runs.run import add_repeats, create_run, delete_run, response_page, run_report, show_trace, stored_trace
from runs.served import Words
from runs.suites import push_suite, rescore_run
from runs.work import worker_rows
from tests import build
from tests.build import case_rows, comparison_report
from tests.recorded import LOGS
from tests.runs import logs

pytestmark = pytest.mark.django_db


def chat_log(folder: Path, *texts: str, name: str = "answers.jsonl") -> LogFile:
    """A file of raw chat completions, one a line."""
    lines = [
        {
            "case_id": logs.CASES[number],
            "request": {"messages": [{"role": "user", "content": f"Which colour has {logs.CASES[number]}?"}]},
            "response": {
                "model": "paint-1b",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            },
        }
        for number, text in enumerate(texts)
    ]
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return LogFile(name, path)


def import_of(*files: LogFile, suite: str | None = None) -> tuple[ImportRecord, list[RunRecord], bool]:
    return import_logs(files=files, format="auto", suite=suite, user=None)


def sample(*parts: str) -> LogFile:
    return LogFile(parts[-1], LOGS.joinpath(*parts))


def codes(comparison: ComparisonRecord) -> list[str]:
    return [block["code"] for block in comparison.summary["blocks"]]


def causes(comparison: ComparisonRecord) -> Counter[str]:
    return Counter(DivergenceRecord.objects.filter(comparison=comparison).values_list("cause", flat=True))


def colours(scorer: dict[str, Any] | None = None, case_ids: tuple[str, ...] = logs.CASES) -> SuiteVersionRecord:
    """A suite that people pushed, of the cases that the logs have."""
    cases = [{"id": case, "prompt": f"Which colour has {case}?", "target": "it is blue"} for case in case_ids]
    document = {"slug": "colours", "max_tokens": 24, "scorer": scorer or {"kind": "exact"}, "cases": cases}
    return push_suite(document=document)[0]


# What is stored


def test_a_log_becomes_a_run_with_its_scores_traces_and_backend() -> None:
    run = logs.stored(logs.log())
    report = run_report(run.pk)
    assert (report.status, report.points, report.progress.n_done) == ("finished", (100.0, 100.0), 6)
    assert report.sampling == {"temperature": 0.0, "max_tokens": 24, "stop": ["\n"]}
    assert [bucket.fingerprint.label for bucket in report.buckets] == ["vllm-0.32.0-ac25"]
    assert report.pins.held is None
    assert [warning.code for warning in report.warnings] == ["imported", "unknown_batching", "coarse_suite"]
    response = response_page(run.pk, repeat=2, case_id="sea")
    assert [cell.drawn for cell in response.trace.tokens] == ["it", "·is", "·blue", "⟨end⟩"]
    assert [(cell.score, cell.reason) for cell in response.scores] == [(1.0, "as the tool said")]
    assert response.same_trace_repeats == (1,)


def test_the_same_log_is_stored_once_also_at_the_same_moment(transactional_db: None, tmp_path: Path) -> None:
    log = chat_log(tmp_path, "blue", "blue", "red")
    found: list[tuple[ImportRecord, list[RunRecord], bool]] = []

    def send() -> None:
        try:
            found.append(import_of(log))
        finally:
            connection.close()

    senders = [threading.Thread(target=send) for _ in range(2)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert sorted(is_new for _, _, is_new in found) == [False, True]
    assert found[0][0] == found[1][0]
    assert found[0][1] == found[1][1] == list(RunRecord.objects.all())
    assert import_of(log, suite=found[0][1][0].suite_version.suite.slug)[2]  # asked for otherwise: another import


def test_of_a_log_that_does_not_fit_nothing_is_stored(tmp_path: Path) -> None:
    colours(case_ids=("sky",))
    with pytest.raises(InvalidInput) as refused:
        import_of(chat_log(tmp_path, "blue", "red"), suite="colours")
    assert "has no case sea," in refused.value.fields["suite"]
    assert not ImportRecord.objects.exists()
    assert not EndpointRecord.objects.exists()


@pytest.mark.nightly
def test_the_log_can_be_imported_again_once_its_run_is_deleted(tmp_path: Path) -> None:
    log = chat_log(tmp_path, "blue")
    delete_run(run_id=import_of(log)[1][0].pk)
    assert import_of(log)[2]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cases": (logs.case("sky"), logs.case("sky")), "responses": (logs.response("sky"),)}, "cases.sky"),
        ({"responses": (logs.response("sky"), logs.response("sky"))}, "cases.sky"),
        ({"responses": (logs.response("moon"),)}, "cases.moon"),
        ({"responses": (logs.response("sky", 101),)}, "repeats"),
        ({"cases": (), "responses": ()}, "cases"),
    ],
)
def test_a_log_that_contradicts_itself_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        logs.stored(logs.log(**changes))
    assert list(refused.value.fields) == [field]


def test_what_failed_or_is_not_there_is_missing_and_never_wrong() -> None:
    failed = logs.response("sea", error="HTTP 500: overloaded", text="", positions=None)
    run = logs.stored(logs.log(logs.response("sky"), failed))
    assert run.status == "incomplete"
    missing = dict(ResponseRecord.objects.exclude(error_code="").values_list("case_index", "error_code"))
    assert missing == {0: "source_error", 2: "not_in_log"}  # sea and sun, in the order of their ids
    assert run_report(run.pk).range_so_far is None


@pytest.mark.parametrize("status", ["incomplete", "failed", "cancelled"])
def test_a_run_ends_as_it_ended_in_its_log(status: Any) -> None:
    run = logs.stored(logs.log(status=status, failure="out of money"))
    assert run.status == status
    assert run_report(run.pk).range_so_far is None


def test_a_log_without_scores_is_a_run_without_scores_that_can_be_scored() -> None:
    unscored = logs.log(*(logs.response(case, score=None) for case in logs.CASES), scorers=())
    run, other = logs.stored(unscored), logs.stored(logs.served(unscored, logs.BFLOAT16), "two")
    report = run_report(run.pk)
    assert (report.status, report.points, report.repeats[0].n_missing) == ("finished", (None,), 0)
    compared = compare(baseline=run.pk, candidate=other.pk)
    assert compared.summary["counts"]["identical"] == 3
    assert compared.summary["score"]["difference"] is None
    rescore_run(run_id=run.pk, scorer={"kind": "contains"})
    assert [line.repeats for line in run_report(run.pk).scores] == [(100.0,)]


def test_an_answer_that_its_author_left_unscored_is_left_out_of_the_score() -> None:
    unscored = logs.response("sun", scores={"match": LoggedScore(None, "null")})
    run = logs.stored(logs.log(logs.response("sky"), logs.response("sea", score=0.0), unscored))
    report = run_report(run.pk)
    assert (report.points, report.repeats[0].n_missing, run.status) == ((50.0,), 0, "finished")
    lost = logs.response("sun", error="HTTP 500", text="", positions=None)
    missing = logs.stored(logs.log(logs.response("sky"), logs.response("sea", score=0.0), lost), "two")
    assert run_report(missing.pk).points == (None,)


# The suite of a log


def test_a_named_suite_scores_the_texts_and_keeps_the_tools_scores_beside() -> None:
    colours()
    answers = (logs.response("sky"), logs.response("sea", 1, "it", " is", " red", score=1.0), logs.response("sun"))
    run = logs.stored(logs.log(*answers), suite="colours")
    lines = run_report(run.pk).scores
    assert [(line.scorer.is_own, round(line.repeats[0] or 0, 1)) for line in lines] == [(True, 66.7), (False, 100.0)]


@pytest.mark.parametrize(
    ("messages", "suite", "is_fit"),
    [
        (({"role": "user", "content": [{"type": "text", "text": "Which colour has sky?"}]},), None, True),
        ((), None, False),
        ((), "colours", True),
    ],
)
def test_prompts_that_are_only_written_otherwise_fit_a_suite_and_unknown_ones_by_name(
    messages: Any, suite: str | None, is_fit: bool
) -> None:
    version = colours(case_ids=("sky",))
    run = logs.stored(logs.log(logs.response("sky"), cases=(logs.case("sky", messages=messages),)), suite=suite)
    assert (run.suite_version == version) is is_fit


def test_another_prompt_under_the_same_id_is_no_run_of_the_suite() -> None:
    colours()
    cases = (logs.case("sky", messages=({"role": "user", "content": "Which taste has sky?"},)),)
    with pytest.raises(InvalidInput) as refused:
        logs.stored(logs.log(logs.response("sky"), cases=cases), suite="colours")
    assert "Case sky has another prompt" in refused.value.fields["suite"]
    with pytest.raises(NotFound):
        logs.stored(logs.log(), suite="colors")


def test_logs_of_one_task_share_a_version_and_more_cases_make_the_next() -> None:
    one, two = logs.stored(logs.log()), logs.stored(logs.log(), "two")
    assert one.suite_version == two.suite_version
    fewer = logs.log(logs.response("sky"), cases=(logs.case("sky"),))
    assert logs.stored(fewer, "three").suite_version.number == 2
    broken_off = logs.stored(replace(fewer, status="incomplete"), "four")
    assert broken_off.suite_version.number == 2  # the newest that has its case
    of_two = logs.log(logs.response("sea"), cases=(logs.case("sea"),), status="incomplete")
    assert logs.stored(of_two, "five").suite_version == one.suite_version


def test_a_suite_that_people_pushed_is_never_given_the_cases_of_a_log() -> None:
    colours(case_ids=("sky", "rose"))
    run = logs.stored(logs.log())
    assert run.suite_version.suite.slug == "colours-eval_tool"
    assert Suite.objects.get(slug="colours").versions.count() == 1


def test_a_prompt_that_the_log_does_not_hold_is_not_made_up() -> None:
    run = logs.stored(logs.log(cases=tuple(logs.case(case, messages=()) for case in logs.CASES)))
    assert "does not hold this prompt" in case_rows(run.pk)[0].prompt
    assert any("prompts of 3 cases" in note for note in run.source.notes)


# What cannot be done


def test_nothing_is_decoded_or_scored_again_for_a_log() -> None:
    run = logs.stored(logs.log())
    with pytest.raises(InvalidInput) as refused:
        create_run(suite="colours", endpoint=run.endpoint.slug, profile="imported")
    assert set(refused.value.fields) == {"suite", "endpoint", "profile"}
    with pytest.raises(Conflict, match="read from a log"):
        add_repeats(run_id=run.pk, n=1)
    with pytest.raises(Conflict, match="read from a log"):
        create_replay(run_id=run.pk, case_id="sky")
    with pytest.raises(InvalidInput):
        rescore_run(run_id=run.pk, scorer={"kind": "recorded", "source": "me"})
    with pytest.raises(InvalidInput) as refused:
        build.endpoint("mine", engine="imported")
    assert list(refused.value.fields) == ["engine"]
    with pytest.raises(InvalidInput):
        create_profile(slug="mine", title="", settings=run.profile.settings)


def test_no_worker_and_no_pool_seems_to_be_there() -> None:
    logs.stored(logs.log())
    assert worker_rows() == ()
    assert "imports" not in metrics().pools
    assert metrics().n_engine_processes == 0


# What may be compared


def test_a_stack_that_no_log_names_is_equal_to_nothing() -> None:
    one, two = (logs.stored(logs.served(logs.log(), logs.UNKNOWN), name) for name in ("one", "two"))
    assert one.bucket != two.bucket
    compared = compare(baseline=one.pk, candidate=two.pk)
    assert codes(compared) == ["unknown_stack"]
    assert "unknown_stack" in [warning.code for warning in run_report(one.pk).warnings]


def test_two_backends_in_one_log_are_two_buckets() -> None:
    mixed = [logs.response("sky"), logs.response("sea"), logs.response("sun", served_by=logs.BFLOAT16)]
    run, other = logs.stored(logs.log(*mixed)), logs.stored(logs.log(), "two")
    assert run_report(run.pk).n_buckets == 2
    assert codes(compare(baseline=other.pk, candidate=run.pk)) == ["mixed_fingerprint"]


def test_buckets_of_one_side_have_the_names_that_pages_show() -> None:
    """A log that names the model too: what is compared is the stack without it."""
    one, other = (replace(served, model="paint-1b-0324") for served in (logs.FLOAT32, logs.BFLOAT16))
    run = logs.stored(
        logs.log(
            *(logs.response(case, served_by=one) for case in logs.CASES[:2]), logs.response("sun", served_by=other)
        )
    )
    report = comparison_report(compare(baseline=logs.stored(logs.log(), "two").pk, candidate=run.pk).pk)
    [block] = report.blocks
    names = [bucket.backend for bucket in report.sides.candidate.buckets]
    assert len(set(names)) == 2
    assert all(f"backend {name} (batching unknown)" in block.text for name in names)


def test_a_changed_backend_is_the_cause_and_a_last_decimal_is_none() -> None:
    baseline = logs.stored(logs.log(*(logs.response(case) for case in logs.CASES)))
    moved = [
        logs.response("sky", positions=logs.positions("it", " is", " blue", shift=5e-5)),
        logs.response("sea", positions=logs.positions("it", " is", " blue", shift=5e-3)),
        logs.response("sun", 1, "it", " is", " red", score=0.0),
    ]
    candidate = logs.stored(logs.served(logs.log(*moved), logs.BFLOAT16), "two")
    compared = compare(baseline=baseline.pk, candidate=candidate.pk)
    assert causes(compared) == {"identical": 1, "backend_changed": 2}
    flipped = DivergenceRecord.objects.get(comparison=compared, flip_position__isnull=False)
    assert (flipped.case_index, flipped.flip_position, flipped.evidence["is_approximate"]) == (2, 2, False)
    for case, kind in zip(logs.CASES, ("identical", "drift_only", "flipped"), strict=True):
        pair = trace_pair(baseline.pk, candidate.pk, case_id=case, repeats=(1, 1))
        assert kind == ("flipped" if pair.has_flip else "identical" if pair.drift_onset is None else "drift_only")


@pytest.mark.nightly
@pytest.mark.parametrize("has_tokens", [False, True])
def test_without_tokens_texts_are_compared_and_nothing_is_said_of_numbers(has_tokens: bool) -> None:
    answers = logs.log(*(logs.response(case) for case in logs.CASES))
    baseline = logs.stored(answers if has_tokens else logs.without_tokens(answers))
    other = [logs.response("sky"), logs.response("sea"), logs.response("sun", 1, "it", " is", " red")]
    candidate = logs.stored(logs.without_tokens(logs.log(*other)), "two")
    compared = compare(baseline=baseline.pk, candidate=candidate.pk)
    assert (compared.summary["counts"]["identical"], compared.summary["counts"]["text_only"]) == (2, 1)
    parted = DivergenceRecord.objects.get(comparison=compared, case_index=2)
    assert (parted.cause, parted.evidence["reason"], parted.evidence["text_position"]) == ("unknown", "no_logprobs", 6)
    page = trace_pair(baseline.pk, candidate.pk, case_id="sun", repeats=(1, 1))
    assert (page.drift_onset, page.flip_position, page.text_position) == (None, None, 6)
    report = response_page(candidate.pk, repeat=1, case_id="sun")
    assert report.trace is None
    assert "text_only" in [warning.code for warning in run_report(candidate.pk).warnings]
    with pytest.raises(NotFound, match="a log without tokens"):
        show_trace(*stored_trace(candidate.pk, repeat=1, case_id="sun"))


def test_tokens_that_do_not_spell_the_answer_are_shown_and_never_measured() -> None:
    odd = [logs.response(case, trace_reason="spelled_otherwise") for case in logs.CASES]
    baseline = logs.stored(logs.log(*(logs.response(case) for case in logs.CASES)))
    candidate = logs.stored(logs.log(*odd), "two")
    compared = compare(baseline=baseline.pk, candidate=candidate.pk)
    assert compared.summary["counts"]["identical"] == 3
    assert compared.summary["computation"]["answer"] == "unknown"
    page = response_page(candidate.pk, repeat=1, case_id="sky")
    assert page.trace is not None
    assert (page.trace.n, page.response.trace_reason) == (4, "spelled_otherwise")
    assert response_page(baseline.pk, repeat=1, case_id="sky").response.trace_reason is None
    warning = next(each for each in run_report(candidate.pk).warnings if each.code == "text_only")
    assert warning.text.startswith("3 of 3 responses: The tokens do not spell the answer.")
    assert not ResponseRecord.objects.filter(repeat__run=candidate).exclude(trace_block=None).exists()


def test_equal_numbers_of_two_models_tokens_are_not_equal_tokens() -> None:
    red = [logs.response(case, 1, "red", positions=logs.positions("red")) for case in logs.CASES]
    blue = [logs.response(case, 1, "sea", positions=logs.positions("sea")) for case in logs.CASES]
    runs = [logs.stored(logs.log(*given, model=model), model) for model, given in (("lab/one", red), ("lab/two", blue))]
    digests = [
        set(ResponseRecord.objects.filter(repeat__run=run).values_list("trace_digest", flat=True)) for run in runs
    ]
    compared = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    assert digests[0] != digests[1] or compared.summary["counts"]["identical"] == 0
    assert compared.summary["counts"]["flipped"] == 3


def drawn_log(**sampling: Any) -> LoggedRun:
    """A log in which every answer chose the less likely word once."""
    listed = ((b"red", -0.4), (b"sea", -1.5))
    positions = LoggedPositions.from_positions([LoggedPosition(b"sea", -1.5, listed)])
    given = (logs.response(case, 1, "sea", positions=positions) for case in logs.CASES)
    return logs.log(*given, sampling={"temperature": 0, **sampling})


def test_a_log_whose_tokens_contradict_its_temperature_is_judged_as_sampled() -> None:
    run = logs.stored(drawn_log())
    assert (run_report(run.pk).draws.temperature, draws_of(run).may_sample) == (None, True)
    [warning] = [each for each in run_report(run.pk).warnings if each.code == "not_greedy"]
    assert "3 of 3 answers" in warning.text
    assert dict(describe_course(run_report(run.pk)))["Sent"].startswith("As in the log. The answers show")
    forced = logs.stored(drawn_log(tool_choice="required"), "two")
    assert "not_greedy" not in {each.code for each in run_report(forced.pk).warnings}


def test_a_constrained_log_says_so() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "colour"}}
    logged = logs.log(sampling={"temperature": 0, "response_format": schema})
    constrained = logs.stored(logged)
    assert request_settings(constrained).is_adjusted
    assert (request_settings(constrained).constraint or "").startswith("response_format ")
    free = logs.log(sampling={"temperature": 0, "response_format": {"type": "text"}, "tool_choice": "auto"})
    unbound = logs.stored(free, "two")
    assert not request_settings(unbound).is_adjusted
    said = [logs.response(case, 1, "it", " is", " a", " sea") for case in logs.CASES]
    forced = logs.stored(logs.log(*said, sampling={"temperature": 0, "tool_choice": "required"}), "three")
    assert request_settings(forced).constraint == "tool_choice required"
    assert set(causes(compare(baseline=unbound.pk, candidate=forced.pk))) == {"constrained"}


def test_a_logs_names_say_nothing_beside_what_was_decoded_here() -> None:
    version = colours()
    decoded = build.finished_run(("it is blue", "it is blue", "red"), version=version)
    logged = logs.stored(logs.log(*(logs.response(case) for case in logs.CASES)), suite="colours")
    compared = compare(baseline=decoded.pk, candidate=logged.pk)
    assert codes(compared) == ["params_changed", "batch_class", "unknown_stack"]
    assert not {"model_changed", "backend_changed"} & set(causes(compared))


def test_what_was_not_answered_cleanly_is_told() -> None:
    flagged = [logs.response("sky", flags=("cached",)), logs.response("sea", flags=("cached", "retried"))]
    run = logs.stored(logs.log(*flagged, logs.response("sun")))
    warning = next(each for each in run_report(run.pk).warnings if each.code == "unclean_responses")
    assert warning.text.startswith("Of 3 responses, 2 came from a cache, 1 came after a retry.")


def test_two_logs_of_one_stack_can_be_released_and_one_be_a_baseline() -> None:
    person = build.user(role="admin")
    runs = [logs.stored(logs.log(), name) for name in ("one", "two")]
    set_baseline(suite="colours", run=runs[0].pk, reason="the first", user=person)
    gate = {"suite": "colours", "candidate": runs[1].pk, "baseline": "current"}
    release = create_release(gates=[gate], user=person)
    document = release_report(release.pk)
    assert document.gates[0].baseline.run_id == runs[0].pk
    assert release.verdict is not None
    assert "imported" in [warning["code"] for warning in release.verdict.document["warnings"]]


def test_an_imported_run_leaves_as_an_archive_that_can_be_read(transactional_db: None) -> None:
    mixed = [logs.response("sky"), logs.response("sea", positions=None), logs.response("sun", error="HTTP 500")]
    run = logs.stored(logs.log(*mixed))
    archive = RunArchive(io.BytesIO(b"".join(exports.run_archive(run.pk))))
    archive.check()
    traces = [archive.trace(response) for response in archive.responses()]
    assert [None if trace is None else len(trace) for trace in traces] == [None, 4, None]


# Tokens


def test_half_a_character_has_no_bytes_and_is_seen_all_the_same() -> None:
    words = Words()
    halves = (b"", b"", "🎨".encode(), b"<|im_end|>")
    pieces = LoggedPositions.from_positions(LoggedPosition(token, -0.5) for token in halves)
    found = words.trace(logs.response("sky", text="🎨", positions=pieces))
    assert found is not None
    row = words.store()
    assert row is not None
    assert Vocabulary.unpack(bytes(row.data)).draw(found.token_ids.tolist()) == [
        "⟨token 0⟩",
        "⟨token 0⟩",
        "🎨",
        "⟨end⟩",
    ]


# The real logs


@pytest.mark.nightly
def test_two_real_inspect_logs_part_where_they_are_known_to() -> None:
    baseline, candidate = (
        import_of(sample("inspect", name))[1][0] for name in ("fp32_baseline.eval", "bf16_candidate.eval")
    )
    compared = compare(baseline=baseline.pk, candidate=candidate.pk)
    counts, score = compared.summary["counts"], compared.summary["score"]
    assert (counts["n_pairs"], counts["flipped"], counts["score_changed"]) == (12, 9, 0)
    assert (score["baseline"], score["candidate"]) == (50.0, 50.0)
    assert codes(compared) == ["rebaseline"]
    assert causes(compared) == {"backend_changed": 12}
    ids = dict(baseline.suite_version.cases.values_list("index", "case_id"))
    flips = Counter(
        (ids[index], position)
        for index, position in DivergenceRecord.objects.filter(
            comparison=compared, flip_position__isnull=False
        ).values_list("case_index", "flip_position")
    )
    assert flips == {("fact-004", 8): 3, ("fact-005", 26): 3, ("fact-010", 4): 3}
    within = compare(baseline=candidate.pk, candidate=candidate.pk, repeats=(1, 3))
    assert within.summary["counts"]["identical"] == 4


@pytest.mark.nightly
def test_raw_completions_without_scores_are_compared_by_their_tokens() -> None:
    baseline = import_of(sample("openai_chat", "chat_fp32.jsonl"))[1][0]
    slug = baseline.suite_version.suite.slug
    candidate = import_of(sample("openai_chat", "chat_bf16_conc8.jsonl"), suite=slug)[1][0]
    counts = compare(baseline=baseline.pk, candidate=candidate.pk).summary["counts"]
    assert (counts["n_pairs"], counts["flipped"]) == (4, 3)
