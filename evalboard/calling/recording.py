"""Record a server's answers as a log: the plan of calls, and the line of each (docs/cli.md)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.calling.calls import Answered, CallOutcome, DecodeRequest, FailedCall
from evalboard.calling.client import CalledServer
from evalboard.core import scoring
from evalboard.core.images import put_images
from evalboard.core.profile import call_seed
from evalboard.core.suite import CaseDocument, SuiteDocument
from evalboard.core.trace import Ending, Failed, find_ending, is_truncated
from evalboard.importers.backends import keep_headers
from evalboard.importers.records import LoggedResponse

Key = tuple[str, int]  # a case's id and its repeat, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The plan of a recording. sampling: all settings of a call but its seed, derived from `seed`.

    concurrency: calls in flight, which decide how a server batches them.
    """

    suite: SuiteDocument
    server: CalledServer
    sampling: Mapping[str, Any]
    seed: int
    n_repeats: int
    concurrency: int

    @property
    def n_calls(self) -> int:
        return self.n_repeats * len(self.suite.cases)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings common to a file's lines, to which repeats may be added."""
        server = self.server
        named = {"base_url": server.base_url, "api": server.api, "model": server.model, "cases": self.suite.digest[:16]}
        own = {"seed": self.seed, "concurrency": self.concurrency, **self.sampling}
        return {**named, **own} | ({"extra_body": dict(server.extra_body)} if server.extra_body else {})

    def list_requests(self, done: Collection[Key]) -> list[DecodeRequest]:
        """Return the calls that are left, one repeat after the other; each is found by `key_of`."""
        return [
            DecodeRequest(
                case_index=(repeat - 1) * len(self.suite.cases) + case.index,
                messages=put_images(case.messages, {image.digest: image for image in case.images}),
                tools=case.tools,
                sampling={**self.sampling, "seed": self._seed(case.id, repeat)},
            )
            for repeat in range(1, self.n_repeats + 1)
            for case in self.suite.cases
            if (case.id, repeat) not in done
        ]

    def make_line(self, outcome: CallOutcome) -> dict[str, Any]:
        """Return the file's line for a call."""
        n_before, index = divmod(outcome.case_index, len(self.suite.cases))
        case = self.suite.cases[index]
        unsent = {"model": self.server.model, "messages": list(case.messages)}
        line: dict[str, Any] = {"case_id": case.id, "repeat": n_before + 1, "url": self.server.base_url}
        line |= {"n_cases": len(self.suite.cases), "request": unsent} | (
            {"target": case.target} if case.target is not None else {}
        )
        if scoring.KINDS[self._scorer(case)["kind"]].scores_here:
            line["suite"] = self.suite.slug
        if isinstance(outcome, Answered | FailedCall) and outcome.exchange is not None:
            call, exchange = outcome.call, outcome.exchange
            line |= {"request": exchange.sent, "headers": keep_headers(exchange.headers), "status": call.status}
            line |= {"started_at": call.started_at.isoformat(), "ended_at": call.ended_at.isoformat()}
            line |= {"n_tries": call.n_tries, "left_out": list(call.left_out)}
            line |= {"response": exchange.body} if isinstance(outcome, Answered) else {}
        if isinstance(outcome, Failed):
            line["error"] = {"type": outcome.code, "message": outcome.detail}
            if outcome.code == "prompt_filtered":
                line["response"] = {"error": {"code": "content_filter", "message": outcome.detail}}
        elif isinstance(outcome, Answered) and "suite" in line:
            line |= self._score(case, outcome.response)
        return line | {"settings": self.settings}

    def _seed(self, case_id: str, repeat: int) -> int:
        return call_seed(self.sampling, run_seed=self.seed, repeat=repeat, case_id=case_id, is_external=True)

    def _scorer(self, case: CaseDocument) -> Mapping[str, Any]:
        spec = case.scorer or self.suite.scorer
        assert spec is not None  # noqa: S101  for the type checker: every case of a suite has one
        return spec

    def _score(self, case: CaseDocument, response: LoggedResponse) -> dict[str, Any]:
        """Score an answer as a run of the suite would."""
        ending = find_ending(response.finish_reason, text=response.text, is_refusal=response.is_refusal)
        if ending is Ending.UNKNOWN:
            return {"score": None, "reason": f"It ended with {response.finish_reason!r}, which is an unknown ending."}
        given = scoring.score(
            self._scorer(case),
            text=response.text,
            target=case.target,
            tools=case.tools,
            thinking=response.reasoning,
            is_truncated=is_truncated(text=response.text, reasoning=response.reasoning, is_cut=ending is Ending.CUT),
        )
        return {"score": given.value, "reason": given.reason}
