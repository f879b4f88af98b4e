"""Write a stored suite version as JSONL that `read_suite_jsonl` parses to the same digest."""

from collections.abc import Mapping
from typing import Any

from evalboard.core.digest import digest_json
from evalboard.core.scoring import KINDS

Spec = Mapping[str, Any]


def dump_header(*, title: str, max_tokens: int, stop: list[str], scorer: Spec | None) -> dict[str, Any]:
    """Return the first line."""
    own = {} if scorer is None else {"scorer": scorer}
    return {"suite": {"title": title, "max_tokens": max_tokens, "stop": stop, **own}}


def dump_case(
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
    """Return one case as JSON. `scorer`: its own in the scoring plan; `default`: the suite's.

    A plan keeps no scorer that is the suite's default too, but the digest covers it where the case named it.
    """
    named = {"id": case_id, "messages": content["messages"], "tools": content.get("tools"), "target": content["target"]}
    covered = {**named, "tags": tags, "group": group, "is_reference": is_reference}
    own_input = {"input": content["input"]} if "input" in content else {}
    if scorer is None and digest_json({**covered, **own_input, "scorer": None}) != digest:
        scorer = default
    used = scorer or default
    is_target_left_out = content["target"] is None and not (used and KINDS[used["kind"]].needs_target(used))
    optional = {"tools": content.get("tools"), "scorer": scorer, "tags": tags, "group": group}
    return {
        "id": case_id,
        "messages": content["messages"],
        **own_input,
        **({} if is_target_left_out else {"target": content["target"]}),
        **{name: value for name, value in optional.items() if value},
        **({"reference": True} if is_reference else {}),
    }
