"""A small log, written in code: the output of a batch, which has a case's id and the response on each line."""

import json
from collections.abc import Mapping
from typing import Any

MODEL = "acme-7b"
CREATED = 1_763_600_000


def output(answers: Mapping[str, str], *, fingerprint: str = "") -> bytes:
    """A line for each case id with the text that was answered."""
    return b"".join(json.dumps(_line(case_id, text, fingerprint)).encode() + b"\n" for case_id, text in answers.items())


def _line(case_id: str, text: str, fingerprint: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {
        "id": f"chatcmpl-{case_id}",
        "object": "chat.completion",
        "created": CREATED,
        "model": MODEL,
        "system_fingerprint": fingerprint or None,
        "choices": [choice],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }
    response = {"status_code": 200, "request_id": f"request-{case_id}", "body": body}
    return {"id": f"batch-{case_id}", "custom_id": case_id, "response": response, "error": None}
