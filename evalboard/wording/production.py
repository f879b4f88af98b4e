"""Sentences of a replay under production's settings: the result, and how it differs from production."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.wording.numbers import counted, listed
from evalboard.wording.replay import explain_replay

UNBATCHED = "alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionRequest:
    """The request for a replay of production.

    profile, own_profile: with their versions; own_profile is the run's, None for a request without a run.
    changes_tokens: the `not_sent` fields that change tokens. from_profile: sampling that the request leaves to the
    profile.
    """

    profile: str
    own_profile: str | None
    not_sent: tuple[str, ...]
    changes_tokens: tuple[str, ...]
    from_profile: tuple[str, ...]
    temperature: float
    is_seeded: bool
    has_limit: bool
    has_tools: bool
    batch_class: str


def explain_production(results: Sequence[Mapping[str, Any]], request: ProductionRequest) -> tuple[str, ...]:
    """Describe the result under production's settings, the finding first, then its limits."""
    if request.own_profile is not None:
        kept_apart = (
            f"Decoded under {request.profile} instead of the run’s {request.own_profile}: it counts toward no score."
        )
        return (*explain_replay(results), kept_apart)
    return (_describe_answer(results, request), *_limits(request))


def _describe_answer(results: Sequence[Mapping[str, Any]], request: ProductionRequest) -> str:
    answer = next((each for each in results if not each["error"]), None)
    if answer is None:
        return "There is no answer."
    end = f", ended by {answer['finish_reason']}" if answer["finish_reason"] else ""
    return f"Decoded once under {request.profile}: {counted(answer['n_tokens'], 'token')}{end}."


def _limits(request: ProductionRequest) -> list[str]:
    """List the differences to what production did."""
    lines = []
    if request.changes_tokens:
        fields = listed(request.changes_tokens)
        lines.append(
            f"Not sent, although the answer may depend on it: {fields}. Production may have answered differently."
        )
    streaming = ("stream", "stream_options")
    if beside := [name for name in request.not_sent if name not in (*request.changes_tokens, *streaming)]:
        lines.append(f"Not sent; no token depends on it: {listed(beside)}.")
    if "stream" in request.not_sent:
        lines.append("The request asks for a stream; it was answered in one piece, with the same tokens.")
    if request.has_tools:
        lines.append("Its tools went to the chat template; a call is in the text as the model wrote it.")
    if request.from_profile:
        lines.append(f"Taken from the profile, as the request lacks it: {listed(request.from_profile)}.")
    if request.temperature > 0 and not request.is_seeded:
        lines.append(
            f"Sampled at temperature {request.temperature:g} without a seed: production used another one, so a "
            "different answer shows nothing."
        )
    if not request.has_limit:
        lines.append("It sets no limit, so the answer could have filled the endpoint’s context.")
    if request.batch_class != UNBATCHED:
        lines.append("Decoded at batch size 1 here; the batches of production are unknown.")
    return lines
