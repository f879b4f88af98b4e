"""Self-tests: what is a whole result, when a node is invariant, and which node a test vouches for."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.profile import self_test
from evalboard.core.profile.self_test import SELF_TEST_STEPS, TESTED_DTYPES, VARYING_OPERATIONS
from tests.self_tests import result

CPU = {"kind": "cpu", "cpu_isa": "AVX512", "gpus": [], "n_cores": 2}
GPU = {"kind": "cuda", "gpus": [{"name": "NVIDIA H100", "capability": 9.0}], "n_cores": 32}
VERSIONS = {"torch": "2.13.0", "driver": "590.10"}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_whole_result_is_taken(device: str) -> None:
    self_test.check_self_test(result(device=device))


def remove(*path: Any) -> Callable[[Any], None]:
    def change(found: Any) -> None:
        for name in path[:-1]:
            found = found[name]
        del found[path[-1]]

    return change


def put(value: Any, *path: Any) -> Callable[[Any], None]:
    def change(found: Any) -> None:
        for name in path[:-1]:
            found = found[name]
        found[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param(put(0, "version"), "version", id="another-version"),
        pytest.param(remove("kernels"), "kernels", id="no-kernels"),
        pytest.param(put({}, "kernels", "other"), "kernels", id="unknown-kernels"),
        pytest.param(put(None, "kernels", "plain"), "kernels.plain", id="plain-not-measured"),
        pytest.param(put(None, "kernels", "invariant"), "kernels.invariant", id="gpu-without-invariant"),
        pytest.param(put("none", "kernels", "plain", "steps"), "kernels.plain.steps", id="rows-that-are-no-list"),
        pytest.param(
            remove("kernels", "invariant", "steps", 0), "kernels.invariant.steps.product.float32", id="a-row-left-out"
        ),
        pytest.param(
            put("conv", "kernels", "plain", "varying", 0, "operation"), "kernels.plain.varying[0]", id="unknown"
        ),
        pytest.param(
            remove("kernels", "plain", "steps", 1, "differing_batch_sizes"), "kernels.plain.steps[1]", id="fact"
        ),
        pytest.param(remove("kernels", "plain", "steps", 1, "problem"), "kernels.plain.steps[1]", id="problem-unsaid"),
        pytest.param(
            put(0, "kernels", "plain", "steps", 1, "first_differing_repeat"), "kernels.plain.steps[1]", id="repeat-zero"
        ),
        pytest.param(
            put([1], "kernels", "plain", "steps", 1, "differing_batch_sizes"), "kernels.plain.steps[1]", id="alone"
        ),
        pytest.param(
            put(float("nan"), "kernels", "plain", "steps", 1, "largest_batch_difference"),
            "kernels.plain.steps[1]",
            id="not-a-number",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named_by_its_path(change: Callable[[Any], None], path: str) -> None:
    given = result(device="cuda")
    change(given)
    with pytest.raises(InvalidInput) as caught:
        self_test.check_self_test(given)
    assert path in caught.value.fields


@pytest.mark.parametrize("operation", SELF_TEST_STEPS)
@pytest.mark.parametrize("dtype", TESTED_DTYPES)
@pytest.mark.parametrize("how", ["differing", "varying", "problems"])
def test_one_step_with_other_bits_in_one_dtype_is_enough(operation: str, dtype: str, how: str) -> None:
    on_gpu: dict[str, Any] = {how: [("invariant", operation, dtype)]}
    on_cpu: dict[str, Any] = {how: [("plain", operation, dtype)]}
    assert not self_test.is_batch_invariant(result(device="cuda", **on_gpu))
    assert not self_test.is_batch_invariant(result(device="cpu", **on_cpu))


def test_plain_kernels_decide_only_where_there_are_no_others() -> None:
    assert self_test.is_batch_invariant(result(device="cuda", differing=[("plain", "product", "float32")]))


def test_operations_that_no_step_needs_decide_nothing() -> None:
    assert self_test.is_batch_invariant(result(device="cuda", varying=[("invariant", "cumsum", "float32")]))


def test_what_was_not_tested_is_not_vouched_for() -> None:
    """Also where nobody checked the result before."""
    given = result(device="cuda")
    steps = given["kernels"]["invariant"]["steps"]
    given["kernels"]["invariant"]["steps"] = [row for row in steps if row["operation"] != "attention"]
    assert not self_test.is_batch_invariant(given)
    assert "attention step in float32: was not tested" in str(self_test.find_self_test_refusal(given, host="node-1"))


def test_a_result_of_another_version_vouches_for_nothing() -> None:
    old = result(device="cuda") | {"version": 0}
    assert not self_test.is_batch_invariant(old)
    assert self_test.list_operation_findings(old) == ()
    assert self_test.COMMAND in str(self_test.find_self_test_refusal(old, host="node-1"))


def test_a_node_that_passed_is_not_refused() -> None:
    assert self_test.find_self_test_refusal(result(device="cuda"), host="node-1") is None


def test_a_refusal_names_what_failed_the_host_and_the_command() -> None:
    given = result(
        device="cuda", differing=[("invariant", "softmax", "float16")], problems=[("invariant", "attention", "float32")]
    )
    words = str(self_test.find_self_test_refusal(given, host="node-1"))
    assert "softmax in float16: other bits in batches of 3, 8 (by up to 2.5e-01)" in words
    assert "attention step in float32: could not be tested: RuntimeError" in words
    assert "node-1" in words
    assert f"`{self_test.COMMAND}`" in words
    assert "product" not in words


def test_there_is_a_finding_for_each_operation_and_dtype_plain_kernels_first() -> None:
    found = self_test.list_operation_findings(result(device="cuda", varying=[("plain", "index_add", "float32")]))
    assert len(found) == 2 * (len(SELF_TEST_STEPS) + len(VARYING_OPERATIONS)) * len(TESTED_DTYPES)
    assert [each.kernels for each in found] == ["plain"] * (len(found) // 2) + ["invariant"] * (len(found) // 2)
    [odd] = [each for each in found if not each.is_same]
    assert (odd.operation, odd.dtype, odd.text) == (
        "index_add",
        "float32",
        "other bits from repeat 2 on (by up to 5.0e-01)",
    )


def test_shapes_of_one_operation_are_told_together() -> None:
    given = result(differing=[("plain", "product", "float32")])
    other = copy.deepcopy(given["kernels"]["plain"]["steps"][0])
    other |= {"differing_batch_sizes": [2, 8], "largest_batch_difference": 1.0, "first_differing_repeat": 7}
    given["kernels"]["plain"]["steps"].append(other)
    [found] = [each for each in self_test.list_operation_findings(given) if not each.is_same]
    assert "batches of 2, 3, 8 (by up to 1.0e+00), other bits from repeat 7 on" in found.text


@pytest.mark.parametrize(
    ("hardware", "versions", "is_same_node"),
    [
        pytest.param(GPU | {"n_cores": 16}, VERSIONS, True, id="gpu-beside-fewer-cores"),
        pytest.param(GPU | {"versions": VERSIONS}, VERSIONS, True, id="versions-told-twice"),
        pytest.param(GPU | {"gpus": [*GPU["gpus"], *GPU["gpus"]]}, VERSIONS, False, id="another-gpu"),
        pytest.param(GPU, VERSIONS | {"driver": "590.11"}, False, id="another-driver"),
    ],
)
def test_a_test_vouches_for_the_node_as_it_was(hardware: Any, versions: Any, is_same_node: bool) -> None:
    known = self_test.digest_node(GPU, VERSIONS)
    assert (self_test.digest_node(hardware, versions) == known) is is_same_node


def test_cores_count_on_a_cpu() -> None:
    assert self_test.digest_node(CPU, VERSIONS) != self_test.digest_node(CPU | {"n_cores": 4}, VERSIONS)
