"""Runs that wait for a judge to score them. `runs.judging` starts the judge's own run, and ends both."""

from dataclasses import dataclass

from django.db.models import QuerySet

from evalboard.contract.judge import JudgeNoise
from evalboard.core import scoring
from evalboard.core.stats import plan_anchor_draws
from runs.models import AnchorSetRecord, JudgingRecord, RunRecord, Scorer, SuiteVersionRecord

TWICE = 2  # more judgements of the answers that show the judge's noise


@dataclass(frozen=True, slots=True)
class AnchorPlan:
    """The anchors of a suite's next judging.

    stored: None before the first judging, which chooses them among its answers, or without any. n: how many there are,
    or will be at most. n_draws: judgements of each. n_twice: answers that are judged TWICE more.
    """

    stored: AnchorSetRecord | None
    n: int
    n_draws: int
    n_twice: int


def plan_anchors(version: SuiteVersionRecord, scorer: Scorer) -> AnchorPlan:
    """Plan the anchors of the next judging by a scorer with a judge, by the noise that was measured last."""
    spec = scoring.judge_spec(scorer.spec)
    assert spec is not None  # noqa: S101  for the type checker: only plans with a judge become judgings
    whole = version.suite.anchor_sets.exclude(anchors__contains=[{"deleted": None}])  # no case of it was deleted
    stored = whole.order_by("-pk").first() if spec["anchors"] else None
    n = spec["anchors"] if stored is None else len(stored.anchors)
    measured = judgings_by_same(version, scorer).exclude(noise=None).order_by("-finished_at")
    known = measured.values_list("noise", flat=True).first()
    noise = None if known is None else JudgeNoise.from_stored(known)
    is_first = stored is None and bool(spec["anchors"])
    return AnchorPlan(stored, n, spec["anchor_draws"] or plan_anchor_draws(noise, n), 0 if is_first else spec["twice"])


def count_judgements(version: SuiteVersionRecord, n_repeats: int) -> int:
    """Return how many judgements a run of a suite with a judge takes at most."""
    plan = version.scorer.spec
    spec = scoring.judge_spec(plan) or {}
    is_default = plan["default"] is not None and plan["default"]["kind"] == scoring.JUDGE.name
    n_own = sum(own["kind"] == scoring.JUDGE.name for own in plan["cases"].values())
    n_answers = n_repeats * (version.n_cases - len(plan["cases"]) if is_default else 0) + n_repeats * n_own
    anchors = plan_anchors(version, version.scorer)
    n_anchors = anchors.n if anchors.stored is not None else min(anchors.n, n_answers)
    return int(n_answers * spec["draws"] + TWICE * min(anchors.n_twice, n_answers) + n_anchors * anchors.n_draws)


def first_digest(scorer: Scorer) -> str:
    """Return the digest of the scorer of a judge's first judging of a run."""
    return scoring.plan_digest(scoring.number_judging(scorer.spec, 1))


def judgings_by_same(version: SuiteVersionRecord, scorer: Scorer) -> QuerySet[JudgingRecord]:
    """Select the judgings of a suite's runs by one judge, whichever time it was asked."""
    judgings = JudgingRecord.objects.filter(run__suite_version__suite=version.suite_id)
    first, scorers = first_digest(scorer), Scorer.objects.filter(pk__in=judgings.values("scorer"))
    return judgings.filter(scorer__in=[each.pk for each in scorers if first_digest(each) == first])


def request_judging(run: RunRecord, scorer: Scorer) -> None:
    """Note that a judge is to score a run; one that has done so, or is at it, is left as it is.

    One that failed begins again.
    """
    record, is_new = JudgingRecord.objects.get_or_create(run=run, scorer=scorer)
    if not is_new and record.status == JudgingRecord.Status.FAILED:
        again = {"status": JudgingRecord.Status.RUNNING, "error": "", "finished_at": None}
        JudgingRecord.objects.filter(pk=record.pk).update(**again)


def open_judgings() -> QuerySet[JudgingRecord]:
    """Select the judgings that wait or are under way."""
    return JudgingRecord.objects.filter(status=JudgingRecord.Status.RUNNING)


def own_open_judgings(run: RunRecord) -> QuerySet[JudgingRecord]:
    """Select that of a run by its suite's own judge, without which it has no score."""
    return open_judgings().filter(run=run, scorer=run.suite_version.scorer_id)
