"""Scores repeats by the scorers that a team brought, each in a confined process of its own."""

from dataclasses import asdict
from functools import partial

from evalboard.core.scoring import ScorerReply
from runs.work import (
    SCORINGS,
    Lease,
    claim_scoring,
    finish_scoring,
    read_to_score,
    report_scorers,
    scoring_work,
)
from worker.heartbeat import Heartbeat
from worker.jobs import RequestedJob
from worker.scorers import PlanScorer, find_scorers


class ScoreJob(RequestedJob):
    """Scorings. They need no engine; a worker takes those whose scorers it has, to the byte."""

    requests = SCORINGS

    def claim(self) -> Lease | None:
        return claim_scoring(worker=self._station.worker, left_alone=self._station.left_alone("scoring"))

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        work = scoring_work(lease.id)
        here = find_scorers()
        if missing := set(work.needs) - {each.digest for each in here}:
            report_scorers(worker=self._station.worker, scorers=[asdict(each) for each in here])
            self.let_go(lease, f"The scorer with digest {missing.pop()[:8]} is no longer on this worker.")
            return
        self._station.note(f"Scores repeat {work.repeat.index} of run {work.repeat.run_id}.")
        with PlanScorer(work.scorer.spec, check=partial(self._station.check, heartbeat)) as scorers:
            given: dict[int, ScorerReply] = {}
            for part in read_to_score(work.repeat):
                given |= scorers.score_all(part)
                heartbeat.persist(partial(SCORINGS.write, lease=lease, n_done=len(given)))
        heartbeat.persist(partial(finish_scoring, lease=lease, given=given))
        self._station.note("")
