"""docs/formats.md and the code say the same: its example, its limits and its measured sizes."""

import re
from pathlib import Path

import numpy as np
import pytest

from bench import bench_trace
from evalboard.core.trace import codec, directory, gaps, packing
from evalboard.core.trace.trace import TokenTrace, make_trace

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text()
BYTES = re.compile(r"^\| (\d+) \| `([0-9a-f ]+)` \| (.*) \|$", re.MULTILINE)
POSITION = re.compile(r"^\| \d+ \| (\d+) \| (-[\d.]+) \| ((?:\d+ at -[\d.]+(?:, )?)+) \|$", re.MULTILINE)
STORED = re.compile(r"^\| \*\*version 2\*\* \|(.*)\|$", re.MULTILINE)
JSON = re.compile(r"^\| JSON \| \| ([\d.]+) \| \| \| ([\d.]+) \| \|$", re.MULTILINE)

ROWS = [(int(at), bytes.fromhex(hexadecimal), what) for at, hexadecimal, what in BYTES.findall(PAGE)]
BLOCK = b"".join(found for _, found, _ in ROWS)


@pytest.fixture
def written() -> TokenTrace:
    """The example as the page's table of positions gives it."""
    rows = POSITION.findall(PAGE)
    listed = [re.findall(r"(\d+) at (-[\d.]+)", alternatives) for _, _, alternatives in rows]
    return make_trace(
        [int(token) for token, _, _ in rows],
        [float(logprob) for _, logprob, _ in rows],
        [[(int(token), float(logprob)) for token, logprob in row] for row in listed],
        [1, 2],
    )


def test_the_examples_offsets_count_its_bytes() -> None:
    assert [at for at, _, _ in ROWS] == [sum(len(found) for _, found, _ in ROWS[:row]) for row in range(len(ROWS))]
    assert f"The block, {len(BLOCK)} bytes:" in PAGE


def test_the_examples_bytes_are_its_trace(written: TokenTrace) -> None:
    assert len(written) == 3
    (found,) = codec.read_block(BLOCK)
    assert found.digest == written.digest
    assert found.prompt_token_ids is not None
    assert found.prompt_token_ids.tolist() == [1, 2]


def test_the_examples_trace_gives_its_bytes(written: TokenTrace) -> None:
    assert codec.encode_block([written]).hex(" ") == BLOCK.hex(" ")


def test_the_example_shows_a_rank_a_stray_and_steps(written: TokenTrace) -> None:
    ranks = next(found for _, found, what in ROWS if what == "ranks")
    assert list(ranks) == [0, 1, 255]
    top = np.float32(written.alternative_logprobs[0, 0])
    steps = np.array([3], dtype=np.uint32)
    assert gaps.take_steps(np.array([top]).view(np.uint32), steps, 1).view(np.float32)[0] == np.float32(-1.75)


def test_the_limits_are_the_codes() -> None:
    assert f"`{directory.MAGIC.hex(' ')}`" in PAGE
    assert f"# The trace format, version {codec.BLOCK_VERSION}\n" in PAGE
    assert f"more than {directory.MAX_K} alternatives a position, {directory.MAX_CELLS:,} positions times" in PAGE
    assert f"grid, 0 to {gaps.FINEST}" in PAGE
    assert f"a part is full once it has {codec.PART_CELLS:,} alternatives" in PAGE
    assert f"zstd level {packing.LEVEL} is used" in PAGE


def test_the_measured_sizes_are_the_benchs() -> None:
    stated = [float(cell) for cell in STORED.findall(PAGE)[0].split("|")]
    as_json = [float(cell) for cell in JSON.findall(PAGE)[0]]
    sizes = [row.value for row in bench_trace.measure_sizes() if row.unit == "bytes/position"]
    float32, bfloat16 = sizes[:5], sizes[5:]
    assert [*float32[:3], *bfloat16[:3]] == pytest.approx(stated, abs=0.006)
    assert [float32[3], bfloat16[3]] == pytest.approx(as_json, abs=0.006)
    assert float32[0] <= 9.5
