"""What nobody may miss about a run, and why nobody works at it."""

from datetime import UTC, datetime
from types import SimpleNamespace as Ahead  # the core is tested where contracts are not installed

from tests.core.golden.readers import Situations, read_run_warning, read_waiting

UNTIL = datetime(2026, 11, 22, 7, 2, 11, tzinfo=UTC)

SITUATIONS: Situations = {
    "One pin is broken": lambda: read_run_warning("pins_broken", pins=[["max_num_seqs", 1, 8]]),
    "Five pins are broken": lambda: read_run_warning("pins_broken", pins=[[name, 1, 8] for name in "abcde"]),
    "A run failed": lambda: read_run_warning("failed", failure="The engine is out of memory.\n\nTraceback …"),
    "A run failed without a word": lambda: read_run_warning("failed", failure=""),
    "A run was cancelled": lambda: read_run_warning("cancelled", n_done=310, n_total=4000),
    "Responses are missing": lambda: read_run_warning(
        "incomplete", by_code={"timeout": 12, "too_long": 3}, is_log=False, n_never=40, n_total=4000
    ),
    "One response of a log is missing": lambda: read_run_warning(
        "incomplete", by_code={}, is_log=True, n_never=1, n_total=4000
    ),
    "Two buckets served a run": lambda: read_run_warning("several_buckets", n=2),
    "Responses that the self-check no longer vouches for": lambda: read_run_warning("unvouched", n=12),
    "One response that the self-check no longer vouches for": lambda: read_run_warning("unvouched", n=1),
    "Answers cut inside their thinking": lambda: read_run_warning("truncated", n=31, is_log=False),
    "One answer cut inside its thinking": lambda: read_run_warning("truncated", n=1, is_log=False),
    "Answers of a log cut inside their thinking": lambda: read_run_warning("truncated", n=31, is_log=True),
    "A run under invariant without a certificate": lambda: read_run_warning(
        "uncertified", hosts=["gpu-1", "gpu-2"], endpoint="llama-8b", profile="invariant"
    ),
    "Processes of one bucket check themselves differently": lambda: read_run_warning("self_check_differs"),
    "A log that does not say what served": lambda: read_run_warning("unknown_stack"),
    "A server that does not say what served": lambda: read_run_warning("unknown_stack", is_remote=True),
    "A server of others": lambda: read_run_warning("reported"),
    "A server of others rests": lambda: read_run_warning(
        "endpoint_rests", until=UNTIL, n_failures=5, reason="It answered 503."
    ),
    "Answers out of a cache": lambda: read_run_warning("few_draws", n=120, n_total=4000),
    "A log": lambda: read_run_warning("imported", tool="lm-evaluation-harness"),
    "A log of texts": lambda: read_run_warning("text_only", text="The log has no logprobs."),
    "A log with unclean responses": lambda: read_run_warning("unclean_responses", text="3 responses were truncated."),
    "No worker fits": lambda: read_run_warning("no_matching_worker", why="nobody", pool="gpu"),
    "The queue is delayed": lambda: read_run_warning("queue_delayed", why="Redis does not answer."),
    "A run under a batching profile": lambda: read_run_warning("rough_profile", profile="fast"),
    "All repeats by one process": lambda: read_run_warning("one_process", n=5),
    "A suite of 40 cases": lambda: read_run_warning("coarse_suite", n_cases=40),
    "Nobody is there": lambda: read_waiting("nobody", pool="gpu"),
    "Two workers leave the run alone, for one reason": lambda: read_waiting(
        "left_alone", pool="gpu", reasons=[["it keeps to another serving stack.", 2]]
    ),
    "The only worker rests": lambda: read_waiting("resting", pool="gpu", n_resting=1, until=UNTIL, reasons=[]),
    "Two workers rest, and another leaves the run alone": lambda: read_waiting(
        "resting", pool="gpu", n_resting=2, until=UNTIL, reasons=[["no GPU is there.", 1]]
    ),
    "Its endpoint rests": lambda: read_waiting("endpoint_rests", until=UNTIL, n_failures=5, reason="It answered 503."),
    "No worker has an engine": lambda: read_waiting("no_engine", pool="gpu"),
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
