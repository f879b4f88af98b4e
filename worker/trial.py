"""Send the one case of a trial, to an engine here or to an external server, the way a run would."""

import time
from contextlib import closing
from functools import partial
from typing import Any

from evalboard.calling.calls import Answered, CallOutcome, DecodeRequest, EngineFailure
from evalboard.core.profile import decide_logprobs, parse_profile
from evalboard.core.trace import Ending, Failed, find_ending, is_truncated
from runs.catalogue import honours_logprobs, read_newest_check
from runs.store import storable, with_images
from runs.suites import TRIALS, claim_trial, fail_trial, finish_trial, trial_work
from runs.work import Lease, Serving, ToScore
from worker.heartbeat import Heartbeat
from worker.jobs import RequestedJob, describe_failure
from worker.scorers import PlanScorer


class TrialJob(RequestedJob):
    """Trials. A person watches, so that a failure ends one at once, and a pause is not waited for."""

    requests = TRIALS

    def claim(self) -> Lease | None:
        return claim_trial(worker=self._station.worker, left_alone=self._station.left_alone("trial"))

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        serving, case = trial_work(lease.id)
        if (refusal := self._station.find_refusal(serving)) is not None:
            TRIALS.refuse(lease=lease, reason=refusal)
            self._station.leave_alone("trial", lease.id, refusal)
            return
        self._station.note(f"Tries a case on {serving.endpoint.slug}.")
        began = time.monotonic()
        try:
            outcome = self._call(serving, case) if serving.endpoint.is_remote else self._decode(serving, case)
            reason = _why_none(outcome)
        except EngineFailure as failure:
            outcome, reason = None, describe_failure(failure)
            if not serving.endpoint.is_remote:
                self._session.discard()
        self._station.check(heartbeat)
        if reason:
            heartbeat.persist(partial(fail_trial, lease=lease, reason=reason))
        else:
            facts = _answer(outcome)
            seconds, cut = time.monotonic() - began, facts.pop("is_truncated")
            check = partial(self._station.check, heartbeat)
            with PlanScorer({"default": case["scorer"], "cases": {}}, check=check) as scorer:
                scored = scorer.score(_to_score(case, facts, is_truncated=cut))
            heartbeat.persist(partial(finish_trial, lease=lease, seconds=seconds, scored=scored, **facts))
        self._station.note("")

    def _call(self, serving: Serving, case: dict[str, Any]) -> CallOutcome | None:
        """Raises EngineFailure: the endpoint refuses all calls, or is paused."""
        profile, checked = parse_profile(serving.profile_settings), read_newest_check(serving.endpoint.pk).items()
        refused = [name for name, check in checked if check.state == "refused"]
        is_alone = profile.batch_class == "alone"
        client = self._station.calls.open_for(serving.endpoint, is_alone=is_alone, refused=refused)
        sampling = decide_logprobs(profile.sampling, are_honoured=honours_logprobs(serving.endpoint.pk))
        sampling |= {"max_tokens": serving.max_tokens, "stop": list(serving.stop)}
        with closing(client.decode([_request(case, sampling)])) as outcomes:
            return next(outcomes, None)

    def _decode(self, serving: Serving, case: dict[str, Any]) -> CallOutcome | None:
        """Raises EngineFailure."""
        opened = self._session.open_apart(serving)
        return next(iter(opened.engine.decode([_request(case, opened.plan.sampling)])), None)


def _request(case: dict[str, Any], sampling: Any) -> DecodeRequest:
    return DecodeRequest(case_index=0, messages=with_images(case["messages"]), tools=case["tools"], sampling=sampling)


def _to_score(case: dict[str, Any], answer: dict[str, Any], *, is_truncated: bool | None) -> ToScore:
    """Return an answer for its scorer, as a stored one would be."""
    return ToScore(
        index=0,
        case_id=case["id"],
        messages=case["messages"],
        target=case["target"],
        tools=case["tools"],
        tags=(),
        text=storable(answer["text"]),
        thinking=answer["thinking"] and storable(answer["thinking"]),
        is_truncated=is_truncated,
        finish_reason=answer["finish_reason"],
    )


def _why_none(outcome: CallOutcome | None) -> str:
    """Return why there is no answer, "" if there is one."""
    if outcome is None:
        return "The call was not made. Try again."
    if isinstance(outcome, Failed):
        return outcome.detail
    return outcome.response.error if isinstance(outcome, Answered) else ""


def _answer(outcome: CallOutcome | None) -> dict[str, Any]:
    answer = outcome.response if isinstance(outcome, Answered) else outcome
    assert answer is not None and not isinstance(answer, Failed)  # noqa: S101, PT018  for the type checker
    text, thinking = answer.text, answer.reasoning
    is_cut = find_ending(answer.finish_reason, text=text) is Ending.CUT
    cut = is_truncated(text=text, reasoning=thinking, is_cut=is_cut)
    return {"text": text, "thinking": thinking, "is_truncated": cut, "finish_reason": answer.finish_reason}
