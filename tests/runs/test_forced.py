"""Forced scorings: what may be asked for, which tokens are given, what is stored, and that nothing else sees it."""

from typing import Any

import pytest

from evalboard.core.errors import Conflict, InvalidInput, LeaseLost, NotFound, ProfileRefused
from evalboard.core.trace import make_trace, pack_vocabulary
from runs.catalogue import create_endpoint
from runs.compare import compare
from runs.forced import (
    FORCED,
    AnswerToForce,
    create_forced,
    create_forced_pair,
    finish_forced,
    give_tokens,
    next_answers,
    record_forced,
    verify_scoring,
)
from runs.forced import read as selectors
from runs.models import (
    ForcedAnswerRecord,
    ForcedScoringRecord,
    ReplayRecord,
    ResponseRecord,
    RunRecord,
    TraceBlock,
    VocabularyRecord,
)
from runs.run import delete_run, run_report
from tests import build, forced
from tests.casts import cast

pytestmark = pytest.mark.django_db

TEXTS = ["blue", "red", "blue"]


@cast
def run() -> RunRecord:
    made = build.finished_run(TEXTS, TEXTS)
    build.endpoint("other", dtype="bfloat16")
    return made


def ask(run: RunRecord, **asked: Any) -> ForcedScoringRecord:
    return create_forced(run_id=run.pk, **{"endpoint": "other", **asked})


def test_equal_answers_of_a_case_are_scored_once(run: RunRecord) -> None:
    assert ResponseRecord.objects.count() == 6
    cost = selectors.forced_cost(run.pk)
    scoring = ask(run)
    assert (cost.n_answers, scoring.n_answers, scoring.repeats) == (3, 3, [1, 2])
    assert (
        cost.n_tokens == scoring.n_tokens == sum(response.n_tokens for response in run.repeats.first().responses.all())
    )
    answers = next_answers(scoring.pk)
    assert [answer.case_index for answer in answers] == [0, 1, 2]
    assert {answer.repeat_id for answer in answers} == {run.repeats.get(index=1).pk}


def test_answers_that_differ_between_repeats_are_each_scored(db: None) -> None:
    build.endpoint("other")
    run = build.finished_run(TEXTS, ["blue", "blue", "blue"])
    assert ask(run).n_answers == 4
    assert ask(run, repeats=[2]).n_answers == 3
    assert ask(run, cases=["sea"]).n_answers == 2
    assert ask(run, tag="tag-1").n_answers == 2


