"""Self-test results as `worker/torch_check.py` tells them. Plain Python: the core's own tests use them."""

from collections.abc import Collection
from typing import Any

from evalboard.core.profile import SELF_TEST_VERSION, TESTED_DTYPES
from evalboard.core.profile.self_test import SELF_TEST_STEPS, VARYING_OPERATIONS

Place = tuple[str, str, str]  # kernels, operation, dtype


def result(
    *,
    device: str = "cpu",
    differing: Collection[Place] = (),
    varying: Collection[Place] = (),
    problems: Collection[Place] = (),
) -> dict[str, Any]:
    """A whole result: other bits in batches of 3 and 8 at `differing`, from repeat 2 on at `varying`."""

    def measured(kernels: str) -> dict[str, Any]:
        return {
            "device": device,
            "seconds": 1.5,
            "steps": [row(kernels, name, dtype) for name in SELF_TEST_STEPS for dtype in TESTED_DTYPES],
            "varying": [row(kernels, name, dtype) for name in VARYING_OPERATIONS for dtype in TESTED_DTYPES],
        }

    def row(kernels: str, operation: str, dtype: str) -> dict[str, Any]:
        place = (kernels, operation, dtype)
        named = {"operation": operation, "dtype": dtype}
        if place in problems:
            return named | {"problem": "RuntimeError: there is no such kernel"}
        named |= {
            "first_differing_repeat": 2 if place in varying else None,
            "largest_repeat_difference": 0.5 if place in varying else 0.0,
            "problem": None,
        }
        if operation in VARYING_OPERATIONS:
            return named
        return named | {
            "shape": "4096 → 4096",
            "differing_batch_sizes": [3, 8] if place in differing else [],
            "largest_batch_difference": 0.25 if place in differing else 0.0,
        }

    invariant = measured("invariant") if device == "cuda" else None
    return {"version": SELF_TEST_VERSION, "kernels": {"plain": measured("plain"), "invariant": invariant}}
