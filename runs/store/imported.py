"""What stands in for workers, engines and weights in runs that were read from other tools' logs."""

from evalboard.core.digest import digest_json

WORKER = POOL = "imports"  # a worker that never lived, for engine processes need one; no list of workers shows it
PROFILE = "imported"
ROLLOUTS = "rollouts"  # the format of what was drawn to train on
EXPORT, EXPORT_TOOL = "evalboard", "Evalboard"  # format and tool of an export that was read back
PROMPT_FILTERED = "prompt_filtered"  # the code of a response whose prompt the provider's filter refused
NOT_IN_LOG = "not_in_log"  # the code of a response that the log lacks: missing, and no error of anybody
# Codes of lines in a run's history of which it warns.
UNCLEAN, TEXT_ONLY, DROPPED = "unclean_responses", "text_only", "dropped_fields"
CALL_FINGERPRINTS = "call_fingerprints"
UNKNOWN_ENDING, USUAL_ENDING = "unknown_ending", "usual_ending"


def model_digest(name: str, revision: str = "") -> str:
    """Return what stands in for the digest of a model's content: its name, and the revision where one is declared."""
    return digest_json({"imported model": name} | ({"revision": revision} if revision else {}))
