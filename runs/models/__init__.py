"""The records. Each state change is a function in `runs.services`."""

from runs.models.access import Token
from runs.models.endpoint import Endpoint, Profile
from runs.models.identity import Bucket, EngineProcess, Fingerprint, Model, Vocabulary, Worker
from runs.models.response import CaseColumns, RepeatScore, Response, TraceBlock
from runs.models.run import Event, Repeat, Run, Shard
from runs.models.suite import Case, Scorer, Suite, SuiteVersion

__all__ = [
    "Bucket",
    "Case",
    "CaseColumns",
    "Endpoint",
    "EngineProcess",
    "Event",
    "Fingerprint",
    "Model",
    "Profile",
    "Repeat",
    "RepeatScore",
    "Response",
    "Run",
    "Scorer",
    "Shard",
    "Suite",
    "SuiteVersion",
    "Token",
    "TraceBlock",
    "Vocabulary",
    "Worker",
]
