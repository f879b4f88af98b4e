"""Who served: fingerprints, how they differ, when an endpoint changed; models that are the same."""

from runs.fingerprints.read import (
    FingerprintUse,
    fingerprint_difference,
    fingerprint_report,
    fingerprint_rows,
    fingerprint_use,
    logged_names,
    same_model_rows,
)
from runs.fingerprints.read_endpoint import endpoint_report, newest_check
from runs.fingerprints.read_shares import Arrival, DailyShares, Stack, daily_shares
from runs.fingerprints.read_timeline import (
    EndpointTimeline,
    ServedBucket,
    ServedFingerprint,
    served_buckets,
    timelines,
)
from runs.fingerprints.same_models import say_same_model, take_back_same_model

__all__ = [
    "Arrival",
    "DailyShares",
    "EndpointTimeline",
    "FingerprintUse",
    "ServedBucket",
    "ServedFingerprint",
    "Stack",
    "daily_shares",
    "endpoint_report",
    "fingerprint_difference",
    "fingerprint_report",
    "fingerprint_rows",
    "fingerprint_use",
    "logged_names",
    "newest_check",
    "same_model_rows",
    "say_same_model",
    "served_buckets",
    "take_back_same_model",
    "timelines",
]
