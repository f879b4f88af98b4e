"""The records. Each state change is a function of the slice that it is about."""

from runs.models.access import IdempotencyKey, Token, TourEnd
from runs.models.audit import AuditLineRecord, AuditSeal
from runs.models.baseline import BaselineRecord, Rotation
from runs.models.comment import CommentRecord
from runs.models.comparison import ComparisonRecord, DivergenceRecord, ListedFrame
from runs.models.endpoint import CHECKPOINT, CallSlot, EndpointRecord, ProfileRecord
from runs.models.experiment import ExperimentArm, ExperimentRecord
from runs.models.forced import ForcedAnswerRecord, ForcedScoringRecord
from runs.models.identity import (
    BackendNameRecord,
    BucketRecord,
    EngineProcess,
    FingerprintRecord,
    Model,
    SameModelRecord,
    SelfTestRecord,
    VocabularyRecord,
    WorkerRecord,
)
from runs.models.imported import ImportReadingRecord, ImportRecord
from runs.models.judge import AnchorSetRecord, JudgingRecord, LabelRecord
from runs.models.lane import Lane, Priority
from runs.models.probe import AnswerSet, ProbeRecord
from runs.models.release import GateRecord, PolicyRecord, ReleaseRecord, Settling, SignOffRecord, Verdict
from runs.models.replay import ReplayRecord
from runs.models.response import CaseColumns, CaseFrame, RepeatScore, ResponseRecord, RunFiguresRecord, TraceBlock
from runs.models.retention import DeletionRecord, RetentionRuleRecord
from runs.models.rollouts import RolloutSeriesRecord, RolloutStepRecord
from runs.models.run import Event, RepeatRecord, RunRecord, Shard, Stray
from runs.models.schedule import ScheduledStart, ScheduleRecord
from runs.models.suite import (
    Case,
    ImageRecord,
    Scorer,
    ScoringRecord,
    Suite,
    SuiteNoise,
    SuiteVersionRecord,
    TrialRecord,
)
from runs.models.upload import UploadedCase, UploadPartRecord, UploadRecord
from runs.models.webhook import FollowRecord, OutboxMessage, WebhookRecord

__all__ = [
    "CHECKPOINT",
    "AnchorSetRecord",
    "AnswerSet",
    "AuditLineRecord",
    "AuditSeal",
    "BackendNameRecord",
    "BaselineRecord",
    "BucketRecord",
    "CallSlot",
    "Case",
    "CaseColumns",
    "CaseFrame",
    "CommentRecord",
    "ComparisonRecord",
    "DeletionRecord",
    "DivergenceRecord",
    "EndpointRecord",
    "EngineProcess",
    "Event",
    "ExperimentArm",
    "ExperimentRecord",
    "FingerprintRecord",
    "FollowRecord",
    "ForcedAnswerRecord",
    "ForcedScoringRecord",
    "GateRecord",
    "IdempotencyKey",
    "ImageRecord",
    "ImportReadingRecord",
    "ImportRecord",
    "JudgingRecord",
    "LabelRecord",
    "Lane",
    "ListedFrame",
    "Model",
    "OutboxMessage",
    "PolicyRecord",
    "Priority",
    "ProbeRecord",
    "ProfileRecord",
    "ReleaseRecord",
    "RepeatRecord",
    "RepeatScore",
    "ReplayRecord",
    "ResponseRecord",
    "RetentionRuleRecord",
    "RolloutSeriesRecord",
    "RolloutStepRecord",
    "Rotation",
    "RunFiguresRecord",
    "RunRecord",
    "SameModelRecord",
    "ScheduleRecord",
    "ScheduledStart",
    "Scorer",
    "ScoringRecord",
    "SelfTestRecord",
    "Settling",
    "Shard",
    "SignOffRecord",
    "Stray",
    "Suite",
    "SuiteNoise",
    "SuiteVersionRecord",
    "Token",
    "TourEnd",
    "TraceBlock",
    "TrialRecord",
    "UploadPartRecord",
    "UploadRecord",
    "UploadedCase",
    "Verdict",
    "VocabularyRecord",
    "WebhookRecord",
    "WorkerRecord",
]
