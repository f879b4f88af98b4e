"""Damaged copies of a log: bits, bytes, lines and single fields changed, by a seed."""

import json
import random
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from evalboard.importers.files import LogFile
from evalboard.importers.zip_members import Members
from tests.importers.zips import zip_of
from tests.recorded import LOGS

# The files of each sample, by patterns under tests/data/logs.
SAMPLES = {
    "inspect": ["inspect/fp32_baseline.eval"],
    "inspect_killed": ["inspect/killed_started.eval"],
    "lm_eval": ["lm_eval/results_*.json", "lm_eval/samples_*.jsonl"],
    "promptfoo": ["promptfoo/out_fp32.json"],
    "vllm_batch": ["vllm_run_batch/batch_input.jsonl", "vllm_run_batch/batch_output.jsonl"],
    "anthropic_batch": ["anthropic_batch/requests.jsonl", "anthropic_batch/results.jsonl"],
    "litellm": ["litellm/proxy.jsonl"],
    "scores": ["scored_lines/sentences.jsonl"],
    "chat": ["openai_chat/chat_fp32.jsonl"],
    "chat_edges": ["openai_chat/edge_cases.jsonl"],
    "stream": ["openai_chat/stream.sse"],
    "rollouts": ["rollouts/plain_fp32.jsonl"],
}
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**70, 1e308, float("nan"), "", "x", "\ud800", "\0", "x" * 300, [], {}, [None]),
    *([[]], {"a": 1}, ["x"], [{}], [1.5], {"": None}, json.loads("[" * 60 + "]" * 60), {str(n): n for n in range(150)}),
)


def whole(sample: str) -> dict[str, bytes]:
    """Return the files of a sample by name."""
    return {path.name: path.read_bytes() for pattern in SAMPLES[sample] for path in sorted(LOGS.glob(pattern))}


def damage(sample: str, seed: int) -> tuple[str, dict[str, bytes]]:
    """Return what was done to a sample, in words, and its files by name."""
    rng, files = random.Random(f"{sample} {seed}"), whole(sample)
    name = rng.choice(list(files))
    kind = rng.choice(("flip", "cut", "drop", "duplicate", "line", "field", "field", "field", "field"))
    if name.endswith(".eval") and kind in ("line", "field"):
        what, files[name] = _in_zip(rng, files[name])
    elif kind == "line":
        what, files[name] = _lines(rng, files[name])
    elif kind == "field" and not name.endswith(".sse"):
        what, files[name] = _field_of_rows(rng, files[name])
    else:
        what, files[name] = _bytes(rng, kind if kind != "field" else "flip", files[name])
    return f"{sample} {seed}, {name}: {what}", files


def written(folder: Path, files: Mapping[str, bytes]) -> list[LogFile]:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [LogFile(name, folder / name) for name in files]


def _bytes(rng: random.Random, kind: str, content: bytes) -> tuple[str, bytes]:
    at = rng.randrange(len(content))
    end = min(len(content), at + rng.choice((1, 2, 7, 100, 4000)))
    if kind == "flip":
        flipped = bytearray(content)
        flipped[at] ^= 1 << rng.randrange(8)
        return f"flip a bit of byte {at}", bytes(flipped)
    if kind == "cut":
        return f"cut at {at}", content[:at]
    if kind == "drop":
        return f"drop {at}:{end}", content[:at] + content[end:]
    return f"duplicate {at}:{end}", content[:end] + content[at:]


def _lines(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    lines = content.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    kind = rng.choice(("drop", "duplicate", "swap", "blank", "odd"))
    if kind == "drop":
        lines.pop(at)
    elif kind == "duplicate":
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif kind == "swap":
        rng.shuffle(lines)
    else:
        odd = b"\n" if kind == "blank" else json.dumps(rng.choice(ODD)).encode() + b"\n"
        lines.insert(at, odd)
    return f"{kind} line {at + 1}", b"".join(lines)


def _field_of_rows(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """Change a field of one row, or of the one object that the file is."""
    try:
        rows = [json.loads(content)]
        ending = b""
    except ValueError:
        rows = [json.loads(line) for line in content.splitlines() if line.strip()]
        ending = b"\n"
    at = rng.randrange(len(rows))
    what, text = _field(rng, rows[at])
    texts = [json.dumps(row).encode() for row in rows]
    texts[at] = text
    return f"row {at + 1}, {what}", b"".join(text + ending for text in texts)


def _in_zip(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    folded = BytesIO(content)
    with zipfile.ZipFile(folded) as archive:
        names = [name for name in archive.namelist() if name.endswith(".json")]
    members = {name: _member(content, name) for name in names}
    name = rng.choice(names)
    kind = rng.choice(("drop", "field", "field", "field", "bytes"))
    if kind == "drop":
        members.pop(name)
        return f"drop {name}", zip_of(members)
    if kind == "bytes":
        what, members[name] = _bytes(rng, rng.choice(("flip", "cut", "drop", "duplicate")), members[name])
    else:
        what, members[name] = _field(rng, json.loads(members[name]))
    return f"{name}, {what}", zip_of(members)


_MEMBERS: dict[int, Members] = {}


def _member(content: bytes, name: str) -> bytes:
    key = hash(content)
    if key not in _MEMBERS:
        [path] = [path for path in (LOGS / "inspect").glob("*.eval") if path.read_bytes() == content]
        _MEMBERS[key] = Members(LogFile(path.name, path))
        _MEMBERS[key]._left = 1 << 60  # as often as there are mutants
    return _MEMBERS[key].read(name)


def _field(rng: random.Random, value: Any) -> tuple[str, bytes]:
    """Change one member of a JSON value in place, and return what was done with the text."""
    holder, path = value, []
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            break
        key = rng.choice(keys)
        path.append(key)
        if not isinstance(holder[key], dict | list) or not holder[key] or rng.random() < 0.25:
            break
        holder = holder[key]
    if not path:
        return "nothing", json.dumps(value).encode()
    place, key = ".".join(map(str, path)), path[-1]
    kind = rng.choice(("type", "type", "type", "drop", "duplicate", "rename"))
    if kind == "drop":
        holder.pop(key)
    elif kind == "duplicate" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif kind == "rename" and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    elif kind == "duplicate":  # the key again, with something else: the last one counts
        text = json.dumps(value).replace(f"{json.dumps(key)}: ", f"{json.dumps(key)}: 1, {json.dumps(key)}: ", 1)
        return f"{place} twice", text.encode()
    else:
        odd = rng.choice(ODD)
        holder[key] = odd
        return f"{place} = {json.dumps(odd)[:40]}", json.dumps(value).encode()
    return f"{kind} {place}", json.dumps(value).encode()
