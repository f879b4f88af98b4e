"""What others served, in a log or when called: who answered, which tokens, and the row that an answer becomes."""

from runs.served.backends import UNNAMED, Known, bucket_of, known_parts, model_of, read_backend
from runs.served.live import LiveServing, PlacedAnswer, bucket_of_answer, close_processes
from runs.served.rows import answer_fields
from runs.served.words import Words, trace_by_ids

__all__ = [
    "UNNAMED",
    "Known",
    "LiveServing",
    "PlacedAnswer",
    "Words",
    "answer_fields",
    "bucket_of",
    "bucket_of_answer",
    "close_processes",
    "known_parts",
    "model_of",
    "read_backend",
    "trace_by_ids",
]
