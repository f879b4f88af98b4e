"""Where two Inspect logs first part, by Inspect's own API: python peer_inspect.py BASELINE CANDIDATE, under an
interpreter that has `inspect-ai`. Prints JSON.

What no divergence needs is left out of what is read, as the API offers.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inspect_ai.log import read_eval_log, write_eval_log

NOT_NEEDED = {"events", "messages", "attachments", "store"}


def main(baseline: Path, candidate: Path) -> None:
    # As Inspect itself packs them.
    for path in (baseline, candidate):
        write_eval_log(read_eval_log(str(path)), str(path))
    began, processor_began = time.perf_counter(), time.process_time()
    both = zip(read_tokens(baseline), read_tokens(candidate), strict=True)
    flips = [flip for before, after in both if (flip := first_other(before, after)) is not None]
    found = {
        "version": version("inspect-ai"),
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - processor_began,
        "n_flips": len(flips),
        "n_bytes": baseline.stat().st_size + candidate.stat().st_size,
    }
    print(json.dumps(found))


def read_tokens(path: Path) -> list[list[str]]:
    log = read_eval_log(str(path), exclude_fields=NOT_NEEDED)
    samples = sorted(log.samples, key=lambda sample: (str(sample.id), sample.epoch))
    return [[entry.token for entry in sample.output.choices[0].logprobs.content] for sample in samples]


def first_other(before: list[Any], after: list[Any]) -> int | None:
    return next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
