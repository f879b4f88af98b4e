"""Check that this node's arithmetic gives the same bits at batch size 1, in batches, and in a row.

Run as `python worker/torch_check.py plain 2,4,8` or `… invariant 2,4,8` (the sizes of the batches) by the engine's
interpreter, in which Evalboard is not installed: standard library and torch, and vLLM where its kernels are asked for.
Prints one JSON object, whose shape stands in docs/node.md. `plain` measures torch's own kernels, `invariant`
vLLM's batch-invariant ones; vLLM replaces torch's in the whole process and cannot put them back, hence one process for
each.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from vllm_start import COMMON_ENV  # next to this file: a script's own folder is on its path

os.environ.update(COMMON_ENV)  # how OpenMP's threads wait is read when torch is imported

import torch
from torch import Tensor
from torch.nn import functional

SEED = 42
DTYPES = ("float32", "bfloat16", "float16")
N_REPEATS = 20
# In and out: of a small model's feed-forward layer, both ways, of its logits, and of a 7B model's projections.
PRODUCTS = ((576, 1536), (1536, 576), (576, 49_152), (4096, 4096))
NORMALISED = (576, 4096)
CHOICES = (512, 49_152)  # keys that a query looks at, and tokens of a vocabulary
N_HEADS, N_KV_HEADS, HEAD_SIZE = 9, 3, 64
CONTEXT, PROMPT = 256, 32  # keys before a decoded token; tokens of a prompt read in one step
EPSILON = 1e-5
BLOCK = 16  # of vLLM's paged KV cache
BITS = {2: torch.int16, 4: torch.int32}

Together = Callable[[int, int], Tensor]  # rows first … last-1 in one call; a result's first dimension is the row


@dataclass(frozen=True, slots=True)
class Kernels:
    """The functions of a model's layers. Attention: (queries, keys, values, is a prompt), by sequence."""

    product: Callable[[Tensor, Tensor], Tensor]
    normalisation: Callable[[Tensor, Tensor], Tensor]
    attention: Callable[[Tensor, Tensor, Tensor, bool], Tensor]


def main(kind: str, sizes: Sequence[int]) -> dict[str, Any]:
    began = time.monotonic()
    kernels = invariant_kernels() if kind == "invariant" else plain_kernels()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.inference_mode():
        steps = [step for dtype in DTYPES for step in measured_steps(kernels, device, dtype, sizes)]
        varying = [operation for dtype in DTYPES for operation in measured_varying(device, dtype)]
    return {
        "device": device,
        "seed": SEED,
        "n_threads": torch.get_num_threads(),
        "batch_sizes": list(sizes),
        "n_repeats": N_REPEATS,
        "steps": steps,
        "varying": varying,
        "seconds": round(time.monotonic() - began, 1),
    }


def plain_kernels() -> Kernels:
    """Torch's own, as they come."""
    return Kernels(
        product=functional.linear,
        normalisation=lambda rows, weight: functional.rms_norm(rows, weight.shape, weight, EPSILON),
        attention=lambda q, k, v, is_prompt: functional.scaled_dot_product_attention(
            q, k, v, is_causal=is_prompt, enable_gqa=True
        ),
    )


