"""Variance experiments: each condition varies one source, compared with the control's first pass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from evalboard.contract.lab_kinds import Source
from evalboard.core import scoring
from evalboard.core.errors import Conflict
from evalboard.core.lab import SPACINGS, ArmFigures, respace
from evalboard.core.stats import run_points
from runs.catalogue import create_profile
from runs.lab.run_figures import measure_run, whole_passes
from runs.lab.score_texts import read_scored_cases, read_texts, score_texts
from runs.models import ExperimentArm, ExperimentRecord, ProfileRecord, RepeatRecord, RunRecord, Scorer
from runs.run import newest_profile
from runs.work import ReplyToScore

Status = ExperimentArm.Status
Arms = Sequence[ExperimentArm]


class VarianceKind:
    """The kind `variance` of experiments (`arms.ExperimentKind`)."""

    def passes(self, run: RunRecord) -> Sequence[RepeatRecord]:
        return whole_passes(run)

    def measure(self, experiment: ExperimentRecord, arms: Arms, run: RunRecord) -> dict[str, Any] | None:
        first = _first_pass(arms)
        return None if first is None else asdict(measure_run(run, first))

    def prepare(self, experiment: ExperimentRecord, arms: Arms) -> None:
        first = _first_pass(arms)
        for arm in arms:
            if arm.status == Status.WAITING and arm.source == Source.PARSER and first is not None:
                arm.figures, arm.status = asdict(measure_parser(first)), Status.FINISHED  # it costs nothing
                arm.save()

    def order(self, experiment: ExperimentRecord, arm: ExperimentArm) -> Mapping[str, Any]:
        version = experiment.suite_version
        return {
            "suite": version.suite.slug,
            "suite_version": version.number,
            "endpoint": arm.endpoint.slug,
            "profile": _profile(experiment.profile, arm).slug,
            "repeats": arm.n_runs,
            "is_shuffled": arm.is_shuffled,
            "is_restarted": arm.is_restarted,
        }

    def failure(self, arms: Arms) -> str:
        control = _control(arms)
        if control.status in (Status.FAILED, Status.MISSING):
            return f"The control failed, so nothing can be compared with it. {control.problem}"
        if all(arm.status != Status.WAITING for arm in arms) and _first_pass(arms) is None:
            return "The control has no complete pass, so nothing can be compared with it."
        return ""

    def is_settled(self, experiment: ExperimentRecord, arms: Arms) -> bool:
        return False

    def add_arms(self, experiment: ExperimentRecord, arms: Arms) -> bool:
        return False


def _control(arms: Arms) -> ExperimentArm:
    return next(arm for arm in arms if arm.source == Source.CONTROL)


def _first_pass(arms: Arms) -> RepeatRecord | None:
    """Return the control's first whole pass, with which all are compared; None if it has none."""
    run = _control(arms).run
    passes = [] if run is None else whole_passes(run)
    return passes[0] if passes else None


def _profile(pinned: ProfileRecord, arm: ExperimentArm) -> ProfileRecord:
    if arm.settings is None:
        if newest_profile(pinned.slug) != pinned:
            raise Conflict(f"The profile {pinned.slug} was changed since the plan; plan the experiment again.")
        return pinned
    title = f"The lab: {pinned} with the {arm.source.replace('_', ' ')} varied"
    return create_profile(slug=f"{pinned.slug}.{arm.source}", title=title, settings=arm.settings)[0]


SCORERS_READ = 8


def measure_parser(first: RepeatRecord) -> ArmFigures:
    """Return one point for each other scorer and for each spacing, by name; nothing is stored or decoded."""
    version = first.run.suite_version
    cases = read_scored_cases(version)

    def score(scorer: Scorer, change: Callable[[str], str]) -> float | None:
        texts = {index: _change(reply, change) for index, reply in read_texts(first, scorer).items()}
        return run_points(score_texts(scorer, cases, texts, n_cases=version.n_cases))

    others = Scorer.objects.filter(repeat_scores__repeat__run__suite_version=version).exclude(pk=version.scorer_id)
    points: dict[str, float | None] = {}
    for scorer in others.distinct().order_by("-id")[:SCORERS_READ]:
        if scoring.scores_here(scorer.spec):
            points[f"scorer {scorer.digest[:8]}"] = score(scorer, str)
    for name in SPACINGS:
        points[name] = score(version.scorer, partial(respace, name=name))
    return ArmFigures(points=tuple(points.values()), names=tuple(points))


def _change(reply: ReplyToScore, change: Callable[[str], str]) -> ReplyToScore:
    thinking = None if reply.thinking is None else change(reply.thinking)
    return reply._replace(text=change(reply.text), thinking=thinking)
