"""A stored suite version as the JSONL that `suite.read_jsonl` reads: parsed again, it has the very same digest."""

from collections.abc import Mapping
from typing import Any

from evalboard.core.digest import digest_json
from evalboard.core.scoring import KINDS

Spec = Mapping[str, Any]


def header(*, title: str, max_tokens: int, stop: list[str], scorer: Spec | None) -> dict[str, Any]:
    """The first line."""
    own = {} if scorer is None else {"scorer": scorer}
    return {"suite": {"title": title, "max_tokens": max_tokens, "stop": stop, **own}}


def line(
    *,
    case_id: str,
    content: Mapping[str, Any],
    tags: list[str],
    group: str,
    is_reference: bool,
    scorer: Spec | None,
    default: Spec | None,
    digest: str,
) -> dict[str, Any]:
    """One case. `scorer` is its own one as the scoring plan has it, `default` the suite's, `digest` the stored one.

    A plan keeps no scorer that is the suite's default too, but the digest covers it where the case named it.
    """
    named = {"id": case_id, "messages": content["messages"], "tools": content.get("tools"), "target": content["target"]}
    covered = {**named, "tags": tags, "group": group, "is_reference": is_reference}
    if scorer is None and digest_json({**covered, "scorer": None}) != digest:
        scorer = default
    used = scorer or default
    is_target_left_out = content["target"] is None and not (used and KINDS[used["kind"]].needs_target(used))
    optional = {"tools": content.get("tools"), "scorer": scorer, "tags": tags, "group": group}
    return {
        "id": case_id,
        "messages": content["messages"],
        **({} if is_target_left_out else {"target": content["target"]}),
        **{name: value for name, value in optional.items() if value},
        **({"reference": True} if is_reference else {}),
    }