def invariant_kernels() -> Kernels:
    """Switch on vLLM's batch-invariant mode as its GPU worker does, and return what its layers call.

    Softmax needs no name here: the mode replaces it inside torch.
    """
    os.environ["VLLM_BATCH_INVARIANT"] = "1"  # vLLM's attention reads it when it is imported, and never again
    from vllm.model_executor.determinism import batch_invariant
    from vllm.v1.attention.ops.triton_unified_attention import unified_attention

    batch_invariant.init_batch_invariance()

    def attention(q: Tensor, k: Tensor, v: Tensor, is_prompt: bool) -> Tensor:
        """The kernel of TRITON_ATTN, the backend that the profile pins, over a cache of blocks."""
        n, heads, n_queries, size = q.shape
        n_keys = k.shape[2]
        queries = q.transpose(1, 2).reshape(n * n_queries, heads, size).contiguous()
        cache = [part.transpose(1, 2).reshape(-1, BLOCK, part.shape[1], size).contiguous() for part in (k, v)]
        out = torch.empty_like(queries)
        counts = {"dtype": torch.int32, "device": q.device}
        unified_attention(
            q=queries,
            k=cache[0],
            v=cache[1],
            out=out,
            cu_seqlens_q=torch.arange(0, (n + 1) * n_queries, n_queries, **counts),
            max_seqlen_q=n_queries,
            seqused_k=torch.full((n,), n_keys, **counts),
            max_seqlen_k=n_keys,
            softmax_scale=size**-0.5,
            causal=True,
            window_size=(-1, -1),
            block_table=torch.arange(n * n_keys // BLOCK, **counts).reshape(n, -1),
            softcap=0,
            q_descale=None,
            k_descale=None,
            v_descale=None,
        )
        return out.reshape(n, n_queries, heads, size)

    return Kernels(
        product=batch_invariant.linear_batch_invariant,
        normalisation=lambda rows, weight: batch_invariant.rms_norm_batch_invariant(rows, weight, EPSILON),
        attention=attention,
    )


def measured_steps(kernels: Kernels, device: str, dtype: str, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Measure each step of a model at batch size 1, in batches, and in a row."""
    measure = partial(facts_of_step, sizes=sizes)
    for operation, shape, prepare in steps(kernels, SeededInputs(device, dtype), largest=max(sizes)):
        yield {"operation": operation, "dtype": dtype, "shape": shape, **facts_or_problem(prepare, measure)}


def measured_varying(device: str, dtype: str) -> Iterator[dict[str, Any]]:
    """Measure the operations that other nodes are known to vary at, in a row."""
    for operation, prepare in varying(SeededInputs(device, dtype)):
        yield {"operation": operation, "dtype": dtype, **facts_or_problem(prepare, facts_of_repeats)}


def facts_or_problem(prepare: Callable[[], Any], measure: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the measurement, or why it failed: this device, dtype or vLLM lacks such a kernel."""
    try:
        return {**measure(prepare()), "problem": None}
    except Exception as problem:  # noqa: BLE001  kernels raise whatever they like; the other rows must still come
        return {"problem": f"{type(problem).__name__}: {problem}"[:200]}


def facts_of_step(together: Together, sizes: Sequence[int]) -> dict[str, Any]:
    """Compare every row at batch size 1 with the same row in batches of each size, then repeat some."""
    largest = max(sizes)
    alone = torch.cat([together(row, row + 1) for row in range(largest)])
    differing, difference = [], 0.0
    for size in sizes:
        together_bits = together(0, size)
        if not same_bits(together_bits, alone[:size]):
            differing.append(size)
            difference = max(difference, largest_difference(together_bits, alone[:size]))
    repeats = facts_of_repeats(lambda: torch.cat([together(0, 1), together(0, largest)]))
    return {"differing_batch_sizes": differing, "largest_batch_difference": difference, **repeats}


def facts_of_repeats(compute: Callable[[], Tensor]) -> dict[str, Any]:
    """Compare repeats 1 to N with the result before them."""
    reference, first, difference = compute(), None, 0.0
    if not bool(torch.isfinite(reference).all()):
        raise ArithmeticError("The result is not finite.")
    for repeat in range(1, N_REPEATS + 1):
        result = compute()
        if not same_bits(result, reference):
            first = first or repeat
            difference = max(difference, largest_difference(result, reference))
    return {"first_differing_repeat": first, "largest_repeat_difference": difference}


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Equal to the bit: 0.0 is not -0.0, and a NaN is itself."""
    kind = BITS[one.element_size()]
    return one.dtype == other.dtype and bool(torch.equal(one.contiguous().view(kind), other.contiguous().view(kind)))


def largest_difference(one: Tensor, other: Tensor) -> float:
    largest = float((one.double() - other.double()).abs().max())
    if largest != largest or largest == float("inf"):
        raise ArithmeticError("A result is not finite.")
    return largest


class SeededInputs:
    """Seeded normal numbers, made in float32 on the CPU, so that all devices and dtypes get the same."""

    def __init__(self, device: str, dtype: str) -> None:
        self.device, self.dtype = device, getattr(torch, dtype)
        self._draws = torch.Generator().manual_seed(SEED)

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        drawn = torch.randn(*shape, generator=self._draws) * scale
        return drawn.to(self.device, self.dtype)

    def indexes(self, n: int, *, below: int) -> Tensor:
        return torch.randint(below, (n,), generator=self._draws).to(self.device)

    def zeros(self, *shape: int) -> Tensor:
        return torch.zeros(*shape, device=self.device, dtype=self.dtype)


def steps(kernels: Kernels, inputs: SeededInputs, *, largest: int) -> Iterator[tuple[str, str, Callable[[], Together]]]:
    """Yield (operation, shape, its preparation).

    Rows are copied, so that batches differ in size, not in address.
    """

    def product(n_in: int, n_out: int) -> Together:
        rows, weight = inputs.normal(largest, n_in), inputs.normal(n_out, n_in, scale=n_in**-0.5)
        return lambda first, last: kernels.product(rows[first:last].clone(), weight)

    def normalisation(width: int) -> Together:
        rows, weight = inputs.normal(largest, width), inputs.normal(width)
        return lambda first, last: kernels.normalisation(rows[first:last].clone(), weight)

    def softmax(of: Callable[..., Tensor], width: int) -> Together:
        rows = inputs.normal(largest, width, scale=4.0)
        return lambda first, last: of(rows[first:last].clone(), dim=-1)

    def attention(n_queries: int, n_keys: int) -> Together:
        q = inputs.normal(largest, N_HEADS, n_queries, HEAD_SIZE)
        k, v = (inputs.normal(largest, N_KV_HEADS, n_keys, HEAD_SIZE) for _ in range(2))

        def attend(first: int, last: int) -> Tensor:
            some = slice(first, last)
            return kernels.attention(q[some].clone(), k[some].clone(), v[some].clone(), n_queries > 1)

        return attend

    for n_in, n_out in PRODUCTS:
        yield "product", f"{n_in} → {n_out}", partial(product, n_in, n_out)
    for width in NORMALISED:
        yield "normalisation", f"{width}", partial(normalisation, width)
    yield "softmax", f"{CHOICES[0]}", partial(softmax, torch.softmax, CHOICES[0])
    yield "softmax", f"{CHOICES[1]}, logarithm", partial(softmax, torch.log_softmax, CHOICES[1])
    yield "attention", f"1 token after {CONTEXT}", partial(attention, 1, CONTEXT)
    yield "attention", f"a prompt of {PROMPT}", partial(attention, PROMPT, PROMPT)


def varying(inputs: SeededInputs) -> Iterator[tuple[str, Callable[[], Callable[[], Tensor]]]]:
    """Yield (operation, its preparation): known suspects, such as atomics and parallel prefixes."""

    def mm() -> Callable[[], Tensor]:
        a, b = inputs.normal(512, 1024), inputs.normal(1024, 512)
        return lambda: torch.mm(a, b)

    def addmm() -> Callable[[], Tensor]:
        a, b, c = inputs.normal(512, 1024), inputs.normal(1024, 512), inputs.normal(512)
        return lambda: torch.addmm(c, a, b)

    def large_sum() -> Callable[[], Tensor]:
        values = inputs.normal(1 << 22)
        return lambda: values.sum().reshape(1)

    def scatter_add() -> Callable[[], Tensor]:
        values, where, into = inputs.normal(1 << 18), inputs.indexes(1 << 18, below=1024), inputs.zeros(1024)
        return lambda: into.scatter_add(0, where, values)

    def index_add() -> Callable[[], Tensor]:
        values, where, into = inputs.normal(1 << 13, 64), inputs.indexes(1 << 13, below=64), inputs.zeros(64, 64)
        return lambda: into.index_add(0, where, values)

    def cumsum() -> Callable[[], Tensor]:
        values = inputs.normal(1 << 20)
        return lambda: values.cumsum(0)

    yield "mm", mm
    yield "addmm", addmm
    yield "sum", large_sum
    yield "scatter_add", scatter_add
    yield "index_add", index_add
    yield "cumsum", cumsum


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], [int(size) for size in sys.argv[2].split(",")]), allow_nan=False))
