"""Scores repeats by the scorers that a team brought, each in a confined process of its own."""

from collections.abc import Sequence
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
        with PlanScorer(work.scorer.spec, check=partial(self._station.check, heartbeat)) as scorers:
            if self._leaves(lease, scorers.missing):
                return
            self._station.note(f"Scores repeat {work.repeat.index} of run {work.repeat.run_id}.")
            given: dict[int, ScorerReply] = {}
            for part in read_to_score(work.repeat):
                given |= scorers.score_all(part)
                heartbeat.persist(partial(SCORINGS.write, lease=lease, n_done=len(given)))
            if self._leaves(lease, scorers.find_changed()):  # a new file in the middle, which a process may have read
                return
        heartbeat.persist(partial(finish_scoring, lease=lease, given=given))
        self._station.note("")

    def _leaves(self, lease: Lease, missing: Sequence[str]) -> bool:
        """Give the row back where scorers are not here, or not what they were; tell whether that was so."""
        if missing:
            here = [asdict(each) for each in find_scorers()]
            report_scorers(worker=self._station.worker, scorers=here)
            self.let_go(lease, f"The scorer {missing[0]} is no longer what it was on this worker.")
        return bool(missing)
