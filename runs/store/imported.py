"""The placeholders for workers, engines and weights in runs from other tools' logs."""

from evalboard.logged.runs import NOT_IN_LOG, PROFILE, PROMPT_FILTERED

__all__ = [
    "CALL_FINGERPRINTS",
    "DROPPED",
    "EXPORT",
    "EXPORT_TOOL",
    "NOT_IN_LOG",
    "POOL",
    "PROFILE",
    "PROMPT_FILTERED",
    "ROLLOUTS",
    "TEXT_ONLY",
    "UNCLEAN",
    "UNKNOWN_ENDING",
    "USUAL_ENDING",
    "WORKER",
]

WORKER = POOL = "imports"  # a worker that never lived, for engine processes need one; no list of workers shows it
ROLLOUTS = "rollouts"  # the format of what was drawn to train on
EXPORT, EXPORT_TOOL = "evalboard", "Evalboard"  # format and tool of an export that was read back
# Codes of lines in a run's history of which it warns.
UNCLEAN, TEXT_ONLY, DROPPED = "unclean_responses", "text_only", "dropped_fields"
CALL_FINGERPRINTS = "call_fingerprints"
UNKNOWN_ENDING, USUAL_ENDING = "unknown_ending", "usual_ending"
