"""Numbers that people read are rounded by one rule, `evalboard.core.rounding.shown`, and written by `wording.numbers`.

The check knows no names of variables, so that none can be found that satisfies it: no code formats a number with
decimals itself, and each file that rounds a number is listed with what it rounds. None of those are points.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Find = Callable[[str], Iterator[int]]
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("evalboard", "frontend", "runs", "worker")

# path: how often it formats a number with decimals, and which.
FORMATS = {
    "evalboard/core/profile/profile.py": (3, "the compute capability of a GPU"),
    "evalboard/local/report.py": (1, "seconds, on a terminal"),
    "evalboard/wording/numbers.py": (1, "what `shown` has rounded"),
    "frontend/shell/charts/axes.py": (1, "powers of ten, exact"),
    "worker/sample_model.py": (3, "seconds, on a terminal"),
    "worker/vllm_sources.py": (2, "GiB of a disk"),
}
# path: how often it rounds, and what. Where it draws, points become places, and never a text.
ROUNDS = {
    "evalboard/core/rounding.py": (1, "amounts of money, in exact decimals"),
    "evalboard/core/probes/border_probe.py": (1, "a count of deals"),
    "evalboard/core/stats/case_outcomes.py": (2, "sums that are compared, to the bit"),
    "evalboard/core/stats/numeric_noise.py": (1, "steps of logprobs"),
    "evalboard/core/stats/one_computation.py": (2, "ranks, counts"),
    "evalboard/core/trace/provenance.py": (2, "seconds"),
    "evalboard/core/trace/gaps.py": (1, "steps of logprobs"),
    "evalboard/local/report.py": (1, "seconds"),
    "evalboard/logged/comparing.py": (1, "how far cases moved, to order them"),
    "evalboard/settings.py": (1, "seconds"),
    "evalboard/wording/comparability.py": (1, "minutes"),
    "evalboard/wording/lab_report.py": (1, "a count of cases"),
    "evalboard/wording/release_verdict.py": (1, "a chance in tenths"),
    "evalboard/wording/scorers.py": (1, "a count of cases"),
    "frontend/badges/picture.py": (3, "widths and places"),
    "frontend/board/words.py": (1, "a chance in tenths"),
    "frontend/compare/charts.py": (3, "widths and places"),
    "frontend/compare/log_report.py": (2, "bytes, and the width of a bar"),
    "frontend/compare/pair_chart.py": (3, "places"),
    "frontend/compare/views.py": (1, "a place"),
    "frontend/endpoints/shares.py": (6, "widths and places"),
    "frontend/forced/parts.py": (1, "a place"),
    "frontend/lab/bisect_page.py": (1, "the width of a bar"),
    "frontend/lab/charts.py": (1, "places"),
    "frontend/probes/charts.py": (3, "widths and places"),
    "frontend/runs/charts.py": (6, "widths and places"),
    "frontend/shell/charts/axes.py": (8, "widths and places"),
    "frontend/shell/charts/changes.py": (1, "widths and places"),
    "frontend/shell/charts/marks.py": (3, "widths and places"),
    "frontend/suites/history.py": (1, "a place"),
    "frontend/templatetags/numbers.py": (5, "seconds, and days to the nearest date"),
    "runs/compare/case_lists.py": (1, "how far cases moved, to order them"),
    "runs/run/estimates.py": (2, "counts of tokens"),
    "runs/suites/trials.py": (1, "seconds"),
    "runs/health/read.py": (1, "seconds"),
    "runs/lab/read.py": (4, "minutes, a count of tokens"),
    "runs/store/database_clock.py": (1, "seconds"),
    "runs/store/statements.py": (2, "seconds"),
    "runs/work/strays.py": (1, "a count"),
    "worker/replay.py": (1, "seconds"),
    "worker/torch_check.py": (1, "seconds"),
}

SPEC = re.compile(r"(?:.?[<>=^])?[-+ ]?z?#?0?\d*[,_]?\.(?:[1-9]\d*|\{\})[fF%]")
FIELD = re.compile(r"\{[^{}]*:[^{}]*\.(?:[1-9]\d*|\{\w*\})[fF%]\}|%[-+ 0#\d]*\.(?:[1-9]\d*|\*)[fF]")
ROUNDING = {"round", "around", "rint", "quantize", "__round__"}
DECIMALS = re.compile(r"\.(?:[1-9]\d*|\{[^}]*\}|\*)[fF%]")  # in each of the above: a source without it is not parsed
IN_TEMPLATES = re.compile(r"floatformat|stringformat")
IN_SCRIPTS = re.compile(r"toFixed|toPrecision|toLocaleString|NumberFormat|Math\.(?:round|floor|ceil|trunc)")


def find_formats(source: str) -> Iterator[int]:
    """Yield the lines that format a number with decimals, in whichever way Python knows."""
    if not DECIMALS.search(source):
        return
    tree = ast.parse(source)
    specs = [node.format_spec for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)]
    in_specs = {part for spec in specs if isinstance(spec, ast.JoinedStr) for part in spec.values}
    for spec in specs:
        if isinstance(spec, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in spec.values)
            if SPEC.fullmatch(text):
                yield spec.lineno
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or node in in_specs:
            continue
        if SPEC.fullmatch(node.value) or FIELD.search(node.value):
            yield node.lineno


def find_rounds(source: str) -> Iterator[int]:
    """Yield the lines that name a function that rounds, called or not; `call.round`, a field of probes, is none."""
    if not any(name in source for name in ROUNDING):
        return
    tree = ast.parse(source)
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "round" and isinstance(node.ctx, ast.Load):
            yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr in ROUNDING:
            is_numpy = isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy")
            if node in called or is_numpy:
                yield node.lineno


PLANTED = """
from decimal import Decimal
cut, n = round, 1
a = f"{width:.1f} and {width:+,.{n}f}, {width:.0f}, {width:g}, {width:.3g}"
b = "{:.1f}".format(width) + "%.1f" % width + format(width, ".1f") + "%{y:.1f}"
c = cut(width, 1), width.__round__(1), np.round(width, 1), Decimal(width).quantize(n)
"""


def test_whatever_a_number_is_called_its_rounding_is_found() -> None:
    assert Counter(find_formats(PLANTED)) == {4: 2, 5: 4}
    assert Counter(find_rounds(PLANTED)) == {3: 1, 6: 3}


def _sources(suffix: str) -> dict[str, str]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob(f"*{suffix}")))
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths if "vendor" not in path.parts}


@pytest.mark.parametrize(("find", "allowed"), [(find_formats, FORMATS), (find_rounds, ROUNDS)])
def test_points_are_rounded_nowhere_else(find: Find, allowed: dict[str, tuple[int, str]]) -> None:
    counts = {path: len(list(find(source))) for path, source in _sources(".py").items()}
    assert {path: n for path, n in counts.items() if n} == {path: n for path, (n, _) in allowed.items()}


def test_no_template_rounds() -> None:
    assert [path for path, source in _sources(".html").items() if IN_TEMPLATES.search(source)] == []


def test_no_script_rounds() -> None:
    assert [path for path, source in _sources(".js").items() if IN_SCRIPTS.search(source)] == []
