"""`evalboard worker --self-test`: measure this node's arithmetic in the engine, and store it."""

import json
import logging
import socket
import sys
import textwrap
from collections.abc import Sequence
from itertools import groupby

from django.conf import settings
from django.db import DatabaseError

from evalboard.calling.calls import EngineFailure
from evalboard.core.errors import InvalidInput
from evalboard.core.profile import TESTED_DTYPES, list_operation_findings
from runs.models import SelfTestRecord
from runs.work import record_self_test
from worker.engines.kernels import measure
from worker.engines.vllm import describe

logger = logging.getLogger(__name__)

MEASURED, NOT_MEASURED = 0, 4
CELL_WIDTH = 44


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
