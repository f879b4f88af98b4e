"""Sentences that a page claims, from reports made by hand."""

from datetime import UTC, datetime
from typing import Any

import pytest

from frontend import findings
from runs.selectors.suite import SuiteReport
from runs.selectors.worker import WorkerRow


@pytest.mark.parametrize(
    ("plan", "claim"),
    [
        ({"default": {"kind": "exact"}, "cases": {}}, "exact 3"),
        ({"default": {"kind": "exact"}, "cases": {"a": {"kind": "number"}}}, "exact 2 · number 1"),
        ({"default": None, "cases": {"a": {"kind": "json"}, "b": {"kind": "json"}, "c": {"kind": "json"}}}, "json 3"),
    ],
)
def test_a_suite_says_which_scorers_judge_how_many_cases(plan: dict[str, Any], claim: str) -> None:
    report = SuiteReport("words", "Words", 1, "0" * 64, 3, 33.3, 24, plan, (), (), ())
    assert findings.of_scorer(report).claim == claim


@pytest.mark.parametrize(
    ("hardware", "versions", "hardware_label", "engine_label"),
    [
        (
            {"kind": "cpu", "cpu_model": "AMD EPYC", "cpu_isa": "AVX512", "n_cores": 2, "gpus": []},
            {"vllm": "0.32.0", "torch": "2.13.0+cpu", "cuda": None},
            "AMD EPYC · AVX512 · 2 cores",
            "vLLM 0.32.0 · torch 2.13.0+cpu",
        ),
        (
            {"kind": "cuda", "gpus": [{"name": "H200", "capability": 9.0}], "n_cores": 16},
            {"vllm": "0.25.0", "torch": "2.11.0", "cuda": "13.0"},
            "H200 · 16 cores",
            "vLLM 0.25.0 · torch 2.11.0 · CUDA 13.0",
        ),
        ({}, {}, "", ""),
    ],
)
def test_a_worker_is_described_in_one_line(
    hardware: dict[str, Any], versions: dict[str, Any], hardware_label: str, engine_label: str
) -> None:
    now = datetime.now(UTC)
    row = WorkerRow(1, "w", "h", "default", "idle", hardware, versions, "", None, None, None, None, "", now, now)
    assert (row.hardware_label, row.engine_label) == (hardware_label, engine_label)
