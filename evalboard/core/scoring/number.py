"""The `number` scorer: a number out of the text, compared with a tolerance in decimal arithmetic."""

import functools
import math
import re
from decimal import Context, Decimal
from typing import Any

from evalboard.core.scoring.kind import Option, Options, Score, ScorerKind, Tools, failed, not_negative, one_of, passed
from evalboard.core.scoring.reasons import shown, shown_any

MAX_DIGITS = 100  # of one written number; longer ones are no answer and cost time to compare
MAX_EXPONENT = 1000
_SEPARATORS = {",": ",", ".": r"\.", " ": "[ \u00a0\u202f]", "'": "['’]", "_": "_"}
# Wide enough that no comparison of numbers within the limits above is rounded: exact means exact.
_ARITHMETIC = Context(prec=2 * (MAX_EXPONENT + MAX_DIGITS), Emax=10**6, Emin=-(10**6))


@functools.lru_cache(maxsize=16)
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of one written number.

    Digits are taken possessively, and a run of them can start a match only at its beginning, so the
    search takes time linear in the text.
    """
    point = re.escape(decimal)
    grouped = f"[0-9]{{1,3}}(?:{_SEPARATORS[thousands]}[0-9]{{3}})+(?![0-9])|" if thousands != "none" else ""
    return re.compile(
        rf"""(?<!\w)(?<![0-9]{point})          # not inside a word, a version or a date
        (?P<sign>[-+−])?[$€£¥]?
        (?P<whole>(?>{grouped}[0-9]++|(?={point}[0-9])))
        (?:{point}(?P<fraction>[0-9]++))?+
        (?!{point}?[0-9])
        (?:(?:[eE]|[ ]?[×x*·][ ]?10\^)(?P<exponent>[-+−]?[0-9]+))?""",
        re.VERBOSE,
    )


def first_number(text: str) -> float | None:
    """Return the first number in a text, by the default options; None without one."""
    options = {name: option.default for name, option in NUMBER.options.items()}
    match = _pattern(options["decimal"], options["thousands"]).search(text)
    value = None if match is None else _read(match, options)
    return None if value is None else float(value)


def _read(match: re.Match[str], options: Options) -> Decimal | None:
    """Return the value of one written number, None if it exceeds the limits."""
    whole = "".join(char for char in match["whole"] if char.isdigit())
    fraction, exponent = match["fraction"] or "", (match["exponent"] or "0").replace("−", "-")
    is_within = len(whole) + len(fraction) <= MAX_DIGITS and len(exponent) <= 5
    if not is_within or abs(int(exponent)) > MAX_EXPONENT:
        return None
    sign = "-" if match["sign"] in ("-", "−") else ""
    return Decimal(f"{sign}{whole or '0'}.{fraction or '0'}e{exponent}")


def _score(options: Options, text: str, targets: list[Any], _tools: Tools) -> Score:
    matches = list(_pattern(options["decimal"], options["thousands"]).finditer(text))
    if not matches:
        return failed(f"There is no number in {shown(text)}.")
    if options["which"] == "only" and len(matches) > 1:
        first, second = matches[0].group(), matches[1].group()
        return failed(f"There are {len(matches)} numbers instead of one: {first[:20]}, {second[:20]} …")
    match = matches[-1] if options["which"] == "last" else matches[0]
    written = match.group().strip()
    answer = _read(match, options)
    if answer is None:
        return failed(f"The number {shown(written)} is too long or too large to compare.")
    same = str(_ARITHMETIC.add(answer, Decimal(0)).normalize(_ARITHMETIC))
    distance, allowed, nearest = min(_distances(answer, targets, options), key=lambda row: (row[0] > row[1], row[0]))
    if distance <= allowed:
        within = f", within {_plain(allowed)} of {shown(nearest)}" if distance else ""
        return passed(f"Read {written}{within}.", same)
    off = f"; it is off by {_plain(distance)}" + (f", more than the {_plain(allowed)} allowed" if allowed else "")
    return failed(f"Read {written} as the {options['which']} number; expected {shown_any(targets)}{off}.", same)


def _distances(answer: Decimal, targets: list[Any], options: Options) -> list[tuple[Decimal, Decimal, Any]]:
    """Return (distance, allowed distance, target) for every target."""
    rows = []
    for target in targets:
        wanted = _decimal(target)
        relative = _ARITHMETIC.multiply(_decimal(options["relative"]), wanted.copy_abs())
        distance = _ARITHMETIC.subtract(answer, wanted).copy_abs()
        rows.append((distance, max(_decimal(options["absolute"]), relative), target))
    return rows


def _decimal(value: int | float) -> Decimal:
    # By its shortest written form: 0.1 in a suite means one tenth, not the binary fraction next to it.
    return Decimal(repr(value))


def _plain(value: Decimal) -> str:
    return f"{value.normalize(_ARITHMETIC):.6g}"


def _target_problem(_options: Options, target: Any) -> str | None:
    if isinstance(target, bool) or not isinstance(target, int | float):
        return "must be a number, or a list of numbers of which any one is right"
    if not math.isfinite(target) or abs(target) > 1e300:
        return "must be a finite number of at most 300 digits"
    return None


def _conflict(options: Options) -> str | None:
    if options["decimal"] == options["thousands"]:
        return "decimal and thousands must be different characters"
    return None


NUMBER = ScorerKind(
    name="number",
    version=1,
    options={
        "which": Option("first", one_of("first", "last", "only")),
        "absolute": Option(0.0, not_negative),
        "relative": Option(0.0, not_negative),
        "decimal": Option(".", one_of(".", ",")),
        "thousands": Option(",", one_of(*_SEPARATORS, "none")),
    },
    target_problem=_target_problem,
    score=_score,
    conflict=_conflict,
)
