"""Plan the calls of a probe and judge their answers (docs/probes.md)."""

from evalboard.core.probes.answers import count_shared
from evalboard.core.probes.audit_probe import judge_audit_probe
from evalboard.core.probes.batch_comparison import compare_batch_probes
from evalboard.core.probes.batch_probe import judge_batch_probe
from evalboard.core.probes.border_probe import MAX_EARLIER, judge_border_probe, judge_watch
from evalboard.core.probes.call import ProbeExchange, ProbeResult, dump_call, parse_call
from evalboard.core.probes.canary_probe import (
    CANARY_BASELINE,
    CANARY_CHANGES,
    CANARY_MIN_BASELINE,
    CANARY_WINDOW,
    judge_canary_probe,
)
from evalboard.core.probes.capability_calls import select_needed_calls
from evalboard.core.probes.capability_probe import PARAMETERS, judge_capability_probe
from evalboard.core.probes.determinism_probe import judge_determinism_probe
from evalboard.core.probes.parameters import choose_sampling, complete_parameters, list_prompt_texts, plan_calls
from evalboard.core.probes.prompts import BORDER
from evalboard.core.probes.routing_probe import judge_routing_probe
from evalboard.core.probes.seed_probe import SEED_SIGNIFICANT, judge_seed_probe
from evalboard.core.probes.vendor_calls import TOOLS, WITH_TOOLS
from evalboard.core.probes.vendor_probe import VENDOR_ROWS, judge_vendor_facts, judge_vendor_probe

__all__ = [
    "BORDER",
    "CANARY_BASELINE",
    "CANARY_CHANGES",
    "CANARY_MIN_BASELINE",
    "CANARY_WINDOW",
    "MAX_EARLIER",
    "PARAMETERS",
    "SEED_SIGNIFICANT",
    "TOOLS",
    "VENDOR_ROWS",
    "WITH_TOOLS",
    "ProbeExchange",
    "ProbeResult",
    "choose_sampling",
    "compare_batch_probes",
    "complete_parameters",
    "count_shared",
    "dump_call",
    "judge_audit_probe",
    "judge_batch_probe",
    "judge_border_probe",
    "judge_canary_probe",
    "judge_capability_probe",
    "judge_determinism_probe",
    "judge_routing_probe",
    "judge_seed_probe",
    "judge_vendor_facts",
    "judge_vendor_probe",
    "judge_watch",
    "list_prompt_texts",
    "parse_call",
    "plan_calls",
    "select_needed_calls",
]