def test_missing_responses_are_not_scored(db: None) -> None:
    build.endpoint("other")
    run = build.finished_run(["blue", None, "blue"])
    assert [each.case_index for each in next_answers(ask(run).pk)] == [0, 2]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"endpoint": None}, "endpoint"),
        ({"as_run": 1}, "endpoint"),
        ({"cases": ["sky", "moon"]}, "cases"),
        ({"tag": "moon"}, "tag"),
        ({"cases": ["sky", "sea"], "tag": "tag-0"}, "cases"),
        ({"repeats": [1, 3]}, "repeats"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(run: RunRecord, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(run, **asked)
    assert set(refused.value.fields) == {field}
    assert not ForcedScoringRecord.objects.exists()


def test_names_that_do_not_exist_are_not_found(run: RunRecord) -> None:
    for asked, words in (({"endpoint": "moon"}, "no endpoint moon"), ({"profile": "loose"}, "no profile loose")):
        with pytest.raises(NotFound, match=words):
            ask(run, **asked)
    with pytest.raises(NotFound, match="no run 999"):
        create_forced(run_id=999, endpoint="other")
    with pytest.raises(NotFound, match="no run 998"):
        ask(run, endpoint=None, as_run=998)


def test_a_server_of_others_scores_nothing(run: RunRecord, settings: Any) -> None:
    settings.ENDPOINT_HOSTS = frozenset(("*",))
    create_endpoint(slug="theirs", engine="openai", base_url="https://api.example.com/v1", model_name="gpt-paint")
    with pytest.raises(InvalidInput) as refused:
        ask(run, endpoint="theirs")
    assert refused.value.fields["endpoint"].startswith("It is external, and only your own engine can score")


def test_a_run_without_an_answer_has_nothing_to_score(db: None) -> None:
    build.endpoint("other")
    with pytest.raises(Conflict, match="no answer to score"):
        ask(build.run())


def test_a_profile_that_no_worker_can_honour_is_refused(run: RunRecord) -> None:
    build.profile("invariant")
    build.worker("cpu")
    with pytest.raises(ProfileRefused):
        ask(run, profile="invariant")


def test_the_stack_of_a_run_is_its_endpoint_profile_and_checkpoint(run: RunRecord) -> None:
    other = build.finished_run(TEXTS, on="other")
    RunRecord.objects.filter(pk=other.pk).update(model_override={"repo": "paint/2b", "revision": "abc"})
    scoring = ask(run, endpoint=None, as_run=other.pk)
    work = selectors.forced_work(scoring.pk)
    assert (scoring.endpoint.slug, scoring.profile) == ("other", other.profile)
    assert (work.serving.model_repo, work.serving.model_revision, work.serving.model_path) == ("paint/2b", "abc", "")


def test_a_scoring_is_stored_beside_the_run_and_read_by_itself(run: RunRecord) -> None:
    scores, responses = run_report(run.pk).scores, list(ResponseRecord.objects.order_by("pk").values())
    scoring = forced.scored(ask(run))
    row = selectors.forced_row(scoring.pk)
    assert (row.status, row.n_done, row.errors, row.tokens, row.n_rendered) == ("finished", 3, {}, {"same": 3}, 3)
    assert row.figures is not None
    assert (row.figures.n_responses, row.figures.n_not_top) == (3, 3)
    assert row.figures.gap_median is not None
    assert row.figures.gap_median.value == pytest.approx(0.25)
    assert row.figures.worst is not None
    assert row.figures.worst.answer in {str(pk) for pk in ForcedAnswerRecord.objects.values_list("pk", flat=True)}
    first = selectors.forced_answers(scoring.pk, limit=2)
    rest = selectors.forced_answers(scoring.pk, after=int(first[-1].id), limit=2)
    assert [each.case for each in (*first, *rest)] == ["sky", "sea", "a/b c"]
    assert selectors.forced_answers(scoring.pk, before=int(rest[0].id), limit=1) == first[1:]
    trace, words = selectors.stored_forced_trace(scoring.pk, repeat=2, case_id="a/b c")
    own = ResponseRecord.objects.get(repeat__index=2, case_index=2)
    assert (len(trace), words is not None) == (own.n_tokens, True)
    assert run_report(run.pk).scores == scores
    assert list(ResponseRecord.objects.order_by("pk").values()) == responses


@pytest.mark.nightly
def test_a_comparison_is_made_anew_when_both_stacks_have_scored_the_same_answers(run: RunRecord) -> None:
    processes = run.repeats.get(index=1).engine_processes.get(), build.process(build.bucket("bfloat16"))
    other = build.finished_run(["blue", "blue", "blue"], on="other", by=processes[1])
    by_id = {run.pk: processes[0], other.pk: processes[1]}
    before = compare(baseline=run.pk, candidate=other.pk)
    scorings = create_forced_pair(baseline_id=run.pk, candidate_id=other.pk)
    known = []
    for (_, stack), scoring in scorings.items():
        forced.scored(scoring, by=by_id[stack])
        known.append(compare(baseline=run.pk, candidate=other.pk))
    crossed, crossed_too, own, _ = known
    assert crossed.pk == crossed_too.pk == before.pk
    assert own.pk != before.pk
    assert own.summary["counts"] == before.summary["counts"]


def test_both_sides_are_scored_on_both_stacks(run: RunRecord) -> None:
    other = build.finished_run(TEXTS, on="other")
    scorings = create_forced_pair(baseline_id=run.pk, candidate_id=other.pk)
    assert {pair: (scoring.run_id, scoring.endpoint.slug) for pair, scoring in scorings.items()} == {
        (run.pk, other.pk): (run.pk, "other"),
        (other.pk, run.pk): (other.pk, "local"),
        (run.pk, run.pk): (run.pk, "local"),
        (other.pk, other.pk): (other.pk, "other"),
    }
    with pytest.raises(InvalidInput):
        create_forced_pair(baseline_id=run.pk, candidate_id=run.pk)


def test_a_scoring_of_some_repeats_is_not_one_of_the_run(run: RunRecord) -> None:
    other = build.finished_run(TEXTS, on="other")
    some = create_forced(run_id=run.pk, as_run=other.pk, repeats=[1])
    scorings = create_forced_pair(baseline_id=run.pk, candidate_id=other.pk)
    assert scorings[run.pk, other.pk] != some
    assert scorings[run.pk, other.pk].repeats == [1, 2]
    again = create_forced_pair(baseline_id=run.pk, candidate_id=other.pk)
    assert again == scorings


def test_two_runs_of_one_stack_are_scored_on_it_once_each(run: RunRecord) -> None:
    other = build.finished_run(TEXTS)
    scorings = create_forced_pair(baseline_id=run.pk, candidate_id=other.pk)
    assert [scoring.run_id for scoring in scorings.values()] == [run.pk, other.pk]


def test_a_block_that_is_sent_again_is_stored_once(run: RunRecord) -> None:
    scoring = ask(run)
    lease, process = forced.claimed(), build.process()
    outcomes = [forced.outcome(each, process) for each in next_answers(scoring.pk)]
    record_forced(lease=lease, outcomes=outcomes)
    record_forced(lease=lease, outcomes=outcomes)
    scoring.refresh_from_db()
    assert (scoring.n_done, ForcedAnswerRecord.objects.count(), next_answers(scoring.pk)) == (3, 3, [])


def test_whoever_lost_the_lease_stores_nothing(run: RunRecord) -> None:
    scoring = ask(run)
    lease, process = forced.claimed(), build.process()
    outcomes = [forced.outcome(each, process) for each in next_answers(scoring.pk)]
    FORCED.release(lease=lease, reason="Stopped.", may_fail=False)
    with pytest.raises(LeaseLost):
        record_forced(lease=lease, outcomes=outcomes)
    with pytest.raises(LeaseLost):
        finish_forced(lease=lease)
    assert not ForcedAnswerRecord.objects.exists()


def test_traces_of_two_buckets_are_never_of_one_scoring(run: RunRecord) -> None:
    scoring = ask(run)
    lease = forced.claimed()
    one, other = build.process(build.bucket("bfloat16")), build.process(build.bucket("float16"))
    first, *rest = next_answers(scoring.pk)
    record_forced(lease=lease, outcomes=[forced.outcome(first, one)])
    with pytest.raises(ValueError, match="cannot be of one scoring"):
        record_forced(lease=lease, outcomes=[forced.outcome(each, other) for each in rest])
    scoring.refresh_from_db()
    assert (scoring.bucket, scoring.n_done) == (one.bucket, 1)


def test_an_answer_that_failed_has_its_error_and_the_others_their_figures(run: RunRecord) -> None:
    row = selectors.forced_row(forced.scored(ask(run), dies_on={1}).pk)
    assert (row.status, row.errors, row.tokens) == ("finished", {"engine_error": 1}, {"same": 2})
    answers = selectors.forced_answers(int(row.id), limit=9)
    assert [each.error and each.error.code for each in answers] == [None, "engine_error", None]
    with pytest.raises(NotFound, match=r"could not be scored \(engine_error\)"):
        selectors.stored_forced_trace(int(row.id), repeat=1, case_id="sea")


def test_no_number_is_taken_over_the_answers_of_two_buckets(db: None) -> None:
    build.endpoint("other", dtype="bfloat16")
    run = build.finished_run(TEXTS, ["blue", "blue", "blue"])
    rerouted = build.process(build.bucket("float16"))
    ResponseRecord.objects.filter(repeat__run=run, repeat__index=2).update(engine_process=rerouted)
    row = selectors.forced_row(forced.scored(ask(run)).pk)
    assert (row.status, row.figures, row.tokens) == ("finished", None, {"same": 4})
    assert "Several buckets gave these answers" in " ".join(row.reading)
    assert [(each.bucket, each.figures.n_responses) for each in row.by_bucket] == [
        (str(run.bucket_id), 3),
        (str(rerouted.bucket_id), 3),
    ], "of four answers, those that both gave alike count for both"
    assert all(each.figures is not None for each in selectors.forced_answers(int(row.id), limit=9))
    with pytest.raises(Conflict, match="Several buckets gave the answers"):
        verify_scoring(int(row.id), control=int(row.id), numerics=[int(row.id)])
    assert selectors.forced_row(forced.scored(ask(run, repeats=[1])).pk).figures is not None


def test_a_scoring_without_any_trace_has_failed(run: RunRecord) -> None:
    row = selectors.forced_row(forced.scored(ask(run), dies_on={0, 1, 2}).pk)
    assert (row.status, row.error, row.figures, row.reading) == ("failed", "It died.", None, ())


def test_a_run_is_deleted_with_what_was_scored_of_it(run: RunRecord) -> None:
    forced.scored(ask(run))
    delete_run(run_id=run.pk)
    assert not ForcedScoringRecord.objects.exists()
    assert not ForcedAnswerRecord.objects.exists()
    assert not TraceBlock.objects.exists()


def answer(**changes: Any) -> AnswerToForce:
    known = {
        "case_index": 0,
        "trace_digest": b"",
        "repeat_id": 1,
        "messages": [],
        "tools": None,
        "trace": make_trace([1, 2], [-0.1, -0.2], [[], []], [3, 4]),
        "text": "blue red",
        "is_apart": False,
        "vocabulary_id": None,
    }
    return AnswerToForce(**{**known, **changes})


def vocabulary(*tokens: bytes, digest: str) -> int:
    data = pack_vocabulary(tokens)
    return VocabularyRecord.objects.create(digest=digest, n_tokens=len(tokens), data=data).pk


def test_ids_are_given_where_they_are_the_target_s() -> None:
    ours = vocabulary(b"<end>", b"blue", b" red", digest="a")
    renamed = vocabulary(b"<end>", b"blue", b" red", digest="b")
    for target in (ours, renamed):
        given = give_tokens(answer(vocabulary_id=ours), vocabulary_id=target)
        assert given is not None
        assert (given.kind, given.prompt_token_ids, given.answer_token_ids) == ("same", [3, 4], [1, 2])


def test_tokens_are_found_by_their_bytes_where_ids_are_others() -> None:
    logged, target = vocabulary(b"<x>", b"blue", b" red", digest="a"), vocabulary(b" red", b"?", b"blue", digest="b")
    given = give_tokens(answer(vocabulary_id=logged), vocabulary_id=target)
    assert given is not None
    assert (given.kind, given.prompt_token_ids, given.answer_token_ids) == ("by_bytes", None, [2, 0])


@pytest.mark.parametrize("target", [(b"blue", b"re"), (b"blue", b" red", b" red")])
def test_a_text_is_given_where_a_token_is_not_the_target_s_or_several(target: tuple[bytes, ...]) -> None:
    logged, other = vocabulary(b"<x>", b"blue", b" red", digest="a"), vocabulary(*target, digest="b")
    given = give_tokens(answer(vocabulary_id=logged), vocabulary_id=other)
    assert given is not None
    assert (given.kind, given.answer_token_ids, given.text) == ("retokenised", None, "blue red")


def test_an_answer_without_tokens_is_its_text_unless_its_thinking_stands_apart() -> None:
    target = vocabulary(b"blue", digest="b")
    given = give_tokens(answer(trace=None), vocabulary_id=target)
    assert given is not None
    assert given.kind == "retokenised"
    assert give_tokens(answer(trace=None, is_apart=True), vocabulary_id=target) is None


def test_a_retokenised_answer_has_no_gap_and_still_a_deficit(run: RunRecord) -> None:
    ResponseRecord.objects.update(trace_block=None, trace_slot=None)
    row = selectors.forced_row(forced.scored(ask(run)).pk)
    assert row.tokens == {"retokenised": 3}
    assert row.figures is not None
    assert (row.figures.n_compared, row.figures.gap_median, row.figures.n_not_top) == (0, None, 3)
    assert row.reading[0].startswith("3 of ")
    assert row.reading[1].startswith("3 answers are retokenised: ")


def test_replays_and_scorings_are_queues_of_their_own(run: RunRecord) -> None:
    ask(run)
    assert not ReplayRecord.objects.exists()
    assert [each.id for each in selectors.forced_rows(run.pk, limit=5)] == [str(ForcedScoringRecord.objects.get().pk)]
