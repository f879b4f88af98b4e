"""Export every sign-off with its proof: the chain, the signed verdict, and the verdict judged again.

Not within a snapshot, unlike the other exports: sign-offs are only ever added, and judging again takes its time.
"""

import json
from collections.abc import Iterator
from functools import lru_cache

from evalboard.core.errors import EvalboardError
from runs import release
from runs.models import Verdict


def sign_off_lines() -> Iterator[str]:
    """Yield a strict JSON object per line, with the names of docs/api-reference.md.

    Each verdict is judged once.
    """
    for line in release.sign_off_lines(lru_cache(maxsize=None)(_change)):
        yield json.dumps(line.to_json(), ensure_ascii=False, allow_nan=False) + "\n"


def _change(verdict_id: int) -> str:
    """Return how the stored verdict differs from judging again; "" if equal, or if it cannot be judged."""
    verdict = Verdict.objects.select_related("policy").get(pk=verdict_id)
    try:
        return release.verdict_change(verdict)
    except EvalboardError as problem:  # what it rested on can no longer be judged
        return f"Its verdict cannot be recomputed: {problem.detail}"
