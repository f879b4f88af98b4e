"""Two traces part where their tokens do; what the numbers were there is told exactly, and nothing after it counts."""

import json
import math
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.compare import alignment, divergence, drift
from evalboard.core.compare.divergence import Divergence, find_divergence, find_divergences, find_text_divergence
from evalboard.core.trace import codec, join_traces, vocabulary
from evalboard.core.trace.trace import IMPOSSIBLE, NO_TOKEN, TokenTrace, make_trace
from evalboard.core.trace.vocabulary import Vocabulary
from tests import make
from tests.core.pairs import Written, corpus
from tests.recorded import LOGS

DATA = Path(__file__).parent / "data"

CORPUS = corpus()


def as_written(pair: Written) -> Divergence:
    return find_divergence(pair.baseline, pair.candidate, vocabularies=pair.vocabularies, is_decimal=pair.is_decimal)


def swapped(found: Divergence) -> Divergence:
    """The same divergence with the sides' facts exchanged."""
    facts = asdict(found)
    other = {"baseline": "candidate", "candidate": "baseline"}
    turned = {}
    for name, value in facts.items():
        for side, opposite in other.items():
            if name.endswith(side):
                turned[name.removesuffix(side) + opposite] = value
    for name in ("drift_onset", "parts_at"):
        turned[name], turned[f"{name}_candidate"] = facts[f"{name}_candidate"], facts[name]
    turned["shorter"] = other.get(found.shorter or "")
    return replace(found, **{name: value for name, value in turned.items() if name in facts})


def assert_same(found: Divergence, wanted: Divergence) -> None:
    for name, value in asdict(found).items():
        if name == "shift_max_at" and found.is_approximate:
            continue  # of the baseline, which the other side cuts into other tokens
        expected = getattr(wanted, name)
        assert value == (pytest.approx(expected, rel=1e-12) if isinstance(expected, float) else expected), name


@pytest.mark.parametrize("pair", CORPUS, ids=[pair.name.replace(" ", "-") for pair in CORPUS])
def test_the_corpus_is_read_as_it_says(pair: Written) -> None:
    found = as_written(pair)
    for name, wanted in pair.wanted.items():
        assert getattr(found, name) == (pytest.approx(wanted, abs=1e-6) if type(wanted) is float else wanted), name


@pytest.mark.parametrize("pair", CORPUS, ids=[pair.name.replace(" ", "-") for pair in CORPUS])
def test_the_corpus_swapped_gives_the_same_positions_and_swapped_facts(pair: Written) -> None:
    turned = find_divergence(
        pair.candidate,
        pair.baseline,
        vocabularies=pair.vocabularies and pair.vocabularies[::-1],
        is_decimal=pair.is_decimal,
    )
    assert_same(turned, swapped(as_written(pair)))


logprobs = st.floats(-20, 0, width=32) | st.sampled_from([0.0, -0.0, -0.5, -math.inf, -9999.0, math.nan])


@st.composite
def traces(draw: st.DrawFn, min_size: int = 0) -> TokenTrace:
    """Few tokens, so that two traces often share a beginning; any logprobs, ties and non-finite ones included."""
    n, k = draw(st.integers(min_size, 8)), draw(st.integers(0, 4))
    rows = []
    for _ in range(n):
        names = draw(st.lists(st.integers(0, 5), min_size=0, max_size=k, unique=True))
        rows.append([(name, draw(logprobs)) for name in names])
    chosen = [draw(st.integers(0, 1)) for _ in range(n)]
    return make_trace(
        chosen, [dict(row).get(token, draw(logprobs)) for token, row in zip(chosen, rows, strict=True)], rows
    )


@given(traces())
def test_a_trace_never_diverges_from_itself(trace: TokenTrace) -> None:
    found = find_divergence(trace, trace)
    assert found.kind == "identical"
    assert found.shift_rms in (None, 0.0)


NAMES = [b"ab", b"a", b"b", b"c\xc3", b"\xa9", b" "]
WORDS = Vocabulary.unpack(vocabulary.pack_vocabulary(NAMES, end_ids=[5]))
OTHER_WORDS = Vocabulary.unpack(vocabulary.pack_vocabulary(NAMES[::-1], end_ids=[0]))


