"""What is said of a replay under production's settings: what came out, and in what it is not what production did."""

from typing import Any

from evalboard.wording.production import ProductionRequest, explain_production
from tests.core.golden.readers import Sentence, Situations

PLAIN: dict[str, Any] = {
    "profile": "production v2",
    "own_profile": None,
    "not_sent": (),
    "changes_tokens": (),
    "from_profile": (),
    "temperature": 0.0,
    "is_seeded": True,
    "has_limit": True,
    "has_tools": False,
    "batch_class": "alone",
}


def read(**asked: Any) -> list[Sentence]:
    result = {"error": None, "n_tokens": 128, "finish_reason": "stop"}
    return [
        Sentence("replay", "", text) for text in explain_production([result], ProductionRequest(**{**PLAIN, **asked}))
    ]


SITUATIONS: Situations = {
    "A request that was decoded as it was sent": read,
    "A request with fields that no engine here is given": lambda: read(
        not_sent=("response_format", "n", "user", "stream"), changes_tokens=("response_format", "n"), has_tools=True
    ),
    "A request that leaves much to the profile, drawn without a seed, in shared batches": lambda: read(
        from_profile=("top_p", "seed"), temperature=0.7, is_seeded=False, has_limit=False, batch_class="mixed"
    ),
}
