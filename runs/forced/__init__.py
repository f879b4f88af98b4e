"""Forced re-scoring: the answers of a run read by another stack, token by token."""

from runs.forced.answers import AnswerToForce, GivenTokens, give_tokens, next_answers
from runs.forced.marks import ForcedMark
from runs.forced.read import ForcedWork, forced_work, reported_scoring
from runs.forced.read_answer import AnswerElsewhere, answers_elsewhere
from runs.forced.read_pair import ForcedStrip, forced_choice, forced_sides, forced_strip, has_forced
from runs.forced.reported import ReportedAnswer, store_reported
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

REQUESTS = (FORCED,)

__all__ = [
    "FORCED",
    "MAX_VERIFIED",
    "REQUESTS",
    "AnswerElsewhere",
    "AnswerToForce",
    "ForcedMark",
    "ForcedOutcome",
    "ForcedStrip",
    "ForcedWork",
    "GivenTokens",
    "ReportedAnswer",
    "answers_elsewhere",
    "claim_forced",
    "create_forced",
    "create_forced_pair",
    "finish_forced",
    "forced_choice",
    "forced_sides",
    "forced_strip",
    "forced_work",
    "give_tokens",
    "has_forced",
    "next_answers",
    "record_forced",
    "reported_scoring",
    "store_reported",
    "verify_scoring",
]
