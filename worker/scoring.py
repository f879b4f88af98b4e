"""Scores repeats by the scorers that a team brought, each in a confined process of its own."""

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from typing import Any

from django.conf import settings

from evalboard.contract.scorer import InstalledScorer
from evalboard.core import scoring
from evalboard.core.digest import canonical_json
from evalboard.core.scoring import ScorerReply
from runs.work import (
    SCORINGS,
    Lease,
    ToScore,
    claim_scoring,
    finish_scoring,
    read_to_score,
    report_scorers,
    scoring_work,
)
from worker.heartbeat import Heartbeat
from worker.jobs import RequestedJob
from worker.scorers import ScorerProcess, find_scorers

SAY_EVERY = 100  # responses


class ScoreJob(RequestedJob):
    """Scorings. They need no engine; a worker takes those whose scorers it has, to the byte."""

    requests = SCORINGS

    def claim(self) -> Lease | None:
        return claim_scoring(worker=self._station.worker, left_alone=self._station.left_alone("scoring"))

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        work = scoring_work(lease.id)
        here = {each.digest: each for each in find_scorers(settings.SCORERS_DIR)}
        if missing := set(work.needs) - set(here):
            report_scorers(worker=self._station.worker, scorers=[asdict(each) for each in here.values()])
            self.let_go(lease, f"The scorer with digest {missing.pop()[:8]} is no longer on this worker.")
            return
        self._station.note(f"Scores repeat {work.repeat.index} of run {work.repeat.run_id}.")
        with ExitStack() as stack:
            scorers = _Scorers(work.scorer.spec, here, stack)
            given: dict[int, ScorerReply] = {}
            for response in read_to_score(work.repeat):
                self._station.check(heartbeat)
                given[response.index] = scorers.score(response)
                if len(given) % SAY_EVERY == 0:
                    heartbeat.persist(partial(SCORINGS.write, lease=lease, n_done=len(given)))
        heartbeat.persist(partial(finish_scoring, lease=lease, given=given))
        self._station.note("")


class _Scorers:
    """The scorers of a plan: ours score here, the team's each in its process, which lives as long as the stack."""

    def __init__(self, plan: scoring.Plan, here: Mapping[str, InstalledScorer], stack: ExitStack) -> None:
        self._plan, self._here, self._stack = plan, here, stack
        self._processes: dict[bytes, ScorerProcess] = {}

    def score(self, response: ToScore) -> ScorerReply:
        if response.is_truncated:
            return ScorerReply(scoring.TRUNCATED.value, scoring.TRUNCATED.reason)
        spec = scoring.scorer_for(self._plan, response.case_id)
        if spec["kind"] in scoring.EXTERNAL:
            return self._process(spec).score(response)
        given = scoring.score(
            spec, text=response.text, target=response.target, tools=response.tools, thinking=response.thinking
        )
        return ScorerReply(given.value, given.reason, given.answer)

    def _process(self, spec: Mapping[str, Any]) -> ScorerProcess:
        key = canonical_json(spec)
        if key not in self._processes:
            process = ScorerProcess(spec, self._here[spec["digest"]])
            self._processes[key] = self._stack.enter_context(closing(process))
        return self._processes[key]
