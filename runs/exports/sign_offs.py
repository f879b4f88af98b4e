"""Every sign-off with the proof of it: the chain, the verdict that was signed, and that verdict taken anew.

Not within a snapshot, as the other exports: sign-offs are only ever added, and judging again takes its time.
"""

import json
from collections.abc import Iterator
from functools import lru_cache

from evalboard.core.errors import EvalboardError
from runs import release
from runs.models import Verdict


def sign_off_lines() -> Iterator[str]:
    """The export: a strict JSON object a line, with the names of docs/api-reference.md. Each verdict is judged once."""
    for line in release.sign_off_lines(lru_cache(maxsize=None)(_change)):
        yield json.dumps(line.to_json(), ensure_ascii=False, allow_nan=False) + "\n"


def _change(verdict_id: int) -> str:
    """How the stored verdict differs from what its inputs give; "" where it does not, or nobody can tell any more."""
    verdict = Verdict.objects.select_related("policy").get(pk=verdict_id)
    try:
        return release.verdict_change(verdict)
    except EvalboardError as problem:  # what it rested on can no longer be judged
        return f"Its verdict cannot be taken anew: {problem.detail}"
