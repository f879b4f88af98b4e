"""Reads the golden corpus of tricky pairs, data/divergence/pairs.toml; its head says how they are written."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from evalboard.core.trace import vocabulary
from evalboard.core.trace.trace import TokenTrace, make_trace
from evalboard.core.trace.vocabulary import Vocabulary

FILE = Path(__file__).parent / "data" / "divergence" / "pairs.toml"
END = "<end>"


@dataclass(frozen=True)
class Written:
    """One pair of the corpus; vocabularies is None where both sides have one."""

    name: str
    baseline: TokenTrace
    candidate: TokenTrace
    vocabularies: tuple[Vocabulary, Vocabulary] | None
    is_decimal: bool
    wanted: dict[str, Any]


def corpus() -> list[Written]:
    return [_read(entry) for entry in tomllib.loads(FILE.read_text())["pair"]]


def _read(entry: dict[str, Any]) -> Written:
    # The candidate's own numbering starts elsewhere, so that no id means the same on both sides.
    is_own = entry.get("vocabularies") == "own"
    ours: dict[str, int] = {END: 0}
    theirs = {"unused": 0, END: 1, "unused too": 2} if is_own else ours
    baseline, candidate = _trace(entry["baseline"], ours), _trace(entry["candidate"], theirs)
    return Written(
        name=entry["name"],
        baseline=baseline,
        candidate=candidate,
        vocabularies=(_vocabulary(ours), _vocabulary(theirs)) if is_own else None,
        is_decimal=entry.get("decimals", False),
        wanted={name: None if value == "none" else value for name, value in entry["wanted"].items()},
    )


def _trace(rows: list[str], numbers: dict[str, int]) -> TokenTrace:
    ids, logprobs, alternatives = [], [], []
    for row in rows:
        chosen, _, listed = row.rpartition(":")
        pairs = [part.split() for part in listed.split(",") if part.strip()]
        found = {token: float(logprob) for token, logprob in pairs}
        token, _, given = chosen.partition(" ")
        logprobs.append(float(given) if given else found[token])
        ids.append(numbers.setdefault(token, len(numbers)))
        alternatives.append([(numbers.setdefault(name, len(numbers)), logprob) for name, logprob in found.items()])
    return make_trace(ids, logprobs, alternatives)


def _vocabulary(numbers: dict[str, int]) -> Vocabulary:
    packed = vocabulary.pack_vocabulary([unquote_to_bytes(token) for token in numbers], end_ids=[numbers[END]])
    return Vocabulary.unpack(packed)
