"""Equal texts spelled by other tokens, as two servers of one model cut them: how many a comparison calls flips."""

import random

from evalboard.core.compare import TracedText, WordsById, find_parting
from evalboard.core.trace import TokenTrace, Vocabulary, make_trace, pack_vocabulary

SYLLABLES = ("ka", " lo", "mi", " é", "ru\n", "🌧", " ta", "n", "se ", "  ", "zo.", "7")


def count_flips(n_pairs: int, *, seed: int, tail: tuple[str, str] = ("", "")) -> int:
    """Count the pairs of equal texts that part. tail: what either side goes on with."""
    draw = random.Random(seed)
    return sum(_is_flip(draw, tail) for _ in range(n_pairs))


def _is_flip(draw: random.Random, tail: tuple[str, str]) -> bool:
    text = "".join(draw.choices(SYLLABLES, k=draw.randint(4, 60)))
    cuts = [[*_cut(text.encode(), draw), *([end.encode()] if end else [])] for end in tail]
    tokens = sorted({token for side in cuts for token in side})
    words = WordsById(lambda _: Vocabulary.unpack(pack_vocabulary(tokens)))
    sides = (
        TracedText(text + end, _trace(side, tokens, draw), 1, is_logged=True)
        for side, end in zip(cuts, tail, strict=True)
    )
    parted = find_parting(*sides, words)
    return parted is not None and parted.kind not in ("identical", "drift_only")


def _cut(text: bytes, draw: random.Random) -> list[bytes]:
    """Cut bytes anywhere, inside characters too."""
    places = sorted(draw.sample(range(1, len(text)), k=min(len(text) - 1, draw.randint(1, 40))))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def _trace(pieces: list[bytes], tokens: list[bytes], draw: random.Random) -> TokenTrace:
    ids = [tokens.index(piece) for piece in pieces]
    logprobs = [-draw.random() for _ in ids]
    listed = [[(own, value), ((own + 1) % len(tokens), value - 1.0)] for own, value in zip(ids, logprobs, strict=True)]
    return make_trace(ids, logprobs, listed)
