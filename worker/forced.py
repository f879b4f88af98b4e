"""Scores the answers of a run on the stack that is asked for, block by block."""

from collections.abc import Sequence
from functools import partial

from evalboard.calling.calls import EngineFailure
from evalboard.core.trace import Failed
from runs.forced import (
    FORCED,
    AnswerToForce,
    ForcedOutcome,
    ForcedWork,
    GivenTokens,
    claim_forced,
    finish_forced,
    forced_work,
    give_tokens,
    next_answers,
    record_forced,
)
from runs.work import Lease, others_work
from worker.engines.base import ForceRequest
from worker.heartbeat import Heartbeat
from worker.jobs import RequestedJob, describe_failure
from worker.session import Opened

NOT_REBUILT = (
    "What this engine could be given is not stored: the tags around thinking that stands apart, or, of a rollout, its "
    "prompt and ids that this tokenizer has."
)
OTHER_STACK = "What is scored so far was scored by another serving stack than this worker's."
FAILURES_IN_A_ROW = 3  # more are no fault of the answers


class OtherStack(Exception):
    """This worker's engine is of another bucket than the scoring's stored answers."""


class ForceJob(RequestedJob):
    """Forced scorings; each is scored by engines of one bucket."""

    requests = FORCED

    def claim(self) -> Lease | None:
        return claim_forced(worker=self._station.worker, left_alone=self._station.left_alone("forced scoring"))

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        """Score the remaining answers of a scoring, or leave it to other workers."""
        work = forced_work(lease.id)
        refusal = self._station.find_refusal(work.serving)
        if refusal is not None:
            FORCED.refuse(lease=lease, reason=refusal)
            self._station.leave_alone("forced scoring", lease.id, refusal)
            return
        self._station.note(f"Scores the answers of run {work.run_id} on endpoint {work.serving.endpoint.slug}.")
        try:
            while answers := next_answers(lease.id):
                outcomes = self._scored(forced_work(lease.id), answers, heartbeat)
                self._station.check(heartbeat)
                heartbeat.persist(partial(record_forced, lease=lease, outcomes=outcomes))
        except OtherStack:
            self.fail(lease, OTHER_STACK)
            self._station.leave_alone("forced scoring", lease.id, OTHER_STACK)
            return
        except EngineFailure as failure:
            self._session.discard()
            self._station.check(heartbeat)
            self.fail(lease, describe_failure(failure))
            if others_work(worker=self._station.worker):
                self._station.leave_alone("forced scoring", lease.id, failure.detail)
            return
        heartbeat.persist(partial(finish_forced, lease=lease))
        self._station.note("")

    def _scored(self, work: ForcedWork, answers: Sequence[AnswerToForce], heartbeat: Heartbeat) -> list[ForcedOutcome]:
        """Return the results of these answers, in order. After a failure, score the others one at a time.

        Raises EngineFailure if no engine starts, or if several answers in a row end one.
        """
        opened = self._open(work)
        done: dict[int, ForcedOutcome] = {}
        try:
            self._score(opened, dict(enumerate(answers)), done)
        except EngineFailure:
            self._session.discard()
        n_failures = 0
        for place, answer in enumerate(answers):
            if place in done:
                continue
            self._station.check(heartbeat)
            opened = self._open(work)
            try:
                self._score(opened, {place: answer}, done)
                n_failures = 0
            except EngineFailure as failure:
                self._session.discard()
                n_failures += 1
                if n_failures == FAILURES_IN_A_ROW:
                    raise
                failed = Failed(place, failure.code, describe_failure(failure))
                done[place] = ForcedOutcome(answer, "", is_rendered=False, process=opened.process, outcome=failed)
        return [done[place] for place in range(len(answers))]

    def _open(self, work: ForcedWork) -> Opened:
        """Open the engine. Raises EngineFailure, and OtherStack if stored answers are of another bucket."""
        opened = self._session.open_apart(work.serving)
        if work.bucket_id not in (None, opened.process.bucket_id):
            raise OtherStack
        return opened

    def _score(self, opened: Opened, wanted: dict[int, AnswerToForce], done: dict[int, ForcedOutcome]) -> None:
        """Score answers and add each result to `done` as it comes. Raises EngineFailure."""
        given = {
            place: give_tokens(answer, vocabulary_id=opened.process.vocabulary_id) for place, answer in wanted.items()
        }
        for place, tokens in given.items():
            if tokens is None:
                failed = Failed(place, "not_rebuilt", NOT_REBUILT)
                done[place] = ForcedOutcome(wanted[place], "", is_rendered=False, process=None, outcome=failed)
        requests = [
            _request(place, wanted[place], tokens, opened) for place, tokens in given.items() if tokens is not None
        ]
        for outcome in opened.engine.force(requests):
            place = outcome.case_index if isinstance(outcome, Failed) else outcome.place
            tokens = given[place]
            assert tokens is not None  # noqa: S101  for the type checker: others were not sent
            done[place] = ForcedOutcome(
                wanted[place],
                tokens.kind,
                is_rendered=tokens.prompt_token_ids is None,
                process=opened.process,
                outcome=outcome,
            )


def _request(place: int, answer: AnswerToForce, tokens: GivenTokens, opened: Opened) -> ForceRequest:
    return ForceRequest(
        place=place,
        messages=answer.messages,
        tools=answer.tools,
        sampling=opened.plan.sampling,
        prompt_token_ids=tokens.prompt_token_ids,
        answer_token_ids=tokens.answer_token_ids,
        answer_text=tokens.text,
    )


JOBS = (ForceJob,)