@st.composite
def trace_pairs(draw: st.DrawFn) -> tuple[TokenTrace, TokenTrace, tuple[Vocabulary, Vocabulary] | None]:
    """Two traces of nothing in common, or one that moved from a position on, perhaps to another token."""
    one = draw(traces())
    if draw(st.booleans()) or not len(one):
        return one, draw(traces()), draw(st.sampled_from([None, (WORDS, OTHER_WORDS)]))
    onset, flip, by = draw(st.integers(0, len(one))), draw(st.integers(0, len(one))), draw(st.floats(-0.5, 0, width=32))
    listed, tokens = one.alternative_logprobs.copy(), one.token_ids.copy()
    listed[onset:, draw(st.integers(0, 4)) :] += np.float32(by)
    tokens[flip : flip + 1] += 1
    other = TokenTrace(tokens, one.logprobs, one.alternative_ids, listed)
    return one, other, draw(st.sampled_from([None, (WORDS, WORDS)]))


@given(st.lists(trace_pairs(), max_size=6), st.booleans(), st.integers(1, 60))
def test_many_pairs_at_once_part_as_each_does_alone_to_the_bit(
    pairs: list[tuple[TokenTrace, TokenTrace, tuple[Vocabulary, Vocabulary] | None]], is_decimal: bool, part_cells: int
) -> None:
    one, other, words = ([pair[place] for pair in pairs] for place in range(3))
    with mock.patch.object(divergence, "PART_CELLS", part_cells):
        together = find_divergences(join_traces(one), join_traces(other), vocabularies=words, is_decimal=is_decimal)
    alone = [find_divergence(*pair[:2], vocabularies=pair[2], is_decimal=is_decimal) for pair in pairs]
    assert list(map(to_the_bit, together)) == list(map(to_the_bit, alone))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_real_traces_together_part_as_each_does_alone_to_the_bit(dtype: str) -> None:
    recorded = codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes())
    rng = np.random.default_rng(7)
    moved = [
        replace(trace, alternative_logprobs=trace.alternative_logprobs + rng.normal(0, 0.01, (len(trace), 1)))
        for trace in recorded
    ]
    sides = [*recorded, *recorded], [*moved, *recorded[::-1]]
    together = find_divergences(*map(join_traces, sides))
    assert list(map(to_the_bit, together)) == [to_the_bit(find_divergence(*pair)) for pair in zip(*sides, strict=True)]


def to_the_bit(found: Divergence) -> dict[str, Any]:
    """A divergence's facts by name, with every bit of each float."""
    return {name: value.hex() if isinstance(value, float) else value for name, value in asdict(found).items()}


@given(traces(), traces())
def test_swapping_the_sides_keeps_every_position(one: TokenTrace, other: TokenTrace) -> None:
    assert_same(find_divergence(other, one), swapped(find_divergence(one, other)))


@given(traces(min_size=1), traces(min_size=1), traces(), traces())
def test_a_change_after_the_flip_changes_nothing(
    one: TokenTrace, other: TokenTrace, tail: TokenTrace, other_tail: TokenTrace
) -> None:
    found = find_divergence(one, other)
    if found.flip_position is None:
        return
    changed = find_divergence(
        joined(one, found.flip_position + 1, tail), joined(other, found.flip_position + 1, other_tail)
    )
    assert_same(changed, replace(found, n_baseline=changed.n_baseline, n_candidate=changed.n_candidate))


def joined(head: TokenTrace, n: int, tail: TokenTrace) -> TokenTrace:
    """The first n positions of one trace and all of another."""
    rows = [head.alternatives(position) for position in range(n)] + [tail.alternatives(p) for p in range(len(tail))]
    return make_trace(
        [*head.token_ids[:n].tolist(), *tail.token_ids.tolist()],
        [*head.logprobs[:n].tolist(), *tail.logprobs.tolist()],
        [[(found.token_id, found.logprob) for found in row] for row in rows],
    )


@given(traces(), traces())
def test_every_difference_of_comparable_bits_is_found_and_nothing_else(one: TokenTrace, other: TokenTrace) -> None:
    """The definition, position by position in plain Python, against the columns."""
    assert find_divergence(one, other).drift_onset == slow_onset(one, other)


