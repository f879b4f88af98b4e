"""The records. Each state change is a function in `runs.services`."""

from runs.models.access import IdempotencyKey, Token
from runs.models.baseline import Baseline, Rotation
from runs.models.comparison import Comparison, Divergence
from runs.models.endpoint import Endpoint, Profile
from runs.models.identity import Bucket, EngineProcess, Fingerprint, Model, SameModel, SelfTest, Vocabulary, Worker
from runs.models.imported import Import
from runs.models.policy import Policy
from runs.models.probe import Probe
from runs.models.release import Gate, Release, Settling, SignOff, Verdict
from runs.models.replay import Replay
from runs.models.response import CaseColumns, RepeatScore, Response, TraceBlock
from runs.models.run import Event, Repeat, Run, Shard
from runs.models.suite import Case, Scorer, Suite, SuiteVersion
from runs.models.webhook import OutboxMessage, Webhook

__all__ = [
    "Baseline",
    "Bucket",
    "Case",
    "CaseColumns",
    "Comparison",
    "Divergence",
    "Endpoint",
    "EngineProcess",
    "Event",
    "Fingerprint",
    "Gate",
    "IdempotencyKey",
    "Import",
    "Model",
    "OutboxMessage",
    "Policy",
    "Probe",
    "Profile",
    "Release",
    "Repeat",
    "RepeatScore",
    "Replay",
    "Response",
    "Rotation",
    "Run",
    "SameModel",
    "Scorer",
    "SelfTest",
    "Settling",
    "Shard",
    "SignOff",
    "Suite",
    "SuiteVersion",
    "Token",
    "TraceBlock",
    "Verdict",
    "Vocabulary",
    "Webhook",
    "Worker",
]
