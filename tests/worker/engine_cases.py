"""What the tests of the real engine share: plans, requests, and an engine with what it was started by."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalboard.calling.calls import DecodeRequest
from evalboard.core.profile import DEFAULT_PROFILES, EnginePlan, parse_profile, plan_engine
from evalboard.core.trace import Decoded, Forced, Outcome
from worker.engines.base import EngineSpec, ForceRequest, Started
from worker.engines.vllm import VllmEngine

HARDWARE = {"kind": "cpu", "gpus": [], "n_cores": 2}
QUESTIONS = ("What is 2+2?", "Name a colour.", 'Say "東京" in English.', "List five animals.", "Count to ten.")


def make_plan(slug: str = "pinned", changes: dict[str, Any] | None = None, **asked: Any) -> EnginePlan:
    settings = copy.deepcopy(DEFAULT_PROFILES[slug]["settings"])
    settings["cpu"]["engine"] |= changes or {}
    wanted = {"dtype": "float32", "quantization": None, "max_model_len": 512, "max_tokens": 16, "stop": ()} | asked
    return plan_engine(parse_profile(settings), HARDWARE, **wanted)


def request(index: int, text: str, sampling: Any) -> DecodeRequest:
    return DecodeRequest(case_index=index, messages=({"role": "user", "content": text},), sampling=sampling)


def requests(plan: EnginePlan, **sampling: Any) -> list[DecodeRequest]:
    return [request(index, text, dict(plan.sampling, **sampling)) for index, text in enumerate(QUESTIONS)]


def decoded(outcome: Outcome) -> Decoded:
    assert isinstance(outcome, Decoded), outcome
    return outcome


def by_index(outcomes: Iterator[Outcome]) -> dict[int, Outcome]:
    return {outcome.case_index: outcome for outcome in outcomes}


class Running:
    """A started engine with what it was started by."""

    def __init__(self, python: Path, model: Path, plan: EnginePlan, **limits: float) -> None:
        self.plan = plan
        self.engine = VllmEngine(EngineSpec(model=str(model), revision=None, plan=plan), python=python, **limits)
        self.started: Started = self.engine.start()


def endless(plan: EnginePlan, index: int) -> DecodeRequest:
    sampling = dict(plan.sampling, max_tokens=400, ignore_eos=True)
    return DecodeRequest(case_index=index, messages=(), sampling=sampling, prompt_token_ids=[1, 42])


def short(plan: EnginePlan, index: int) -> DecodeRequest:
    return DecodeRequest(
        case_index=index, messages=(), sampling=dict(plan.sampling, max_tokens=2), prompt_token_ids=[1, 42]
    )


def given(answer: Decoded, running: Running) -> ForceRequest:
    assert answer.trace.prompt_token_ids is not None
    return ForceRequest(
        place=answer.case_index,
        messages=({"role": "user", "content": QUESTIONS[answer.case_index]},),
        sampling=running.plan.sampling,
        prompt_token_ids=answer.trace.prompt_token_ids.tolist(),
        answer_token_ids=answer.trace.token_ids.tolist(),
    )


def forced(running: Running, wanted: list[ForceRequest]) -> dict[int, Forced]:
    outcomes = list(running.engine.force(wanted))
    assert all(isinstance(outcome, Forced) for outcome in outcomes), outcomes
    return {outcome.place: outcome for outcome in outcomes if isinstance(outcome, Forced)}
