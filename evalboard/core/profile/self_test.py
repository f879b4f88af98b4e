"""Read the result of `evalboard worker --self-test`: what a node's arithmetic did when it was tested.

docs/node.md has the shape of a result. `steps` are what a model is made of, each measured alone, in batches and
in a row; `varying` are operations that are known to differ between repeats on some hardware, measured in a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalboard.contract.stack import SelfTestFinding
from evalboard.core import digest
from evalboard.core.errors import InvalidInput

SELF_TEST_VERSION = 1  # of the result's shape and of what is measured; another one vouches for nothing
COMMAND = "evalboard worker --self-test"
TESTED_DTYPES = ("float32", "bfloat16", "float16")
TESTED_BATCH_SIZES = (2, 3, 4, 8, 16, 32, 64)  # that each step is measured in
MAX_TESTED_BATCH = TESTED_BATCH_SIZES[-1]  # and that is vouched for: nothing promises invariance in a larger one
SELF_TEST_STEPS = {
    "product": "matrix product",
    "normalisation": "normalisation",
    "softmax": "softmax",
    "attention": "attention step",
}
VARYING_OPERATIONS = {
    "mm": "mm",
    "addmm": "addmm",
    "sum": "large sum",
    "scatter_add": "scatter_add",
    "index_add": "index_add",
    "cumsum": "cumsum",
}
REPEAT_FIELDS = {"first_differing_repeat", "largest_repeat_difference"}
BATCH_FIELDS = {"differing_batch_sizes", "largest_batch_difference"}


def digest_node(hardware: Mapping[str, Any], versions: Mapping[str, Any]) -> str:
    """Return the digest of what a self-test covers: hardware class, versions, and what is measured.

    `hardware` as a worker reports it. How many cores there are counts on a CPU alone, where it decides how sums are
    cut; versions that stand inside `hardware` are left to `versions`.
    """
    beside = {"versions"} if hardware.get("kind") == "cpu" else {"versions", "n_cores"}
    kind = {name: value for name, value in hardware.items() if name not in beside}
    return digest.digest_json({"self_test": SELF_TEST_VERSION, "hardware": kind, "versions": dict(versions)})


def check_self_test(result: Any) -> None:
    """Raise InvalidInput, whose fields name each path, unless this is a whole result of this version."""
    problems: dict[str, str] = {}
    if not isinstance(result, Mapping) or result.get("version") != SELF_TEST_VERSION:
        problems["version"] = f"Must be {SELF_TEST_VERSION}."
    elif not isinstance(result.get("kernels"), Mapping) or set(result["kernels"]) != {"plain", "invariant"}:
        problems["kernels"] = "Must be an object of plain and invariant."
    else:
        plain, invariant = result["kernels"]["plain"], result["kernels"]["invariant"]
        problems |= _measured_problems("kernels.plain", plain)
        if invariant is not None:
            problems |= _measured_problems("kernels.invariant", invariant)
        elif isinstance(plain, Mapping) and plain.get("device") != "cpu":
            problems["kernels.invariant"] = "Must be there: only a CPU has no batch-invariant kernels."
    if problems:
        raise InvalidInput("The self-test's result is not valid.", fields=problems)


def is_batch_invariant(result: Mapping[str, Any]) -> bool:
    """Tell whether every step gave the same bits at batch size 1, in batches and in a row, per dtype.

    Checks the batch-invariant kernels, or the plain ones if there are no others.
    """
    return result["version"] == SELF_TEST_VERSION and all(finding.is_same for finding in _vouching(result))


def find_self_test_refusal(result: Mapping[str, Any] | None, *, host: str) -> str | None:
    """Return why this node may not promise batch invariance, in one sentence; None if it may."""
    if result is None or result["version"] != SELF_TEST_VERSION:
        return f"Batch-invariant kernels are used only where they were tested; run `{COMMAND}` on {host}."
    failed = [finding for finding in _vouching(result) if not finding.is_same]
    if not failed:
        return None
    what = "; ".join(f"{finding.operation} in {finding.dtype}: {finding.text}" for finding in failed)
    return (
        f"The self-test of {host} does not vouch for its batch-invariant kernels ({what}). When that is mended, "
        f"run `{COMMAND}` there again."
    )


def list_operation_findings(result: Mapping[str, Any]) -> tuple[SelfTestFinding, ...]:
    """List the findings by kernels, operation and dtype; none for a result of another version."""
    if result["version"] != SELF_TEST_VERSION:
        return ()
    kinds = [(kind, measured) for kind, measured in result["kernels"].items() if measured is not None]
    return tuple(
        _finding(kind, names[operation], dtype, _rows(measured[part], operation, dtype))
        for kind, measured in sorted(kinds, reverse=True)  # plain first
        for part, names in (("steps", SELF_TEST_STEPS), ("varying", VARYING_OPERATIONS))
        for operation in names
        for dtype in TESTED_DTYPES
    )


def _vouching(result: Mapping[str, Any]) -> Iterator[SelfTestFinding]:
    """Return the findings that decide whether a node is invariant."""
    kind = "plain" if result["kernels"]["invariant"] is None else "invariant"
    return (
        each
        for each in list_operation_findings(result)
        if each.kernels == kind and each.operation in SELF_TEST_STEPS.values()
    )


def _rows(rows: Sequence[Mapping[str, Any]], operation: str, dtype: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if (row["operation"], row["dtype"]) == (operation, dtype)]


def _finding(kernels: str, operation: str, dtype: str, rows: Sequence[Mapping[str, Any]]) -> SelfTestFinding:
    is_same, text = _outcome(rows)
    return SelfTestFinding(kernels=kernels, operation=operation, dtype=dtype, is_same=is_same, text=text)


def _outcome(rows: Sequence[Mapping[str, Any]]) -> tuple[bool | None, str]:
    if not rows:
        return None, "was not tested"
    problem = next((row["problem"] for row in rows if row["problem"] is not None), None)
    if problem is not None:
        return None, f"could not be tested: {problem}"
    texts = []
    sizes = sorted({size for row in rows for size in row.get("differing_batch_sizes", ())})
    if sizes:
        most = max(row["largest_batch_difference"] for row in rows)
        texts.append(f"other bits in batches of {', '.join(map(str, sizes))} (by up to {most:.1e})")
    repeats = [row["first_differing_repeat"] for row in rows if row["first_differing_repeat"] is not None]
    if repeats:
        most = max(row["largest_repeat_difference"] for row in rows)
        texts.append(f"other bits from repeat {min(repeats)} on (by up to {most:.1e})")
    return not texts, ", ".join(texts) or "same bits"


def _measured_problems(path: str, measured: Any) -> dict[str, str]:
    if not isinstance(measured, Mapping):
        return {path: "Must be an object."}
    problems: dict[str, str] = {}
    for part, names, facts in (
        ("steps", SELF_TEST_STEPS, BATCH_FIELDS | REPEAT_FIELDS),
        ("varying", VARYING_OPERATIONS, REPEAT_FIELDS),
    ):
        rows = measured.get(part)
        if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
            problems[f"{path}.{part}"] = "Must be a list of objects."
            continue
        for index, row in enumerate(rows):
            words = _row_problem(row, names, facts)
            if words:
                problems[f"{path}.{part}[{index}]"] = words
        keys = {(row.get("operation"), row.get("dtype")) for row in rows}
        for name, dtype in ((name, dtype) for name in names for dtype in TESTED_DTYPES if (name, dtype) not in keys):
            problems[f"{path}.{part}.{name}.{dtype}"] = "Must be there: what was not tested is not vouched for."
    return problems


def _row_problem(row: Mapping[str, Any], names: Mapping[str, str], facts: set[str]) -> str | None:
    """Return the problem of an operation's row, which needs its facts or the reason they are missing."""
    if row.get("operation") not in names or row.get("dtype") not in TESTED_DTYPES:
        return f"Must be one of {', '.join(names)} in one of {', '.join(TESTED_DTYPES)}."
    problem = row.get("problem", "")
    if problem is not None:
        return None if isinstance(problem, str) and problem else "Must say its problem, or null."
    if not facts <= set(row):
        return f"Must have {', '.join(sorted(facts))}."
    first = row["first_differing_repeat"]
    if first is not None and (type(first) is not int or first < 1):
        return "first_differing_repeat must be a whole number from 1, or null."
    sizes = row.get("differing_batch_sizes", [])
    if not isinstance(sizes, list) or not all(type(size) is int and size > 1 for size in sizes):
        return "differing_batch_sizes must be a list of whole numbers above 1."
    differences = [row[name] for name in facts if name.startswith("largest_")]
    if not all(type(value) in (int, float) and 0 <= value < float("inf") for value in differences):
        return "A largest difference must be a number from 0."
    return None
