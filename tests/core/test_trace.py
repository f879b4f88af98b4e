"""A trace's digest says whether every bit is equal; margins come from values, and unknown stays unknown."""

import hashlib
import math
import struct

import numpy as np
import pytest

from evalboard.core.trace.trace import NO_TOKEN, Alternative, TokenTrace, make_trace
from tests import make

INF = math.inf


def test_digest_is_of_shape_then_ids_then_bits() -> None:
    trace = make_trace([5], [-0.5], [[(5, -0.5), (6, -1.5)]])
    data = struct.pack("<IIifiiff", 1, 2, 5, -0.5, 5, 6, -0.5, -1.5)
    assert trace.digest == hashlib.sha256(data).digest()[:16]


@pytest.mark.parametrize("cell", ["token_ids", "logprobs", "alternative_ids", "alternative_logprobs"])
@pytest.mark.parametrize("bit", [0, 15, 22, 31])
def test_digest_differs_with_any_bit(cell: str, bit: int) -> None:
    trace, other = make.trace(), make.trace()
    bits = getattr(other, cell).view(np.uint32)
    bits.flat[-1] ^= np.uint32(1 << bit)
    assert other.digest != trace.digest


def test_digest_tells_zero_from_minus_zero_and_one_nan_from_another() -> None:
    patterns = [0x0000_0000, 0x8000_0000, 0x7FC0_0000, 0x7FC0_0001, 0xFFC0_0000, 0xFF80_0000]
    digests = {make.trace_of_bits([1], [bits], [[1]], [[bits]]).digest for bits in patterns}
    assert len(digests) == len(patterns)


def test_digest_tells_empty_traces_of_different_k_apart() -> None:
    shapes = [np.zeros((0, k)) for k in (0, 2)]
    nothing = np.zeros(0)
    digests = {
        TokenTrace(
            nothing.astype(np.int32), nothing.astype(np.float32), cells.astype(np.int32), cells.astype(np.float32)
        ).digest
        for cells in shapes
    }
    assert len(digests) == 2


def test_digest_does_not_depend_on_memory_layout() -> None:
    trace = make.trace("abcdef", k=3)
    turned = TokenTrace(
        trace.token_ids[::-1].copy()[::-1],
        trace.logprobs,
        np.asfortranarray(trace.alternative_ids),
        np.asfortranarray(trace.alternative_logprobs),
    )
    assert turned.digest == trace.digest


def test_digest_leaves_the_prompt_out() -> None:
    assert make.trace(prompt=[1, 2]).digest == make.trace().digest


@pytest.mark.parametrize(
    ("row", "margin"),
    [
        pytest.param([(1, -0.5), (2, -2.0)], 1.5, id="usual"),
        pytest.param([(1, -2.0), (2, -0.5)], 1.5, id="order-does-not-count"),
        pytest.param([(1, -0.75), (2, -0.75)], 0.0, id="exact-tie"),
        pytest.param([(1, -0.0), (2, 0.0)], 0.0, id="zeros-of-both-signs"),
        pytest.param([(1, 0.0), (2, -INF)], INF, id="certain"),
        pytest.param([(1, -INF), (2, -INF)], None, id="two-impossible"),
        pytest.param([(1, -0.5), (2, math.nan)], None, id="nan"),
        pytest.param([(1, -0.5), (NO_TOKEN, math.nan)], None, id="one-listed"),
        pytest.param([(1, -0.5)], None, id="k-1"),
        pytest.param([], None, id="k-0"),
        pytest.param([(1, -3.0), (2, -1.0), (3, -1.25)], 0.25, id="best-two-of-three"),
    ],
)
def test_margin(row: list[tuple[int, float]], margin: float | None) -> None:
    trace = make_trace([1], [-0.5], [row])
    (found,) = trace.margins()
    assert found == margin or (margin is None and np.isnan(found))


def test_margins_have_one_float32_for_each_position() -> None:
    for k in (0, 1, 2, 5):
        margins = make.trace("abc", k=k).margins()
        assert (margins.shape, margins.dtype) == ((3,), np.float32)
    assert make.trace("", k=2).margins().shape == (0,)


def test_rows_of_different_lengths_are_filled_with_no_token() -> None:
    trace = make_trace([1, 2], [-0.5, -0.25], [[(1, -0.5), (3, -1.0)], [(2, -0.25)]])
    assert trace.alternatives(1) == [Alternative(2, -0.25)]
    assert trace.alternative_ids[1, 1] == NO_TOKEN
    assert np.isnan(trace.alternative_logprobs[1, 1])


@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param(((2,), (3,), (2, 2), (2, 2)), id="logprobs-longer"),
        pytest.param(((2,), (2,), (3, 2), (3, 2)), id="a-row-too-many"),
        pytest.param(((2,), (2,), (2, 2), (2, 3)), id="k-differs"),
        pytest.param(((2,), (2,), (4,), (4,)), id="flat-alternatives"),
    ],
)
def test_columns_that_do_not_fit_are_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    dtypes = (np.int32, np.float32, np.int32, np.float32)
    with pytest.raises(ValueError, match="must"):
        TokenTrace(*(np.zeros(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)))
