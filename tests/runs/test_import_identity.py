"""One eval is one run, in whatever form and however often its log comes; suites are found by what their cases hold."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.errors import Conflict, InvalidInput
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from evalboard.logged.suites import NO_LIMIT, NO_PROMPTS, tool_of
from runs.baselines import set_baseline
from runs.compare import compare
from runs.imports import import_logs
from runs.imports.identity import content_of, ids_of, make_room
from runs.models import ImportRecord, ResponseRecord, RunRecord, Suite
from runs.release import create_release
from runs.run import run_report
from runs.suites import push_suite
from tests import build
from tests.build import comparison_report
from tests.importers import batch_log, inspect_log
from tests.runs import logs

pytestmark = pytest.mark.django_db

SPACED = "eval" + " " * 500_000 + "x"
Found = tuple[ImportRecord, list[RunRecord], bool]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("eval_tool 1.2.3", "eval_tool"),
        ("eval  tool  v2", "eval  tool"),
        ("eval_tool", "eval_tool"),
        pytest.param(SPACED, SPACED, id="spaces"),  # as a log may have them: no quadratic time
    ],
)
def test_a_tool_is_known_without_its_version(tool: str, name: str) -> None:
    assert tool_of(logs.log(tool=tool)) == name


def written(folder: Path, name: str, content: bytes) -> LogFile:
    (folder / name).write_bytes(content)
    return LogFile(name, folder / name)


def as_json(folder: Path, log: dict[str, Any], name: str = "log.json") -> LogFile:
    return written(folder, name, json.dumps(log, indent=1).encode())


def as_eval(folder: Path, log: dict[str, Any], name: str = "log.eval") -> LogFile:
    return written(folder, name, inspect_log.packed(log))


def import_of(*files: LogFile, suite: str | None = None) -> Found:
    return import_logs(files=files, format="auto", suite=suite, user=None)


def capitals(*, n: int = 2, status: str = "success", score: str = "C", **about: Any) -> dict[str, Any]:
    """An Inspect log of n samples."""
    samples = [inspect_log.sample(f"c{at}", scores={"includes": {"value": score}}) for at in range(n)]
    log = inspect_log.log(*samples, status=status)
    log["eval"] |= {"task_id": "T1", **about}
    return log


def chat(folder: Path, name: str, *ids: str, text: str = "blue", **facts: Any) -> LogFile:
    lines = [
        {
            "case_id": case,
            "request": {"messages": [{"role": "user", "content": f"Which colour has {case}?"}]},
            "response": {
                **({"id": response_id} if response_id else {}),
                "model": "paint-1b",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            },
            **facts,
        }
        for case, response_id in zip(logs.CASES, ids, strict=False)
    ]
    return written(folder, name, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


# The same eval twice


@pytest.mark.nightly
def test_an_eval_in_two_file_forms_is_one_run(tmp_path: Path) -> None:
    source, (run,), is_new = import_of(as_eval(tmp_path, capitals()))
    assert is_new
    assert import_of(as_json(tmp_path, capitals())) == (source, [run], False)
    assert ImportRecord.objects.count() == RunRecord.objects.count() == 1


def test_both_forms_sent_together_are_one_run_and_the_import_says_so(tmp_path: Path) -> None:
    source, runs, is_new = import_of(as_eval(tmp_path, capitals()), as_json(tmp_path, capitals()))
    assert (is_new, runs[0] == runs[1], RunRecord.objects.count()) == (True, True, 1)
    source.refresh_from_db()
    assert f"One eval of it was imported before, as run {runs[0].pk}, and is stored once." in source.notes


@pytest.mark.nightly
def test_another_eval_of_the_same_task_with_the_same_answers_is_another_run(tmp_path: Path) -> None:
    one = import_of(as_eval(tmp_path, capitals()))[1][0]
    other = import_of(as_json(tmp_path, capitals(eval_id="E2", task_id="T2")))[1][0]
    assert one != other
    assert one.suite_version == other.suite_version


@pytest.mark.nightly
def test_a_log_that_was_read_before_its_eval_had_ended_gives_way_to_the_whole_one(tmp_path: Path) -> None:
    killed = capitals(n=1)
    del killed["status"]
    early = import_of(as_eval(tmp_path, killed, "killed.eval"))[1][0]
    assert early.status == "incomplete"
    source, (whole,), is_new = import_of(as_json(tmp_path, capitals(n=3)))
    assert (is_new, whole.status, whole.suite_version.n_cases) == (True, "finished", 3)
    told = f"Takes the place of run {early.pk}, which was read before this eval had ended and had 1 of the 3 answers"
    assert any(note.startswith(told) for note in source.notes)
    assert list(RunRecord.objects.all()) == [whole]
    assert import_of(as_eval(tmp_path, killed, "killed.eval")) == (source, [whole], False)  # the later one has it all


@pytest.mark.nightly
def test_a_retry_of_an_eval_that_broke_off_is_the_same_eval(tmp_path: Path) -> None:
    import_of(as_json(tmp_path, capitals(n=1, status="error"), "first.json"))
    _, (whole,), is_new = import_of(as_json(tmp_path, capitals(n=3, eval_id="E2"), "retry.json"))
    assert is_new
    assert list(RunRecord.objects.all()) == [whole]


def test_what_a_release_rests_on_is_not_replaced(tmp_path: Path) -> None:
    early = import_of(as_json(tmp_path, capitals(n=1, status="started"), "early.json"))[1][0]
    other = import_of(as_json(tmp_path, capitals(n=1, eval_id="E2", task_id="T2"), "other.json"))[1][0]
    suite = early.suite_version.suite.slug
    release = create_release(gates=[{"suite": suite, "baseline": other.pk, "candidate": early.pk}])
    with pytest.raises(Conflict) as refused:
        import_of(as_json(tmp_path, capitals(n=3), "late.json"))
    assert f"Run {early.pk} is of the same eval, imported before it had ended" in refused.value.detail
    assert f"Release {release.pk} uses run {early.pk}; it is kept. Nothing is stored." in refused.value.detail
    assert ImportRecord.objects.count() == 2


def test_the_same_eval_with_other_scores_is_refused_with_what_to_do(tmp_path: Path) -> None:
    run = import_of(as_json(tmp_path, capitals(), "one.json"))[1][0]
    with pytest.raises(Conflict) as refused:
        import_of(as_json(tmp_path, capitals(score="I"), "scored-again.json"))
    assert f"has other scores than this log. Nothing is stored; delete run {run.pk}" in refused.value.detail


def test_the_same_log_on_another_scale_has_other_scores(tmp_path: Path) -> None:
    files = [as_json(tmp_path, capitals(score="5"))]
    import_logs(files=files, scale="0..10", user=None)
    with pytest.raises(Conflict, match="has other scores than this log"):
        import_logs(files=files, scale="0..20", user=None)


def test_without_an_id_of_the_tools_the_answers_own_ids_tell_an_eval(tmp_path: Path) -> None:
    first = import_of(chat(tmp_path, "a.jsonl", "r1", "r2"))
    assert import_of(chat(tmp_path, "b.jsonl", "r1", "r2", note="kept elsewhere")) == (first[0], first[1], False)
    assert import_of(chat(tmp_path, "c.jsonl", "r3", "r4"))[2]


@pytest.mark.parametrize("ids", [("", ""), ("r1", "")], ids=["no ids", "one answer lacks its id"])
def test_answers_that_merely_read_alike_are_of_two_evals(tmp_path: Path, ids: tuple[str, str]) -> None:
    assert import_of(chat(tmp_path, "a.jsonl", *ids))[2]
    assert import_of(chat(tmp_path, "b.jsonl", *ids, note="of another day"))[2]
    assert RunRecord.objects.count() == 2


@pytest.mark.nightly
def test_an_eval_may_stand_in_two_suites_and_once_in_each(tmp_path: Path) -> None:
    run = import_of(as_json(tmp_path, capitals()))[1][0]
    cases = [{"id": f"c{at}", "prompt": "Capital of France?", "target": "Paris"} for at in range(2)]
    push_suite(document={"slug": "mine", "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases})
    mine = import_of(as_json(tmp_path, capitals()), suite="mine")
    assert (mine[2], mine[1][0].suite_version.suite.slug) == (True, "mine")
    assert import_of(as_eval(tmp_path, capitals()), suite="mine")[1:] == (mine[1], False)
    assert import_of(as_eval(tmp_path, capitals()), suite=run.suite_version.suite.slug)[1:] == ([run], False)


def test_of_an_eval_in_two_suites_the_newest_run_is_taken(tmp_path: Path) -> None:
    import_of(as_json(tmp_path, capitals()))
    cases = [{"id": f"c{at}", "prompt": "Capital of France?", "target": "Paris"} for at in range(2)]
    push_suite(document={"slug": "mine", "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases})
    newest = import_of(as_json(tmp_path, capitals()), suite="mine")[1]
    assert newest[0].suite_version.suite.slug == "mine"
    assert import_of(as_eval(tmp_path, capitals()))[1:] == (newest, False)


def test_a_case_that_no_log_had_yet_keeps_no_fuller_log_away(tmp_path: Path) -> None:
    cases = [{"id": f"c{at}", "prompt": "Capital of France?", "target": "Paris"} for at in range(3)]
    push_suite(document={"slug": "mine", "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases})
    import_of(as_json(tmp_path, capitals(n=1, status="started"), "early.json"), suite="mine")
    assert import_of(as_json(tmp_path, capitals(n=2)), suite="mine")[2]


def test_a_log_of_several_runs_is_no_second_one_of_a_run(tmp_path: Path) -> None:
    one, other = chat(tmp_path, "a.jsonl", "r1", "r2"), chat(tmp_path, "c.jsonl", "r3", "r4")
    run = import_of(one)[1][0]
    both = one.path.read_bytes() + other.path.read_bytes().replace(b"paint-1b", b"paint-2b")
    with pytest.raises(InvalidInput) as refused:
        import_logs(files=[written(tmp_path, "b.jsonl", both)], second_of=str(run.pk), user=None)
    assert refused.value.fields == {"second_of": "The log holds several runs; send one alone."}
    assert RunRecord.objects.count() == 1


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"r1", b"r1", "it is the log of that run"),
        (b"paint-1b", b"paint-2b", "its model is paint-2b and not paint-1b"),
        (b'"messages": [', b'"temperature": 0.5, "messages": [', "its settings are others"),
    ],
    ids=["itself", "another model", "other settings"],
)
def test_a_second_log_is_another_one_of_the_same_model_and_settings(
    tmp_path: Path, old: bytes, new: bytes, why: str
) -> None:
    one = chat(tmp_path, "a.jsonl", "r1", "r2")
    run = import_of(one)[1][0]
    lines = one.path.read_bytes() if old == new else one.path.read_bytes().replace(b"r1", b"r3").replace(old, new)
    with pytest.raises(InvalidInput, match=why):
        import_logs(files=[written(tmp_path, "b.jsonl", lines)], second_of=str(run.pk), user=None)


# Suites by what they hold


def of_tool(tool: str, *, cases: tuple[str, ...] = logs.CASES, slug: str = "colours", **changes: Any) -> LoggedRun:
    given = tuple(logs.response(case) for case in cases)
    return logs.log(*given, tool=tool, slug=slug, cases=tuple(logs.case(case) for case in cases), **changes)


def suite_of(run: RunRecord) -> str:
    return str(run.suite_version)


def test_another_tools_log_of_the_same_name_makes_no_version_of_the_suite() -> None:
    assert suite_of(logs.stored(of_tool("Inspect AI 0.3"), "one")) == "colours v1"
    other = logs.stored(of_tool("lm-evaluation-harness 0.4", cases=("rose", "moss")), "two")
    assert suite_of(other) == "colours-lm-evaluation-harness v1"
    assert Suite.objects.get(slug="colours").versions.count() == 1
    later = logs.stored(of_tool("lm-evaluation-harness 0.5", cases=("rose", "moss", "coal")), "three")
    assert suite_of(later) == "colours-lm-evaluation-harness v2"


def test_the_same_tools_task_with_other_cases_is_the_next_version() -> None:
    logs.stored(of_tool("Inspect AI 0.3"), "one")
    assert suite_of(logs.stored(of_tool("Inspect AI 0.4", cases=("sky", "moss")), "two")) == "colours v2"


def test_a_task_that_was_renamed_keeps_its_suite() -> None:
    logs.stored(of_tool("Inspect AI 0.3"), "one")
    assert suite_of(logs.stored(of_tool("Inspect AI 0.3", slug="colors"), "two")) == "colours v1"


def test_a_suite_that_people_pushed_is_found_by_its_cases_under_any_name() -> None:
    cases = [{"id": case, "prompt": f"Which colour has {case}?", "target": "it is blue"} for case in logs.CASES]
    push_suite(document={"slug": "paint", "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases})
    assert suite_of(logs.stored(of_tool("Inspect AI 0.3"), "one")) == "paint v1"
    broken_off = replace(of_tool("Inspect AI 0.3", cases=("sky",)), status="incomplete")
    assert suite_of(logs.stored(broken_off, "two")) == "colours v1"  # a part is of no suite of another name


def test_prompts_that_nobody_knows_make_no_two_suites_one() -> None:
    unknown = tuple(logs.case(case, messages=()) for case in logs.CASES)
    one, other = (logs.stored(replace(of_tool("vllm run-batch"), cases=unknown), name) for name in ("one", "two"))
    assert one.suite_version.suite != other.suite_version.suite
    named = logs.stored(of_tool("vllm run-batch"), "three", suite=other.suite_version.suite.slug)
    report = comparison_report(compare(baseline=other.pk, candidate=named.pk).pk)
    assert "prompts_unknown" in [block.code for block in report.blocks]


def test_the_order_of_a_log_makes_no_other_suite() -> None:
    ids = ("q10", "q2", "q1")
    runs = [
        logs.stored(
            logs.log(*(logs.response(case) for case in order), cases=tuple(map(logs.case, order))), "-".join(order)
        )
        for order in (ids, ids[::-1])
    ]
    assert runs[0].suite_version == runs[1].suite_version
    cases = runs[0].suite_version.cases.order_by("index")
    assert list(cases.values_list("case_id", flat=True)) == ["q1", "q2", "q10"]
    numbered = tuple(logs.case(case, index=place) for place, case in enumerate(ids))
    run = logs.stored(logs.log(*map(logs.response, ids), cases=numbered), "numbered")
    assert list(run.suite_version.cases.order_by("index").values_list("case_id", flat=True)) == list(ids)


def test_a_case_wants_as_many_answers_as_the_log_has_of_it() -> None:
    answers = [logs.response(case) for case in logs.CASES] + [logs.response("sea", repeat) for repeat in (2, 3)]
    run = logs.stored(logs.log(*answers))
    report = run_report(run.pk)
    assert (run.status, ResponseRecord.objects.filter(repeat__run=run).count()) == ("finished", 5)
    assert not ResponseRecord.objects.filter(repeat__run=run).exclude(error_code="").exists()
    assert [repeat.n_missing for repeat in report.repeats] == [0]  # the whole one; the others are of chosen cases
    assert report.points == (100.0,)
    planned = logs.stored(logs.log(*answers, n_repeats=3), "planned")
    assert ResponseRecord.objects.filter(repeat__run=planned, error_code="not_in_log").count() == 4


def test_a_log_of_one_sample_expects_one() -> None:
    logs.stored(logs.log())
    answer = logs.response("sky", error="The sample failed.", text="", positions=None)
    run = logs.stored(logs.log(answer, cases=(logs.case("sky"),), status="incomplete", n_cases=1), "two")
    assert run.suite_version.n_cases == 1


def test_a_log_with_fewer_samples_never_takes_the_place_of_a_longer_one() -> None:
    failed = [logs.response(case, error="It failed.", text="", positions=None) for case in ("sea", "sun")]
    first = logs.log(logs.response("sky"), *failed, status="incomplete", own_ids=("eval 1",))
    run = logs.stored(first)
    shorter = replace(first, responses=(logs.response("sky"),), cases=(logs.case("sky"),))
    assert make_room(shorter, run) == ""
    other = replace(first, responses=(logs.response("sky"), logs.response("sky", 2, "red")))
    with pytest.raises(Conflict, match="samples that this log lacks"):
        make_room(other, run)
    bare = replace(first, responses=tuple(replace(each, scores={}) for each in first.responses), scorers=())
    assert make_room(bare, run) == ""
    scored = (logs.response("sky", score=0.0), *failed)
    unknown = tuple(logs.case(case, messages=()) for case in logs.CASES)
    assert make_room(replace(first, responses=scored, cases=unknown), run) == ""
    lost = logs.response("sky", error="It failed.", text="", positions=None)
    assert make_room(replace(first, responses=(lost, *failed)), run) == ""
    with pytest.raises(Conflict, match="has other answers than this log"):
        make_room(replace(first, responses=(logs.response("sky", 1, "red"), *failed)), run)
    retried = replace(first, responses=(logs.response("sky"), logs.response("sea", 1, "red"), failed[1]))
    assert make_room(retried, run).endswith("had 1 of the 2 answers of this log.")


def test_an_eval_that_has_ended_takes_the_place_of_its_unended_log_though_it_answers_no_more() -> None:
    ended = logs.log(own_ids=("eval 1",))
    run = logs.stored(replace(ended, status="incomplete"))
    assert make_room(ended, run).startswith(f"Takes the place of run {run.pk}, which was read before")


def test_a_log_of_equal_answers_takes_the_place_of_one_that_had_no_prompts() -> None:
    known = logs.log(own_ids=("eval 1",))
    bare = replace(known, cases=tuple(logs.case(case, messages=()) for case in logs.CASES))
    run = logs.stored(bare)
    assert make_room(known, run) == f"Takes the place of run {run.pk}, which had no prompts."


BEGAN, ENDED = (datetime(2026, 11, 1, hour, tzinfo=UTC) for hour in (9, 10))


@pytest.mark.parametrize(
    ("first", "changes", "is_same"),
    [
        ({"own_ids": ("e1",)}, {"responses": ()}, True),
        ({"own_ids": ("e1",)}, {"model": "lab/paint-2b"}, False),
        ({"own_ids": ("e1",)}, {"tool": "other_tool 1.2.3"}, False),
        ({"own_ids": ("e1",)}, {"tool": "eval_tool 1.3.0"}, True),
        ({"started_at": BEGAN, "finished_at": ENDED}, {"slug": "colors"}, True),
        ({"started_at": BEGAN, "finished_at": ENDED}, {"finished_at": BEGAN}, False),
        ({"started_at": BEGAN, "finished_at": ENDED}, {"responses": (logs.response("sky", 1, "red"),)}, False),
    ],
    ids=["its-id", "another-model", "another-tool", "a-newer-tool", "its-times", "another-end", "other-answers"],
)
def test_an_eval_is_told_by_its_id_or_by_its_times_and_answers(first: dict, changes: dict, is_same: bool) -> None:
    one = logs.log(**first)
    assert (ids_of(one) == ids_of(replace(one, **changes))) == is_same


def test_what_failed_has_no_part_in_the_answers_ids_and_the_status_is_content() -> None:
    there = logs.response("sky", request_id="r1")
    lost = logs.response("sea", error="It failed.", text="", positions=None)
    one = logs.log(there, lost)
    assert ids_of(one) == ids_of(logs.log(there)) != []
    assert content_of(one) == content_of(replace(one, model="lab/paint-2b"))
    assert content_of(one) != content_of(replace(one, status="failed"))


# Requests of a batch that come after its results


def requests_of(folder: Path, *ids: str, name: str = "input.jsonl", **fields: Any) -> LogFile:
    body = {"model": "paint-1b", "temperature": 0, "seed": 7, "max_tokens": 24, **fields}
    lines = [
        {"custom_id": case, "body": {**body, "messages": [{"role": "user", "content": f"Which colour has {case}?"}]}}
        for case in ids
    ]
    return written(folder, name, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def results_of(folder: Path, *ids: str, name: str = "output.jsonl") -> LogFile:
    return written(folder, name, batch_log.output(dict.fromkeys(ids, "blue")))


def prompts_of(run: RunRecord) -> dict[str, str]:
    rows = run.suite_version.cases.values_list("case_id", "content__messages")
    return {case_id: messages[0]["content"] for case_id, messages in rows}


def test_requests_that_come_later_complete_the_run_of_their_results(tmp_path: Path) -> None:
    source, (run,), _ = import_of(results_of(tmp_path, "sun", "sky"))
    assert "(The imported log does not hold this prompt.)" in prompts_of(run).values()
    requests = requests_of(tmp_path, "sky", "sea", "sun", model="paint-9b")
    assert import_of(requests) == (source, [run], True)
    run.refresh_from_db()
    source.refresh_from_db()
    assert prompts_of(run) == {"sky": "Which colour has sky?", "sun": "Which colour has sun?"}
    assert run.profile.settings["sampling"].items() >= {"temperature": 0.0, "max_tokens": 24, "seed": 7}.items()
    assert {each.seed_sent for repeat in run.repeats.all() for each in repeat.responses.all()} == {7}
    assert [file["name"] for file in source.files] == ["output.jsonl", "input.jsonl"]
    assert any("asked for paint-9b; acme-7b answered" in note for note in source.notes)
    assert not any("was not given" in note or note.startswith((NO_PROMPTS, NO_LIMIT)) for note in source.notes)
    assert import_of(requests) == (source, [run], False)
    assert RunRecord.objects.count() == 1


@pytest.mark.nightly
def test_results_sent_again_with_their_requests_take_the_runs_place(tmp_path: Path) -> None:
    _, (before,), _ = import_of(results_of(tmp_path, "sky", "sun"))
    files = results_of(tmp_path, "sky", "sun"), requests_of(tmp_path, "sky", "sun", "sea")
    source, (run,), is_new = import_of(*files)
    assert (is_new, list(RunRecord.objects.all()), run.status) == (True, [run], "incomplete")
    assert prompts_of(run).keys() == {"sky", "sun", "sea"}
    assert f"Takes the place of run {before.pk}, which had no prompts." in source.notes
    assert import_of(results_of(tmp_path, "sky", "sun", name="again.jsonl"))[1:] == ([run], False)


def test_requests_that_fit_no_run_or_two_are_refused(tmp_path: Path) -> None:
    requests = requests_of(tmp_path, "sky")
    import_of(results_of(tmp_path, "sky", "sun", name="more.jsonl"))  # of a case that is not among the requests
    with pytest.raises(InvalidInput, match="no run without prompts has results of all of them"):
        import_of(requests)
    import_of(results_of(tmp_path, "sky"))
    with pytest.raises(InvalidInput, match="no run without prompts has results of all of them"):
        import_of(requests, suite="mine")
    other = written(tmp_path, "other.jsonl", results_of(tmp_path, "sky").path.read_bytes().replace(b"blue", b"grey"))
    import_of(other)
    with pytest.raises(InvalidInput, match=r"fits the runs \d+ and \d+; import the results with it"):
        import_of(requests)


@pytest.mark.nightly
def test_a_baseline_keeps_its_run_as_it_is(tmp_path: Path) -> None:
    _, (run,), _ = import_of(results_of(tmp_path, "sky"))
    set_baseline(suite=run.suite_version.suite.slug, run=run.pk, reason="first", user=build.user())
    with pytest.raises(Conflict, match="baselines; it is kept"):
        import_of(requests_of(tmp_path, "sky"))
