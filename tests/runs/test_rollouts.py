"""Rollouts as a run: their tokens by id, and what the trainer gave them as a forced scoring that no engine made."""

from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.forced import check_on_policy
from evalboard.core.rollouts import parse_rollouts
from evalboard.importers.files import LogFile
from runs.forced import answers_elsewhere, create_forced, read, reported_scoring, verify_scoring
from runs.imports import import_logs
from runs.models import EndpointRecord, ForcedScoringRecord, ProfileRecord, RunRecord, TraceBlock
from runs.run import delete_run, response_page, run_report, stored_trace
from tests import build, forced, rollouts

pytestmark = pytest.mark.django_db
PLANTED = (3, 17)


def imported(folder: Path, lines: list[Any], *, name: str = "step-12.jsonl", suite: str | None = None) -> RunRecord:
    path = folder / name
    path.write_bytes(rollouts.content(lines))
    [run] = import_logs(files=[LogFile(name, path)], format="auto", suite=suite, user=None)[1]
    return run


def scoring_of(run: RunRecord) -> Any:
    scoring = reported_scoring(run.pk)
    assert scoring is not None
    return scoring


def test_the_trainer_s_logprobs_are_a_forced_scoring_without_a_stack(tmp_path: Path) -> None:
    run = imported(tmp_path, rollouts.rows(planted=PLANTED))
    scoring = scoring_of(run)
    assert (scoring.is_reported, scoring.endpoint, scoring.profile, scoring.bucket) == (True, None, None, None)
    assert (scoring.status, scoring.n_answers, scoring.n_done, scoring.n_tokens) == ("finished", 6, 6, 180)
    assert (scoring.is_sampled, scoring.are_draws, scoring.tokens) == (True, True, {"same": 6})
    assert scoring.reading[0].startswith("Too few tokens")
    assert "no engine here scored anything" in scoring.reading[-1]
    assert scoring.figures.worst.log_ratio == -2.5
    [worst, *_] = read.worst_answers(int(scoring.id), limit=9)
    assert (worst.case, worst.repeat, worst.figures.worst_at) == ("roll-3", 1, 17)
    assert (worst.id, worst.figures.worst_at) == (scoring.figures.worst.answer, scoring.figures.worst.position)


@pytest.mark.nightly
def test_answers_that_are_known_by_ids_alone_are_not_called_empty(tmp_path: Path) -> None:
    report = run_report(imported(tmp_path, rollouts.rows()).pk)
    assert report.endings == {}
    assert "ended_otherwise" not in {warning.code for warning in report.warnings}


def test_the_figures_are_those_of_the_check_without_a_server(tmp_path: Path) -> None:
    lines = rollouts.rows(planted=PLANTED)
    lines[0]["loss_mask"] = [1] * 10 + [0] * 5 + [1] * 15  # a tool's answer in the middle
    lines[3]["loss_mask"] = [1, 0, 0] + [1] * 27
    scoring = scoring_of(imported(tmp_path, lines))
    check = check_on_policy(parse_rollouts(rollouts.content(lines).decode().splitlines(), field="ROLLOUTS"))
    for name in ("n_positions", "n_compared", "is_identical"):
        assert getattr(scoring.figures, name) == getattr(check.figures, name), name
    for name in ("kl_k1", "kl_k3", "gap_mean", "beyond_clip", "weight_ess"):
        ours, theirs = getattr(scoring.figures, name), getattr(check.figures, name)
        assert (ours.value, ours.low, ours.high) == (theirs.value, theirs.low, theirs.high), name
    assert scoring.figures.worst.position == 17


@pytest.mark.nightly
def test_equal_bits_are_told_from_what_a_trace_would_round_away(tmp_path: Path) -> None:
    same = scoring_of(imported(tmp_path, rollouts.rows()))
    assert same.figures.is_identical
    assert same.reading[0].startswith("Bit-identical: training is on-policy.")
    lines = rollouts.rows()
    lines[2]["trainer_logprobs"][5] += 1e-13
    assert not scoring_of(imported(tmp_path, lines, name="other.jsonl")).figures.is_identical


def test_equal_answers_are_two_cases_where_their_trainer_is_of_two_minds(tmp_path: Path) -> None:
    one, other = rollouts.rows(2)
    other |= {name: one[name] for name in ("prompt_token_ids", "token_ids", "logprobs")}
    other["trainer_logprobs"] = [value - 1.0 for value in one["trainer_logprobs"]]
    answers = read.forced_answers(int(scoring_of(imported(tmp_path, [one, other])).id), limit=9)
    assert [(each.case, each.figures and each.figures.worst_log_ratio) for each in answers] == [
        ("roll-0", 0.0),
        ("roll-1", -1.0),
    ]


