"""Forced re-scoring: the answers of a run read by another stack, token by token."""

from runs.forced.answers import AnswerToForce, GivenTokens, give_tokens, next_answers
from runs.forced.read import ForcedWork, forced_work
from runs.forced.read_pair import ForcedStrip, forced_sides, forced_strip, has_forced
from runs.forced.scorings import (
    FORCED,
    ForcedOutcome,
    claim_forced,
    create_forced,
    create_forced_pair,
    finish_forced,
    record_forced,
)
from runs.forced.verification import MAX_ANSWERS as MAX_VERIFIED
from runs.forced.verification import verify_scoring

__all__ = [
    "FORCED",
    "MAX_VERIFIED",
    "AnswerToForce",
    "ForcedOutcome",
    "ForcedStrip",
    "ForcedWork",
    "GivenTokens",
    "claim_forced",
    "create_forced",
    "create_forced_pair",
    "finish_forced",
    "forced_sides",
    "forced_strip",
    "forced_work",
    "give_tokens",
    "has_forced",
    "next_answers",
    "record_forced",
    "verify_scoring",
]
