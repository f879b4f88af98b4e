"""What stands in for workers and engines in runs that were read from other tools' logs."""

WORKER = POOL = "imports"  # a worker that never lived, for engine processes need one; no list of workers shows it
PROFILE = "imported"
# Codes of lines in a run's history that its page warns of.
UNCLEAN, TEXT_ONLY = "unclean_responses", "text_only"
WARNED_OF = (TEXT_ONLY, UNCLEAN)