def slow_onset(one: TokenTrace, other: TokenTrace) -> int | None:
    for position in range(min(len(one), len(other))):
        if one.token_ids[position] != other.token_ids[position]:
            return None
        ours = {found.token_id: np.float32(found.logprob) for found in one.alternatives(position)}
        theirs = {found.token_id: np.float32(found.logprob) for found in other.alternatives(position)}
        both = [(ours[token], theirs[token]) for token in ours.keys() & theirs.keys()]
        for left, right in [*both, (one.logprobs[position], other.logprobs[position])]:
            is_known = not (np.isnan(left) or np.isnan(right))
            are_forbidden = left <= IMPOSSIBLE and right <= IMPOSSIBLE
            if is_known and not are_forbidden and left.tobytes() != right.tobytes():
                return position
    return None


@given(traces(), st.permutations(range(6)))
def test_other_ids_of_the_same_bytes_give_the_same_positions(trace: TokenTrace, order: list[int]) -> None:
    names = [b"ab", b"a", b"b", b"c\xc3", b"\xa9", b" "]
    plain, shuffled = Vocabulary.unpack(vocabulary.pack_vocabulary(names)), [b""] * 6
    for old, new in enumerate(order):
        shuffled[new] = names[old]
    numbers = np.array([*order, NO_TOKEN], dtype=np.int32)  # NO_TOKEN is −1, the last
    other = TokenTrace(
        numbers[trace.token_ids], trace.logprobs, numbers[trace.alternative_ids], trace.alternative_logprobs
    )
    found = find_divergence(trace, other, vocabularies=(plain, Vocabulary.unpack(vocabulary.pack_vocabulary(shuffled))))
    assert found.kind == "identical"
    assert found.n_shared == len(trace)


def test_an_id_that_stands_for_nothing_equals_nothing_of_another_vocabulary() -> None:
    one, other = (
        Vocabulary.unpack(vocabulary.pack_vocabulary([b"a"])),
        Vocabulary.unpack(vocabulary.pack_vocabulary([b"a", None])),
    )
    trace = make.trace([0, 7])
    found = find_divergence(trace, trace, vocabularies=(one, other))
    assert (found.flip_position, found.parts_at_candidate) == (1, 1)


@pytest.mark.parametrize(
    ("baseline", "candidate", "position", "shorter", "kind"),
    [
        ("the same", "the same", None, None, "identical"),
        ("the cat", "the dog", 4, None, "text_only"),
        ("the", "the cat", 3, "baseline", "text_only"),
        ("the cat", "", 0, "candidate", "text_only"),
        ("héllo", "hèllo", 1, None, "text_only"),
        ("", "", None, None, "identical"),
    ],
)
def test_texts_without_tokens_part_at_a_character(
    baseline: str, candidate: str, position: int | None, shorter: str | None, kind: str
) -> None:
    found = find_text_divergence(baseline, candidate)
    assert (found.text_position, found.shorter, found.kind) == (position, shorter, kind)
    assert not found.has_logprobs


def test_the_gaps_and_shifts_of_every_position_are_there_to_be_drawn() -> None:
    one = make_trace(
        [1, 2, 3], [-0.1, -0.2, -0.3], [[(1, -0.1), (9, -2.0)], [(2, -0.2), (9, -2.0)], [(3, -0.3), (9, -1.0)]]
    )
    other = make_trace(
        [1, 2, 4], [-0.1, -0.3, -0.3], [[(1, -0.1), (9, -2.0)], [(2, -0.3), (9, -1.5)], [(4, -0.3), (9, -1.0)]]
    )
    moved = drift.measure_drift(alignment.align(one, other))
    assert moved.baseline_positions.tolist() == moved.candidate_positions.tolist() == [0, 1]
    assert moved.differs.tolist() == [False, True]
    assert moved.gaps.tolist() == pytest.approx([0.0, 0.5])
    assert moved.shifts.tolist() == pytest.approx([0.0, 0.6])


