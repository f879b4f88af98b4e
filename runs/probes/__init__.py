"""Checks of an endpoint itself: seeds, batches, routing, canaries."""

from runs.pairs.pair_facts import read_stacks
from runs.probes import probes, read
from runs.probes.hops import hops_of
from runs.probes.probes import (
    PROBES,
    ProbeCourse,
    claim_probe,
    course_of,
    create_probe,
    estimate_probe,
    fail_probe,
    finish_probe,
    let_probe_rest,
    record_calls,
)
from runs.probes.read import (
    CanaryLine,
    ProbeWork,
    canaries,
    newest_probes,
    probe_tokens,
    probe_work,
    probes_before,
    probes_to_mind,
)
from runs.probes.read_batches import comparable_batches, compare_batches
from runs.probes.vendors import read_vendor_card

__all__ = [
    "PROBES",
    "CanaryLine",
    "ProbeCourse",
    "ProbeWork",
    "canaries",
    "claim_probe",
    "comparable_batches",
    "compare_batches",
    "course_of",
    "create_probe",
    "estimate_probe",
    "fail_probe",
    "finish_probe",
    "hops_of",
    "let_probe_rest",
    "newest_probes",
    "probe_tokens",
    "probe_work",
    "probes",
    "probes_before",
    "probes_to_mind",
    "read",
    "read_stacks",
    "read_vendor_card",
    "record_calls",
]
