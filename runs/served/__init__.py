"""Store answers of external servers, from logs or calls: backends, tokens and responses."""

from runs.served.backends import bucket_of, model_of
from runs.served.live import LiveServing, PlacedAnswer, bucket_of_answer, close_processes, key_of_run
from runs.served.words import Words

__all__ = [
    "LiveServing",
    "PlacedAnswer",
    "Words",
    "bucket_of",
    "bucket_of_answer",
    "close_processes",
    "key_of_run",
    "model_of",
]
