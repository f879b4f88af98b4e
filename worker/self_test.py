"""`evalboard worker --self-test`: measure this node's arithmetic in the engine, and store it."""

import json
import logging
import socket
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from evalboard.calling.calls import EngineFailure
from evalboard.core.errors import InvalidInput
from evalboard.core.profile import (
    DEFAULT_PROFILES,
    SELF_TEST_VERSION,
    TESTED_BATCH_SIZES,
    TESTED_DTYPES,
    list_operation_findings,
    parse_profile,
    plan_engine,
)
from runs.models import SelfTestRecord
from runs.work import record_self_test
from worker.engines.base import EngineDied, EngineTimeout
from worker.engines.vllm import child_environment, describe

logger = logging.getLogger(__name__)

SCRIPT = Path(__file__).resolve().parent / "torch_check.py"
# A minute on two cores; on a GPU most of it goes into compiling kernels the first time.
MEASURE_SECONDS = 600.0
MEASURED, NOT_MEASURED = 0, 4
CELL_WIDTH = 44
# Each kind of kernels is measured in the environment that an engine under this profile gets.
PROFILES = {"plain": "pinned", "invariant": "invariant"}


def run(*, as_json: bool) -> int:
    """Test this node, store and print the result. Return 0 if it was measured, whatever the result."""
    try:
        described = describe(settings.VLLM_PYTHON)
        hardware = {name: value for name, value in described.items() if name != "versions"}
        result = measure(settings.VLLM_PYTHON, hardware)
        test = record_self_test(
            host=socket.gethostname(), hardware=hardware, versions=described["versions"], result=result
        )
    except EngineFailure as failure:
        logger.error("This node could not be tested: %s\n%s", failure, failure.last_words.strip())
        return NOT_MEASURED
    except InvalidInput as problem:
        logger.error("This node could not be tested. %s %s", problem.detail, problem.fields)
        return NOT_MEASURED
    except DatabaseError as away:
        logger.error(
            "This node was tested, and the result could not be kept: %s Test again when the database answers.", away
        )
        return NOT_MEASURED
    sys.stdout.write((_json(test) if as_json else table(test)) + "\n")
    return MEASURED


def measure(python: str | Path, hardware: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as core.profile.self_test reads it, both kinds of kernels where there are both.

    Raises EngineDied or EngineTimeout.
    """
    kinds = ("plain", "invariant") if hardware["kind"] == "cuda" else ("plain",)
    kernels = {kind: _measure(python, hardware, kind) for kind in kinds}
    return {"version": SELF_TEST_VERSION, "kernels": {"plain": None, "invariant": None, **kernels}}


def table(test: SelfTestRecord) -> str:
    """Return the findings as a table, an operation per row and a dtype per column, and the conclusion."""
    parts = []
    by_kernels = groupby(list_operation_findings(test.result), key=lambda finding: finding.kernels)
    for kernels, measured in by_kernels:
        rows = [[f"{kernels} kernels", *TESTED_DTYPES]]
        for operation, findings in groupby(measured, key=lambda finding: finding.operation):
            rows.append([operation, *(finding.text for finding in findings)])
        parts.append(_columns(rows))
    return "\n\n".join([*parts, _conclusion(test)])


def _measure(python: str | Path, hardware: Mapping[str, Any], kind: str) -> dict[str, Any]:
    decoding = parse_profile(DEFAULT_PROFILES[PROFILES[kind]]["settings"])
    plan = plan_engine(decoding, hardware, dtype="float32", quantization=None, max_model_len=2, max_tokens=1, stop=())
    command = [str(python), str(SCRIPT), kind, ",".join(map(str, TESTED_BATCH_SIZES))]
    environment = {**child_environment(), **plan.env}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=MEASURE_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise EngineTimeout(f"The {kind} kernels were not measured in {MEASURE_SECONDS:g} seconds.") from late
    except OSError as problem:
        raise EngineDied("engine_error", f"{python} cannot be run: {problem}") from problem
    if done.returncode != 0:
        words = f"{python} could not measure the {kind} kernels."
        raise EngineDied("engine_error", words, last_words=done.stderr[-8000:])
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # vLLM logs to stdout before
    return {**measured, "env": plan.env}


def _conclusion(test: SelfTestRecord) -> str:
    if test.is_invariant:
        words = "is invariant: every step of a model gives the same bits alone, in a batch and in a row."
    else:
        words = "is not invariant: what shares a batch may move a response's bits. `pinned` decodes one case at a time."
    kinds = test.result["kernels"]
    if kinds["invariant"] is None:
        words += " There are no batch-invariant kernels for a CPU; the profile `invariant` is refused here."
    seconds = sum(measured["seconds"] for measured in kinds.values() if measured is not None)
    return f"{test.host} {words}\nMeasured in {seconds:.0f} seconds; kept as self-test {test.pk}."


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Lay cells out in columns; long ones are broken at spaces and go on below."""
    lines = [[textwrap.wrap(cell, CELL_WIDTH) for cell in row] for row in rows]
    widths = [max(len(part) for row in lines for part in row[column]) for column in range(len(rows[0]))]
    text = []
    for row in lines:
        for index in range(max(map(len, row))):
            parts = (cell[index] if index < len(cell) else "" for cell in row)
            text.append("  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())
    return "\n".join(text)


def _json(test: SelfTestRecord) -> str:
    answer = {
        "id": str(test.pk),
        "at": test.created_at.isoformat(),
        "host": test.host,
        "node_digest": test.node_digest,
        "is_invariant": test.is_invariant,
        "result": test.result,
    }
    return json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False)
