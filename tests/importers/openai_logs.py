"""Small logs of OpenAI-compatible answers, written in code, and the real ones by their paths."""

import json
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from tests.recorded import LOGS

_NUMBERS = count(1)  # no server gives two answers one id
RAIN = [{"role": "user", "content": "Write about rain."}]


def sample(path: str) -> LogFile:
    return LogFile(Path(path).name, LOGS / path)


def written(folder: Path, name: str, content: bytes | str | Iterable[Mapping[str, Any]]) -> LogFile:
    """A file of this content; objects are put one a line."""
    if not isinstance(content, bytes | str):
        content = "".join(json.dumps(row) + "\n" for row in content)
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return LogFile(name, path)


def entry(token: str, logprob: float, *others: tuple[str, float]) -> dict[str, Any]:
    """A token of `logprobs.content`, with alternatives as given."""
    listed = [_token(other, value) for other, value in others]
    return {**_token(token, logprob), "top_logprobs": listed}


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def choice(text: str = "Rain.", *tokens: dict[str, Any], index: int = 0, **fields: Any) -> dict[str, Any]:
    logprobs = {"content": list(tokens)} if tokens else None
    message = {"role": "assistant", "content": text}
    return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": "stop", **fields}


def body(*choices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{next(_NUMBERS)}",
        "object": "chat.completion",
        "created": 1_795_227_183,
        "model": "acme",
        "choices": list(choices) or [choice()],
        "system_fingerprint": "fp-1",
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        **fields,
    }


def request(**fields: Any) -> dict[str, Any]:
    return {"model": "acme", "messages": RAIN, "temperature": 0, "seed": 42, **fields}


def told(run: LoggedRun) -> list[tuple[str, int, str]]:
    """Case, repeat and text of each response; "!" for a missing one."""
    return [(one.case_id, one.repeat, "!" if one.error else one.text) for one in run.responses]
