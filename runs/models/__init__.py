"""The records. Each state change is a function of the slice that it is about."""

from runs.models.access import IdempotencyKey, Token, TourEnd
from runs.models.baseline import Baseline, Rotation
from runs.models.comparison import Comparison, Divergence, ListedFrame
from runs.models.endpoint import CallSlot, Endpoint, Profile
from runs.models.experiment import Experiment, ExperimentArm
from runs.models.forced import ForcedAnswer, ForcedScoring
from runs.models.identity import Bucket, EngineProcess, Fingerprint, Model, SameModel, SelfTest, Vocabulary, Worker
from runs.models.imported import Import
from runs.models.lane import Lane, Priority
from runs.models.policy import Policy
from runs.models.probe import AnswerSet, Probe
from runs.models.release import Gate, Release, Settling, SignOff, Verdict
from runs.models.replay import Replay
from runs.models.response import CaseColumns, CaseFrame, RepeatScore, Response, RunFigures, TraceBlock
from runs.models.run import Event, Repeat, Run, Shard, Stray
from runs.models.schedule import Schedule, ScheduledStart
from runs.models.suite import Case, Scorer, Suite, SuiteNoise, SuiteVersion
from runs.models.upload import Upload, UploadedCase, UploadPart
from runs.models.webhook import OutboxMessage, Webhook

__all__ = [
    "AnswerSet",
    "Baseline",
    "Bucket",
    "CallSlot",
    "Case",
    "CaseColumns",
    "CaseFrame",
    "Comparison",
    "Divergence",
    "Endpoint",
    "EngineProcess",
    "Event",
    "Experiment",
    "ExperimentArm",
    "Fingerprint",
    "ForcedAnswer",
    "ForcedScoring",
    "Gate",
    "IdempotencyKey",
    "Import",
    "Lane",
    "ListedFrame",
    "Model",
    "OutboxMessage",
    "Policy",
    "Priority",
    "Probe",
    "Profile",
    "Release",
    "Repeat",
    "RepeatScore",
    "Replay",
    "Response",
    "Rotation",
    "Run",
    "RunFigures",
    "SameModel",
    "Schedule",
    "ScheduledStart",
    "Scorer",
    "SelfTest",
    "Settling",
    "Shard",
    "SignOff",
    "Stray",
    "Suite",
    "SuiteNoise",
    "SuiteVersion",
    "Token",
    "TourEnd",
    "TraceBlock",
    "Upload",
    "UploadPart",
    "UploadedCase",
    "Verdict",
    "Vocabulary",
    "Webhook",
    "Worker",
]
