"""Checks of an endpoint itself: seeds, batches, routing, canaries."""

from runs.pairs.pair_facts import read_stacks
from runs.probes import probes, read
from runs.probes.hops import hops_of
from runs.probes.probes import (
    PROBES,
    claim_probe,
    create_probe,
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
from runs.probes.verifying import go_on_verifying, makes_no_calls

__all__ = [
    "PROBES",
    "CanaryLine",
    "ProbeWork",
    "canaries",
    "claim_probe",
    "comparable_batches",
    "compare_batches",
    "create_probe",
    "fail_probe",
    "finish_probe",
    "go_on_verifying",
    "hops_of",
    "let_probe_rest",
    "makes_no_calls",
    "newest_probes",
    "probe_tokens",
    "probe_work",
    "probes",
    "probes_before",
    "probes_to_mind",
    "read",
    "read_stacks",
    "record_calls",
]