def test_tokens_are_those_of_the_file_and_shown_by_their_ids(tmp_path: Path) -> None:
    lines = rollouts.rows(planted=PLANTED)
    run = imported(tmp_path, lines)
    trace, words = stored_trace(run.pk, repeat=1, case_id="roll-3")
    assert (trace.token_ids.tolist(), trace.logprobs.tolist(), words) == (
        lines[3]["token_ids"],
        lines[3]["logprobs"],
        None,
    )
    forced, _ = read.stored_forced_trace(int(scoring_of(run).id), repeat=1, case_id="roll-3")
    assert forced.logprobs.tolist() == lines[3]["trainer_logprobs"]
    page = response_page(run.pk, repeat=1, case_id="roll-3", at=17)
    assert page.messages[0]["content"] == "Token ids: 7 8 3"
    assert page.trace is not None
    assert page.trace.selected.drawn == f"⟨token {lines[3]['token_ids'][17]}⟩"


@pytest.mark.nightly
def test_one_answer_says_where_its_trainer_is_off(tmp_path: Path) -> None:
    run = imported(tmp_path, rollouts.rows(planted=PLANTED))
    [trainer] = answers_elsewhere(run.pk, 1, "roll-3")
    assert [mark.position for mark in trainer.marks] == [17]
    assert (trainer.log_ratio(17), trainer.log_ratio(16)) == (-2.5, 0.0)
    [same] = answers_elsewhere(run.pk, 1, "roll-2")
    assert same.marks == ()
    [small] = answers_elsewhere(imported(tmp_path, rollouts.rows(planted=PLANTED, by=0.125), name="b").pk, 1, "roll-3")
    assert [mark.position for mark in small.marks] == [17], "within the clip range the furthest is marked"


def test_no_suite_s_scorer_reads_rollouts(tmp_path: Path) -> None:
    build.suite()
    with pytest.raises(InvalidInput) as refused:
        imported(tmp_path, rollouts.rows(), suite="colours")
    assert "no text, which no suite" in refused.value.fields["suite"]
    assert not RunRecord.objects.exists()


def test_no_note_speaks_of_a_scorer_to_come(tmp_path: Path) -> None:
    notes = " ".join(imported(tmp_path, rollouts.rows()).source.notes)
    assert "the run has none and no scorer can give it any" in notes
    assert "until it is scored" not in notes


def test_rollouts_without_a_trainer_are_a_run_alone(tmp_path: Path) -> None:
    lines = [{name: value for name, value in row.items() if name != "trainer_logprobs"} for row in rollouts.rows()]
    run = imported(tmp_path, lines)
    assert (run.status, reported_scoring(run.pk)) == ("finished", None)


@pytest.mark.nightly
def test_a_trainer_verifies_no_endpoint_and_goes_with_its_run(tmp_path: Path) -> None:
    run = imported(tmp_path, rollouts.rows())
    scoring = int(scoring_of(run).id)
    with pytest.raises(Conflict, match="came from a trainer"):
        verify_scoring(scoring, control=scoring, numerics=[scoring])
    delete_run(run_id=run.pk)
    assert not ForcedScoringRecord.objects.exists()
    assert not TraceBlock.objects.exists()


def test_a_row_has_a_stack_or_is_a_trainer_s(tmp_path: Path) -> None:
    run = imported(tmp_path, rollouts.rows())
    with pytest.raises(IntegrityError), transaction.atomic():
        ForcedScoringRecord.objects.filter(run=run).update(endpoint=EndpointRecord.objects.first(), profile=None)
    assert ProfileRecord.objects.exists()


@pytest.mark.nightly
def test_an_engine_of_ours_takes_the_trainer_s_place(tmp_path: Path) -> None:
    known = {"prompt_token_ids": [1, 2]}  # this engine has the tokens 0 to 5
    lines = [row | known | {"token_ids": [each % 6 for each in row["token_ids"]]} for row in rollouts.rows()]
    lines[0]["loss_mask"] = [1] * 10 + [0] * 5 + [1] * 15
    lines[1].pop("prompt_token_ids")
    lines[2]["token_ids"][3] = 499
    run = imported(tmp_path, lines)
    build.endpoint("ours")
    build.profile("pinned")
    row = read.forced_row(forced.scored(create_forced(run_id=run.pk, endpoint="ours"), other_at=12).pk)
    assert (row.is_reported, row.tokens, row.errors, row.n_rendered) == (False, {"as_given": 4}, {"not_rebuilt": 2}, 0)
    assert row.are_draws, "rollouts are drawn, whether their file says so or not"
    assert row.figures is not None
    assert (row.figures.n_ranked, row.figures.n_not_top) == (4 * 30 - 5, 3), "a tool’s token is nobody’s choice"
    assert "which does not say that they are those of this tokenizer" in " ".join(row.reading)
    assert reported_scoring(run.pk) is not None
