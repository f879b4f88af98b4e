"""Find where two Inspect logs first part, by Inspect's own API: python peer_inspect.py BASELINE CANDIDATE [--whole].

It runs under an interpreter that has `inspect-ai`, and prints JSON. What no divergence needs is left out of what is
read, as the API offers. With --whole everything is read: a report of prompts, scores and who answered needs it.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inspect_ai.log import read_eval_log

NOT_NEEDED = {"events", "messages", "attachments", "store"}


def main(baseline: Path, candidate: Path, *, is_whole: bool) -> None:
    began, processor_began = time.perf_counter(), time.process_time()
    both = zip(*(read_tokens(path, is_whole=is_whole) for path in (baseline, candidate)), strict=True)
    flips = [flip for before, after in both if (flip := first_other(before, after)) is not None]
    found = {
        "version": version("inspect-ai"),
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - processor_began,
        "n_flips": len(flips),
        "n_bytes": baseline.stat().st_size + candidate.stat().st_size,
    }
    print(json.dumps(found))


def read_tokens(path: Path, *, is_whole: bool) -> list[list[str]]:
    log = read_eval_log(str(path), exclude_fields=None if is_whole else NOT_NEEDED)
    samples = sorted(log.samples, key=lambda sample: (str(sample.id), sample.epoch))
    if is_whole:
        assert all(sample.output.completion and sample.scores and sample.events for sample in samples)
    return [[entry.token for entry in sample.output.choices[0].logprobs.content] for sample in samples]


def first_other(before: list[Any], after: list[Any]) -> int | None:
    return next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), is_whole="--whole" in sys.argv)