@pytest.mark.parametrize(
    ("parts_at", "position"),
    [pytest.param(None, 1, id="never"), pytest.param(0, None, id="before"), pytest.param(1, 1, id="there")],
)
def test_a_sampler_that_does_not_take_the_top_is_seen_up_to_where_the_tokens_part(
    parts_at: int | None, position: int | None
) -> None:
    rows = [[(1, -0.1), (2, -2.0)], [(1, -0.1), (2, -2.0)], [(1, -0.1), (2, -2.0)]]
    trace = make_trace([1, 2, 1], [-0.1, -2.0, -0.1], rows)
    other = make_trace([3 if at == parts_at else token for at, token in enumerate([1, 2, 1])], [-0.1] * 3, rows)
    assert find_divergence(trace, other).not_greedy_baseline == position


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_recorded_trace_diverges_from_itself_or_was_drawn(dtype: str) -> None:
    for trace in codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes()):
        found = find_divergence(trace, trace)
        assert (found.kind, found.not_greedy_baseline) == ("identical", None)


def test_recorded_float32_and_bfloat16_part_where_their_ids_first_differ() -> None:
    sides = [codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes()) for dtype in ("float32", "bfloat16")]
    for one, other in zip(*sides, strict=True):
        ids = zip(one.token_ids.tolist(), other.token_ids.tolist(), strict=False)
        first = next((position for position, (left, right) in enumerate(ids) if left != right), None)
        assert find_divergence(one, other).flip_position == first


def openai_traces(name: str, numbers: dict[str, int]) -> dict[tuple[str, int], TokenTrace]:
    found = {}
    for line in (LOGS / "openai_chat" / name).read_text().splitlines():
        entry = json.loads(line)
        found[entry["custom_id"], entry["repeat"]] = decimal_trace(entry["response"]["choices"][0]["logprobs"], numbers)
    return found


def decimal_trace(content: dict[str, Any], numbers: dict[str, int]) -> TokenTrace:
    def number(token: dict[str, Any]) -> int:
        return numbers.setdefault(token["token"], len(numbers))

    rows = content["content"]
    listed = [[(number(token), token["logprob"]) for token in row["top_logprobs"]] for row in rows]
    return make_trace([number(row) for row in rows], [row["logprob"] for row in rows], listed)


def test_3_of_4_real_chats_flip_and_ties_are_exact_in_bfloat16_only() -> None:
    numbers: dict[str, int] = {}
    baseline, candidate = (openai_traces(f"chat_{name}.jsonl", numbers) for name in ("fp32", "bf16_conc8"))
    found = [find_divergence(baseline[key], candidate[key]) for key in baseline]
    assert [len(found), sum(pair.flip_position is not None for pair in found)] == [4, 3]
    ties = [
        (sum(int((trace.margins() == 0).sum()) for trace in side.values()), sum(map(len, side.values())))
        for side in (baseline, candidate)
    ]
    assert ties == [(0, 154), (14, 155)]


def inspect_samples(name: str) -> Iterator[dict[str, Any]]:
    """The samples of an Inspect log; its zip is compressed with zstd, which this Python's zipfile cannot read."""
    path = LOGS / "inspect" / name
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.startswith("samples/")]
    raw = path.read_bytes()
    for member in members:
        head = raw[member.header_offset : member.header_offset + 30]
        start = (
            member.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        )
        data = zstandard.ZstdDecompressor().decompressobj().decompress(raw[start : start + member.compress_size])
        assert zlib.crc32(data) == member.CRC
        yield json.loads(data)


def test_9_of_12_real_responses_flip_at_the_stated_positions_and_repeats_are_equal() -> None:
    numbers: dict[str, int] = {}
    sides: list[dict[tuple[str, int], TokenTrace]] = [
        {
            (sample["id"], sample["epoch"]): decimal_trace(sample["output"]["choices"][0]["logprobs"], numbers)
            for sample in inspect_samples(name)
        }
        for name in ("fp32_baseline.eval", "bf16_candidate.eval")
    ]
    flips = {key: find_divergence(sides[0][key], sides[1][key]).flip_position for key in sides[0]}
    assert [len(flips), sum(flip is not None for flip in flips.values())] == [12, 9]
    for case, position in (("fact-004", 8), ("fact-005", 26), ("fact-010", 4)):
        assert {flips[case, epoch] for epoch in (1, 2, 3)} == {position}
    for side in sides:
        assert all(find_divergence(side[case, 1], trace).kind == "identical" for (case, _), trace in side.items())
