"""What nobody may miss about a run, and why nobody works at it."""

from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace as Ahead  # the core is tested where contracts are not installed

from evalboard.wording.case import describe_deletion
from evalboard.wording.run import (
    dropped_fields,
    fingerprints_of_calls,
    unclean_responses,
    unknown_ending,
    usual_ending,
)
from tests.core.golden.readers import Situations, read_run_warnings, read_waiting

UNTIL = datetime(2026, 11, 22, 7, 2, 11, tzinfo=UTC)

SITUATIONS: Situations = {
    "Texts were deleted by a rule": lambda: read_run_warnings(
        deletions=[describe_deletion("texts", UNTIL, "rule 3: texts of runs after 90 days")]
    ),
    "A case was deleted": lambda: read_run_warnings(
        deletions=[describe_deletion("case", UNTIL, "a customer asked for it", "ticket-17")]
    ),
    "One pin is broken": lambda: read_run_warnings(broken=[("max_num_seqs", 1, 8)]),
    "Five pins are broken": lambda: read_run_warnings(broken=[(name, 1, 8) for name in "abcde"]),
    "A run failed": lambda: read_run_warnings(status="failed", failure="The engine is out of memory.\n\nTraceback …"),
    "A run failed without a word": lambda: read_run_warnings(status="failed"),
    "A run was cancelled": lambda: read_run_warnings(status="cancelled", n_decoded=310, n_total=4000),
    "Responses are missing": lambda: read_run_warnings(
        status="incomplete", errors=Counter(timeout=12, too_long=3), n_decoded=3960, n_total=4000
    ),
    "One response of a log is missing": lambda: read_run_warnings(
        status="incomplete", is_logged=True, n_decoded=3999, n_total=4000
    ),
    "Two buckets served a run": lambda: read_run_warnings(n_buckets=2),
    "Another model answered": lambda: read_run_warnings(
        asked_model="gpt-4-turbo", other_models={"gpt-3.5-turbo-0125": 1000}, n_decoded=1000
    ),
    "Answers of a greedy run were drawn": lambda: read_run_warnings(not_greedy=(12, 800)),
    "Repeats behind a cache that was cold at first": lambda: read_run_warnings(n_of_cold_cache=5),
    "Responses that the self-check no longer vouches for": lambda: read_run_warnings(n_unvouched=12),
    "One response that the self-check no longer vouches for": lambda: read_run_warnings(n_unvouched=1),
    "Answers cut inside their thinking": lambda: read_run_warnings(n_truncated=31),
    "One answer cut inside its thinking": lambda: read_run_warnings(n_truncated=1),
    "Answers of a log cut inside their thinking": lambda: read_run_warnings(n_truncated=31, is_logged=True),
    "Answers that ended in several ways": lambda: read_run_warnings(
        endings={"cut": 7, "filtered": 1, "empty": 12}, n_decoded=800
    ),
    "Prompts that the provider's filter refused": lambda: read_run_warnings(
        status="finished", errors=Counter(prompt_filtered=10), n_total=4000
    ),
    "Answers that ended with an unknown word": lambda: read_run_warnings(
        endings={"unknown": 12}, notes={"unknown_ending": unknown_ending("wrapped_up", 12, "hosted")}
    ),
    "Most answers ended with an unknown word": lambda: read_run_warnings(
        notes={"usual_ending": usual_ending("wrapped_up", 796, 800)}
    ),
    "A run under invariant without a certificate": lambda: read_run_warnings(
        uncertified=["gpu-1", "gpu-2"], endpoint="llama-8b", profile="invariant"
    ),
    "Processes of one bucket check themselves differently": lambda: read_run_warnings(has_unlike_self_checks=True),
    "A log that does not say what served": lambda: read_run_warnings(
        is_reported=True, is_logged=True, is_stack_unknown=True
    ),
    "A server that does not say what served": lambda: read_run_warnings(is_reported=True, is_stack_unknown=True),
    "A server of others": lambda: read_run_warnings(is_reported=True),
    "A server of others rests": lambda: read_run_warnings(
        is_reported=True, pause={"until": UNTIL, "n_failures": 5, "reason": "It answered 503."}
    ),
    "Answers out of a cache": lambda: read_run_warnings(
        status="incomplete", n_left_out=120, n_decoded=4000, n_total=4000
    ),
    "A log": lambda: read_run_warnings(is_reported=True, is_logged=True, tool="lm-evaluation-harness"),
    "Fingerprints that name calls": lambda: read_run_warnings(
        is_reported=True,
        is_stack_unknown=True,
        notes={"call_fingerprints": fingerprints_of_calls(1000, 1000, endpoint="hosted")},
    ),
    "Fingerprints of which most come once": lambda: read_run_warnings(
        is_reported=True, notes={"call_fingerprints": fingerprints_of_calls(812, 1000, endpoint="hosted")}
    ),
    "A log of texts": lambda: read_run_warnings(notes={"text_only": "The log has no logprobs."}),
    "A log with unclean responses": lambda: read_run_warnings(
        notes={"unclean_responses": unclean_responses({"cached": 3, "fallback": 1}, 90)}
    ),
    "Answers with fields that cannot be read": lambda: read_run_warnings(
        notes={"dropped_fields": dropped_fields({"logprobs": 12, "usage": 1})}
    ),
    "No worker fits": lambda: read_run_warnings(deserted=("nobody", {"pool": "gpu"})),
    "The queue is delayed": lambda: read_run_warnings(doorbell_problem="Redis does not answer."),
    "A run under a batching profile": lambda: read_run_warnings(profile="fast", is_mixed=True),
    "All repeats by one process": lambda: read_run_warnings(n_of_one_process=5),
    "A suite of 40 cases": lambda: read_run_warnings(n_cases=40),
    "Nobody is there": lambda: read_waiting("nobody", pool="gpu"),
    "Two workers leave the run alone, for one reason": lambda: read_waiting(
        "left_alone", pool="gpu", reasons=[["the run must stay on the serving stack that it began on.", 2]]
    ),
    "The only worker rests": lambda: read_waiting("resting", pool="gpu", n_resting=1, until=UNTIL, reasons=[]),
    "Two workers rest, and another leaves the run alone": lambda: read_waiting(
        "resting", pool="gpu", n_resting=2, until=UNTIL, reasons=[["no GPU is there.", 1]]
    ),
    "Its endpoint rests": lambda: read_waiting("endpoint_rests", until=UNTIL, n_failures=5, reason="It answered 503."),
    "No worker has an engine": lambda: read_waiting("no_engine", pool="gpu"),
    "Nobody has the scorer": lambda: read_waiting("no_scorer", names=["folded (3f2a9c10)"]),
    "Workers have other code": lambda: read_waiting(
        "no_scorer", names=["folded (3f2a9c10)"], instead=["folded (52766643)"]
    ),
    "A worker scores": lambda: read_waiting("scoring", names=["folded"], n_done=120, n=300),
    "A judge is to score": lambda: read_waiting("judging", endpoint="referee", judge_run=None),
    "A judge scores": lambda: read_waiting("judging", endpoint="referee", judge_run=12, n_done=40, n=400),
    "The engine did not start": lambda: read_waiting("paused", until=UNTIL),
    "A busy pool": lambda: read_waiting("queued", pool="gpu", n_alive=2, are_busy=True, ahead=None),
    "A run that was just made": lambda: read_waiting("queued", pool="gpu", n_alive=1, are_busy=False, ahead=None),
    "A run behind others, at a known rate": lambda: read_waiting(
        "queued",
        pool="gpu",
        n_alive=2,
        are_busy=True,
        ahead=Ahead(n_shards=3, n_runs=2, n_responses=300, seconds=240.0),
    ),
    "A run behind one shard, at no known rate": lambda: read_waiting(
        "queued", pool="gpu", n_alive=1, are_busy=True, ahead=Ahead(n_shards=1, n_runs=1, n_responses=12, seconds=None)
    ),
}
