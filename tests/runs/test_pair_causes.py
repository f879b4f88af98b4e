"""One pair has one cause, whoever asks and whatever was asked before."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.core.errors import NotFound
from runs import selectors, services
from runs.models import Case, Comparison, EngineProcess, Run
from runs.selectors.divergence_list import DivergenceFilter
from tests import build
from tests.runs import logs
from tests.runs.test_comparisons import Answer, answers, decode, flipped, moved, near, recorded, stored

pytestmark = pytest.mark.django_db
N = 12
Said = dict[tuple[str, int, int], tuple[Any, ...]]


def measured(process: EngineProcess) -> tuple[Run, Run]:
    """The baseline's own repeats move by 0.05 nats; the candidate flips near ties by more than any floor explains."""
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    noisy = [Answer(moved(recorded(index), 0.05, seed=index)) for index in range(N)]
    theirs = [
        Answer(flipped(near(recorded(index), 8, 0.03), 8, movement=0.06, margin=0.03), "red") for index in range(N)
    ]
    theirs[3] = Answer(moved(recorded(3), 0.02))
    base = stored(version, [Answer(near(recorded(index), 8, 0.03)) for index in range(N)], noisy, by=process)
    return base, stored(version, theirs, theirs, by=process)


def mixed(process: EngineProcess) -> tuple[Run, Run]:
    """Two backends served the candidate; another's trace is missing, and one answer differs in its text alone."""
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    other = build.process(build.bucket("bfloat16"))
    theirs: list[Answer | None] = [Answer(moved(recorded(index), 0.02, seed=index)) for index in range(N)]
    theirs[0], theirs[4] = None, Answer(recorded(4), "blue ")
    theirs[5] = Answer(recorded(5), "a cat")
    run = build.run(version, repeats=2)
    decode(run, 1, theirs, [process] * 8 + [other] * 4)
    decode(run, 2, answers(N), [process] * 10 + [other] * 2)
    return stored(version, answers(N), by=process), run


def of_logs(_: EngineProcess) -> tuple[Run, Run]:
    """Two logs of two models: ids are given anew, so that equal ids and numbers may be other words."""
    one = [logs.response("sky"), logs.response("sea"), logs.response("sun", positions=None)]
    two = [
        logs.response("sky", 1, "so", " it", " is", score=0.0),
        logs.response("sea", 1, "so", " is", " blue", score=0.0),
        logs.response("sun", 1, "it", " is", " red", positions=None),
    ]
    return logs.stored(logs.log(*one)), logs.stored(logs.log(*two, model="lab/paint-2b"), "two")


@pytest.fixture
def process(db: None) -> EngineProcess:
    return build.process()


def said_of_pairs(runs: tuple[Run, Run]) -> Said:
    """What the page of each pair says; pairs without a response are not there."""
    found = {}
    cases = Case.objects.filter(suite_version__runs=runs[0].pk).values_list("case_id", flat=True)
    for case in cases:
        for repeats in ((1, 1), (1, 2), (2, 1), (2, 2)):
            try:
                report = selectors.trace_pair(runs[0].pk, runs[1].pk, case_id=case, repeats=repeats)
            except NotFound:
                continue
            found[(case, *repeats)] = (report.cause.code, report.cause.numeric, report.words)
    return found


def listed(runs: tuple[Run, Run], repeats: tuple[int, int] | None) -> Said:
    """What the list of a comparison says of each pair that it holds."""
    made = services.compare(baseline=runs[0].pk, candidate=runs[1].pk, repeats=repeats)
    assert made.status == Comparison.Status.FINISHED, made.error
    return {
        (row.case_id, row.repeat_baseline, row.repeat_candidate): (row.cause, row.numeric or None, row.words)
        for row in selectors.divergence_page(made.pk, DivergenceFilter()).rows
    }


@pytest.mark.parametrize("made", [measured, mixed, of_logs])
def test_the_order_in_which_a_pair_is_asked_for_changes_nothing(
    made: Callable[[EngineProcess], tuple[Run, Run]], process: EngineProcess
) -> None:
    runs = made(process)
    before = said_of_pairs(runs)
    assert len(set(before.values())) > 1
    asked: list[tuple[int, int] | None] = [None, (1, 1), (2, 1), (1, 2), (2, 2)]
    random.Random(7).shuffle(asked)
    n_listed = 0
    for repeats in asked:
        try:
            rows = listed(runs, repeats)
        except NotFound:
            continue  # one side has a single repeat
        assert rows.items() <= before.items()
        n_listed += len(rows)
        assert said_of_pairs(runs) == before
    assert n_listed > 2


def test_a_pair_is_judged_by_what_its_runs_repeats_measure(process: EngineProcess) -> None:
    """Both flips moved by 0.06 nats: many times the floor of float32, and nothing beside repeats that move by 0.05."""
    runs = measured(process)
    causes = {key: said[0] for key, said in said_of_pairs(runs).items()}
    assert causes["case-00", 1, 1] == "near_tie"
    assert causes["case-03", 1, 1] == "drift_only"
    quiet = stored(runs[0].suite_version, [Answer(near(recorded(index), 8, 0.03)) for index in range(N)], by=process)
    quieter = selectors.trace_pair(quiet.pk, runs[1].pk, case_id="case-00", repeats=(1, 1))
    assert (quieter.cause.code, quieter.cause.evidence["is_assumed"]) == ("larger_shift", True)


def test_a_further_repeat_makes_the_comparison_of_two_repeats_anew(process: EngineProcess) -> None:
    """It measures the noise that their pairs are judged by."""
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    ours = [Answer(near(recorded(index), 8, 0.03)) for index in range(N)]
    theirs = [Answer(flipped(answer.trace, 8, movement=0.06, margin=0.03), "red") for answer in ours]
    base, run = build.run(version, repeats=2), stored(version, theirs, by=process)
    decode(base, 1, ours, process)
    assert {said[0] for said in listed((base, run), (1, 1)).values()} == {"larger_shift"}
    decode(base, 2, [Answer(moved(recorded(index), 0.05, seed=index)) for index in range(N)], process)
    assert {said[0] for said in listed((base, run), (1, 1)).values()} == {"near_tie"}
