"""Forced re-scoring: the answers of a run read by another stack, token by token."""

from runs.forced.answers import AnswerToForce, GivenTokens, give_tokens, next_answers
from runs.forced.marks import ForcedMark
from runs.forced.read import ForcedWork, forced_work, reported_scoring
from runs.forced.read_answer import AnswerElsewhere, answers_elsewhere
from runs.forced.read_pair import ForcedStrip, forced_sides, forced_strip
from runs.forced.reported import store_trainer
from runs.forced.scorings import (
    FORCED,
    ForcedOutcome,
    claim_forced,
    create_forced,
    create_forced_pair,
    finish_forced,
    record_forced,
)
from runs.forced.verification import verify_scoring
from runs.forced.verifying import COURSE
from runs.models import ProbeRecord

REQUESTS = (FORCED,)
AFTER_IMPORT = (store_trainer,)
PROBE_KINDS = ((ProbeRecord.Kind.VERIFY, COURSE),)

__all__ = [
    "AFTER_IMPORT",
    "FORCED",
    "PROBE_KINDS",
    "REQUESTS",
    "AnswerElsewhere",
    "AnswerToForce",
    "ForcedMark",
    "ForcedOutcome",
    "ForcedStrip",
    "ForcedWork",
    "GivenTokens",
    "answers_elsewhere",
    "claim_forced",
    "create_forced",
    "create_forced_pair",
    "finish_forced",
    "forced_sides",
    "forced_strip",
    "forced_work",
    "give_tokens",
    "next_answers",
    "record_forced",
    "reported_scoring",
    "verify_scoring",
]
