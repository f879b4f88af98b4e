"""Read a run's labels, what to label next, and what labels show of its scorers."""

from typing import Any

import numpy as np
from django.urls import reverse
from numpy.typing import NDArray

from evalboard.contract.base import finite
from evalboard.contract.labels import AnswerToLabel, LabelledAnswer, RunLabels, ScorerLabels
from evalboard.contract.run import ScorerOfRun
from evalboard.core.stats import agreement, corrected_rate
from evalboard.path_converters import reverse_case
from evalboard.wording.scorers import name_scorer
from runs import acts
from runs.labels.answers import RunAnswers, case_rows, load_run, read_answers
from runs.models import ResponseRecord, Scorer

PAGE = 20  # answers that a person labels at a time


def run_labels(run_id: int) -> RunLabels:
    """Compare the labels of a run's sample with each of its scorers. Raises NotFound."""
    return _compare(read_answers(load_run(run_id)))


def _compare(answers: RunAnswers) -> RunLabels:
    run = answers.run
    scores = answers.read_scores() if answers.n_sampled else {}
    scorers = Scorer.objects.in_bulk(scores)
    own = run.suite_version.scorer_id
    return RunLabels(
        run=str(run.pk),
        n_answers=len(answers.keys),
        n_labelled=int((answers.n_people > 0).sum()),
        n_sampled=int(answers.is_sampled.sum()),
        n_disputed=int(answers.is_disputed.sum()),
        n_people=len(answers.people),
        scorers=tuple(_hold(answers, _named(scorers[pk], is_own=pk == own), given) for pk, given in scores.items()),
        url=reverse("run_labels", args=[run.pk]),
    )


def _named(scorer: Scorer, *, is_own: bool) -> ScorerOfRun:
    return ScorerOfRun(id=str(scorer.pk), digest=scorer.digest, name=name_scorer(scorer.spec), is_own=is_own)


def _hold(answers: RunAnswers, scorer: ScorerOfRun, judged: NDArray[np.float64]) -> ScorerLabels:
    """Compare one scorer with the sample's labels.

    A disputed answer counts half in the rate, and in no agreement.
    """
    labels = answers.labels[answers.inverse]
    labels[answers.n_sampled :] = np.nan
    settled = np.where(answers.is_disputed[answers.inverse], np.nan, labels)
    rate = None if answers.is_mixed or np.isnan(judged).all() else corrected_rate(judged, labels)
    return ScorerLabels(scorer=scorer, agreement=agreement(judged, settled), rate=rate)


def labelled_answers(run_id: int, *, user: Any) -> tuple[LabelledAnswer, ...]:
    """Return the answers of a run with a label, in the order of its sample. Raises NotFound."""
    answers = read_answers(load_run(run_id), user)
    judged = answers.read_scores().get(answers.run.suite_version.scorer_id, np.full(len(answers.inverse), np.nan))
    scores, n_responses = answers.average(judged), np.bincount(answers.inverse, minlength=len(answers.keys))
    places = {index: answers.place(index) for index in answers.in_order(answers.n_people > 0)}
    cases = case_rows(answers.run, [case for _, case in places.values()])
    mine = {label.answer: label.is_right for label in answers.own}
    is_sampled = answers.is_sampled
    return tuple(
        LabelledAnswer(
            case=cases[case].case_id,
            repeat=repeat,
            n_responses=int(n_responses[index]),
            label=float(answers.labels[index]),
            n_people=int(answers.n_people[index]),
            is_disputed=bool(answers.is_disputed[index]),
            is_sampled=bool(is_sampled[index]),
            mine=mine.get(index),
            score=finite(float(scores[index])),
            url=reverse_case("response", answers.run.pk, repeat, cases[case].case_id),
        )
        for index, (repeat, case) in places.items()
    )


def next_answers(run_id: int, *, user: Any, limit: int = PAGE) -> tuple[AnswerToLabel, ...]:
    """Return the first answers of a run's random order that a person has not labelled.

    Neither people nor scores choose the next one: labels correct a scorer only where the labelled answers are a random
    sample of all. Raises NotFound, Conflict.
    """
    run = load_run(run_id)
    acts.require("label", run)
    answers = read_answers(run, user)
    is_mine = np.zeros(len(answers.keys), np.bool_)
    is_mine[[label.answer for label in answers.own]] = True
    places = [answers.place(index) for index in answers.in_order(~is_mine)[:limit]]
    cases = case_rows(run, [case for _, case in places])
    given = ResponseRecord.objects.filter(
        repeat__run=run, repeat__index__in={repeat for repeat, _ in places}, case_index__in=cases
    )
    texts = {(repeat, case): text for repeat, case, text in given.values_list("repeat__index", "case_index", "text")}
    return tuple(
        AnswerToLabel(
            case=cases[case].case_id,
            repeat=repeat,
            messages=tuple(cases[case].content["messages"]),
            target=cases[case].content["target"],
            answer=texts[repeat, case],
            url=reverse_case("response", run.pk, repeat, cases[case].case_id),
        )
        for repeat, case in places
    )


def count_own_labels(run_id: int, *, user: Any) -> int:
    """Count the answers of a run that a person labelled."""
    return len(read_answers(load_run(run_id), user).own)
