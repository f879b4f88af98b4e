"""Render two compared logs as one HTML file that needs no server, from the compare page's templates.

Used by the command line, so it needs only Django's template engine: no settings, no database.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from django.template import Context, Engine
from django.template.loaders import filesystem
from django.utils.safestring import mark_safe

from evalboard.contract.compare import CaseOutcome, Comparison
from evalboard.contract.treatments import BY_ID, BY_INPUT
from evalboard.core.compare import cut_text
from evalboard.core.stats import CASE_OUTCOMES
from evalboard.core.trace import END
from evalboard.logged.comparing import LogComparison
from evalboard.logged.shown import (
    ListedLogCase,
    cut_pair_texts,
    list_cases,
    list_facts,
    show_log_pair,
)
from evalboard.logged.sources import BackendShare, SplitRun
from evalboard.wording.messages import Messages, speak
from evalboard.wording.numbers import counted, fixed, signed
from evalboard.wording.outcomes import compare_with_chance
from frontend.compare import charts, words
from frontend.compare.pair_lines import pair_lines
from frontend.shell.findings import Headline
from frontend.shell.version import VERSION
from frontend.templatetags.drawing import drawn, shortened, sprite_address
from frontend.templatetags.drawing import token as draw_token
from frontend.templatetags.pairs import boxed, cause_name, passes, score_move

FRONTEND = Path(__file__).parents[1]
FEATURES = ("compare", "shell")  # whose templates it renders
LIBRARIES = ("drawing", "facts", "numbers", "pairs")
STYLES = (
    *(f"shell/{name}.css" for name in ("tokens", "base", "components", "pages", "print")),
    "compare/compare.css",
    "compare/log_report.css",
)
AROUND = (42, 20)  # tokens shown before and after the one where two answers part
BYTES = 400_000  # of a file of at most 1,000 cases; of more, as many for each 1,000
MAX_BYTES = 2 * BYTES  # of any file, so that a browser opens it in half a second
SLACK = 2000  # for glyphs and styles of further rows, and what is left out
FOR_PAIRS = 0.35  # of the bytes that the page itself leaves, for answers side by side; the list has the rest
RULE, CLASS = re.compile(r"([^{}]+)\{([^{}]*)\}"), re.compile(r"\.([a-zA-Z][\w-]*)")
MISSES = 5  # pairs in a row that are too large for the rest of the file, until no further one is tried
PAIRED_BY = {BY_INPUT: "input and target", BY_ID: "id and target"}


class ReportedLog(NamedTuple):
    """One of the logs. began: the start of its run, None if not in the log."""

    name: str
    digest: str
    began: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Facts about the report itself.

    logs: by side. ending: the command's exit code in words. keep: the command that stores the logs.
    """

    command: str
    written: datetime
    logs: tuple[ReportedLog, ...]
    ending: str
    keep: str


class _List(NamedTuple):
    name: str
    label: str
    n: int
    is_on: bool


class _Counted(NamedTuple):
    """A list of cases in the finding; a file has no address for it."""

    label: str
    n: int
    url: str = ""


def render_comparison(made: LogComparison, about: About) -> str:
    """Return the report of two logs: the worst cases in full, as far as the size limit allows."""
    comparison, cases = made.comparison, list_cases(made)
    page = _describe(made, comparison, cases) | {"about": about, "lists": _name_lists(comparison)}
    limit = min(max(BYTES, BYTES * len(cases) // 1000), MAX_BYTES)
    pairs = _Pairs(made, cases)
    pairs.fill(1)  # one in any case, and with it the styles that pairs need

    def render(rows: _Rows) -> str:
        return _render_page(
            page
            | {
                "rows": mark_safe("\n".join(rows.drawn)),  # noqa: S308 (escaped where they are drawn)
                "cases": mark_safe("\n".join(pairs.drawn)),  # noqa: S308 (rendered by templates)
                "has_tokens": pairs.has_tokens,
                "left_out": _describe_left_out(len(cases), len(rows.drawn), pairs, limit),
            }
        )

    few = _fill_rows(cases[:1], pairs.shown, limit)
    room = limit - _weigh(render(few)) + few.size + pairs.size - SLACK
    pairs.fill(round(room * FOR_PAIRS))
    rows = _fill_rows(cases, pairs.shown, room - pairs.size)
    pairs.fill(room - rows.size)
    return render(_fill_rows(cases, pairs.shown, room - pairs.size))


def render_split(runs: Sequence[SplitRun], about: About) -> str:
    """Return the report of one log: who answered it, with share and score."""
    split = []
    for run in runs:
        parts = run.parts
        scored = [part.score for part in parts if part.score is not None]
        apart = ""
        if len(scored) > 1:
            widest = fixed(max(scored) - min(scored), 1)
            apart = SAID.write("apart", widest=widest)
        largest = parts[0].fingerprint or parts[0].provider or parts[0].model if parts else ""
        split.append(
            {
                "run": run,
                "n": sum(part.n_answers for part in parts),
                "claim": f"{counted(len(parts), 'backend')} answered {Path(run.name).name}",
                "finding": Headline(SAID.write("largest", name=largest, share=parts[0].share), apart)
                if parts
                else None,
                "parts": [{**_fields(part), "width": round(100 * part.share, 3)} for part in parts],
            }
        )
    notes = [("", note) for run in runs for note in run.notes]
    names = dict.fromkeys(run.name for run in runs)
    return _render_page({"about": about, "title": ", ".join(names), "split": split, "notes": notes})


def _fields(part: BackendShare) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__slots__}


def _describe(made: LogComparison, comparison: Comparison, cases: Sequence[ListedLogCase]) -> dict[str, Any]:
    notes = [run.notes for run in (made.baseline, made.candidate)]
    sides = [("both logs" if note in notes[1] else "baseline", note) for note in notes[0]]
    sides += [("candidate", note) for note in notes[1] if note not in notes[0]]
    score = comparison.score.difference
    outcomes = comparison.outcomes
    n_cases = [len(run.suite_version.cases) for run in (made.baseline, made.candidate)]
    parts = comparison.parts
    return {
        "comparison": comparison,
        "title": f"{parts.other_text + parts.changed:,} of {counted(len(cases), 'sample')} read otherwise"
        if score is None
        else f"{signed(score)} points",
        "finding": _describe_finding(comparison),
        "outcome_links": [_Counted(kind, n) for kind in CASE_OUTCOMES if outcomes and (n := getattr(outcomes, kind))],
        "by_chance": compare_with_chance(outcomes) if outcomes else "",
        "spread": tuple(words.describe_side(comparison, side) for side in ("baseline", "candidate")),
        "paired_by": PAIRED_BY[made.terms.pair_by] if made.terms.is_prompt else "id, prompt and target",
        "moved": (),  # in the table of what was compared
        "count_parts": charts.count_parts(comparison, _no_address),
        "counts_caption": words.describe_counts(comparison),
        "waterfall": charts.waterfall(comparison, _no_address),
        "facts": list_facts(made),
        "counted": _count(comparison),
        "n_unpaired": sum(n_cases) - 2 * len(made.cases[0]),
        "notes": sides,
    }


SAID = Messages(
    "log_report",
    {
        ("backends", "asserts"): {
            "apart": "The scores lie up to {widest} points apart, each over what that backend answered.",
            "largest": "{name} gave {share:share} of the answers.",
            "mixed": "Several backends answered for the {sides}, so no difference is given.",
            "alone": "To see each backend, compare that log alone.",
        },
        ("file", "asserts"): {
            "rows": "The list has the first {n:,} of {n_all:,} samples, the worst first.",
            "answers": "The answers of {n:,} of the {n_all:,} that differ are laid side by side, the worst first.",
            "limit": "The file is kept under {limit:,} kB.",
            "more": "evalboard diff --json has every pair, and --case ID shows any one.",
        },
    },
)


def _no_address(_filters: Mapping[str, str]) -> str:
    return ""


def _describe_finding(comparison: Comparison) -> Headline:
    if not comparison.mixed_sides:
        return words.describe_comparison(comparison)
    sides = " and the ".join(comparison.mixed_sides)
    return Headline(SAID.write("mixed", sides=sides), SAID.write("alone"))


def _count(comparison: Comparison) -> str:
    parts, is_scored = comparison.parts, comparison.score.difference is not None
    n_moved = comparison.counts.n_cases_score_changed
    counts = (
        (n_moved, "changed its score" if n_moved == 1 else "changed their score"),
        (parts.other_text, "read otherwise and score the same" if is_scored else "read otherwise"),
        (parts.same_text, "read the same"),
        (parts.unscored, "lack a score"),
        (parts.missing, "lack an answer"),
    )
    return "; ".join(f"{n:,} {what}" for n, what in counts if n or (is_scored and what.startswith("changed")))


def _name_lists(comparison: Comparison) -> tuple[_List, ...]:
    """Return the non-empty parts, most important first; the first is open."""
    labels = {part: label for part, label in charts.label_parts(comparison).items() if getattr(comparison.parts, part)}
    lists = [
        _List(part.replace("_", "-"), label, getattr(comparison.parts, part), part == next(iter(labels)))
        for part, label in labels.items()
    ]
    return (*lists, _List("all", "all", comparison.counts.n_cases, False)) if len(lists) > 1 else ()


@dataclass(slots=True)
class _Rows:
    drawn: list[str]
    size: int


def _fill_rows(cases: Sequence[ListedLogCase], shown: Collection[int], room: int) -> _Rows:
    """Return as many rows as fit. shown: the places of the cases whose answers are in the file."""
    rows, size = [], 0
    for at, case in enumerate(cases):
        row = _draw_row(case, at + 1 if at in shown else None)
        size += _weigh(row) + 1
        if size > room:
            break
        rows.append(row)
    return _Rows(rows, size)


def _draw_row(case: ListedLogCase, number: int | None) -> str:
    """Render a row briefly, since a file has up to a thousand; the browser adds what it can."""
    outcome, pair = case.outcome, case.outcome.pair
    name, is_same = drawn(shortened(outcome.case, 60)), case.part == "same_text"
    prompt = drawn(shortened(outcome.prompt, 60 if is_same else 100))
    link = name if number is None else f'<a href="#case-{number}">{name}</a>'
    cause = tokens = place = ""
    if pair is not None:
        cause = escape(pair.cause.replace("_", " ")) if is_same else cause_name(pair.numeric or pair.cause)
        place = str(pair.at if pair.flip_position is None and is_same and pair.at is not None else "")
        place = str(pair.flip_position) if pair.flip_position is not None else place
    if any(case.tokens):
        ours, theirs = (boxed(each, side) for each, side in zip(case.tokens, ("baseline", "candidate"), strict=True))
        tokens = f"{ours} → {theirs}"
    return (
        f"<tr class='in-{case.part.replace('_', '-')}'><th scope=row>{link}<td>{prompt}<td>{cause}<td>{tokens}"
        f"<td class=number>{place}<td>{_draw_score(outcome)}"
    )


def _draw_score(outcome: CaseOutcome) -> str:
    ours, theirs = outcome.scores_baseline, outcome.scores_candidate
    if not any(score is not None for score in (*ours, *theirs)):
        return "not scored"
    if ours == theirs and len(set(ours)) == 1 and (score := ours[0]) is not None:
        return {100.0: "pass", 0.0: "fail"}.get(score, fixed(score / 100, 2))
    if len(ours) == len(theirs) == 1:
        return score_move(ours[0], theirs[0])
    return f"{passes(ours)} → {passes(theirs)}"


class _Pairs:
    """The pairs shown in full, the worst first. shown: case place → its HTML."""

    def __init__(self, made: LogComparison, cases: Sequence[ListedLogCase]) -> None:
        self._made, self._cases = made, cases
        self._pending = [at for at, case in enumerate(cases) if case.pair and _is_worth_showing(case)]
        self.n_wanted = len(self._pending)
        self.shown: dict[int, str] = {}
        self.size = 0
        self.has_tokens = False

    @property
    def drawn(self) -> list[str]:
        return [self.shown[at] for at in sorted(self.shown)]

    def fill(self, room: int) -> None:
        """Add pairs until `room` bytes are used; the worst one in any case."""
        n_misses = 0
        for at in list(self._pending):
            if n_misses == MISSES or self.size >= room:
                return
            html, has_tokens = self._draw(self._cases[at], at + 1)
            if self.size + _weigh(html) > room and self.shown:
                n_misses += 1
                continue
            self._pending.remove(at)
            self.shown[at] = html
            self.size += _weigh(html) + 1
            self.has_tokens = self.has_tokens or has_tokens

    def _draw(self, case: ListedLogCase, number: int) -> tuple[str, bool]:
        assert case.pair is not None  # noqa: S101 - those alone are wanted
        assert case.outcome.pair is not None  # noqa: S101
        pair = show_log_pair(self._made, case.pair, case.outcome.pair, around=AROUND)
        lines, cut = pair_lines(pair), cut_pair_texts(pair)
        parted = case.outcome.pair
        shown = {
            "pair": pair,
            "number": number,
            "is_first": not self.shown,
            "prompt": case.outcome.prompt,
            "lines": lines,
            "selected": pair.selected,
            "n_later": max(pair.last_at - pair.positions[-1].at, 0) if pair.positions else 0,
            "flip_tokens": (parted.token_baseline, parted.token_candidate),
            "texts": tuple(_mark_parting(text, cut.parts_at) for text in cut.texts),
            "n_left_out": sum(cut.n_left_out),
        }
        return _render("compare/_log_case.html", shown), bool(lines)


def _mark_parting(text: str, at: int | None) -> str:
    """Render a text with the part outlined where it diverges from the other."""
    if at is None:
        return drawn(text)
    token = cut_text(text, at).token
    n = 0 if token == END else len(token)
    marked = f'<b class="parts-here">{draw_token(token)}</b>'
    return mark_safe(f"{drawn(text[:at])}{marked}{drawn(text[at + n :])}")  # noqa: S308 (escaped by `drawn`)


def _is_worth_showing(case: ListedLogCase) -> bool:
    """Whether two answers differ: of one text, only logprobs do."""
    return case.part != "same_text"


def _describe_left_out(n_cases: int, n_rows: int, pairs: _Pairs, limit: int) -> str:
    parts = []
    if n_rows < n_cases:
        parts.append(SAID.claim("rows", n=n_rows, n_all=n_cases))
    if len(pairs.shown) < pairs.n_wanted:
        parts.append(SAID.claim("answers", n=len(pairs.shown), n_all=pairs.n_wanted))
    if not parts:
        return ""
    return speak([*parts, SAID.claim("limit", limit=limit // 1000), SAID.claim("more")])


def _render_page(page: Mapping[str, Any]) -> str:
    theme, switch, script = _read_script("shell/theme.js"), _theme_switch(), _read_script("compare/log_report.js")
    scripts = {
        "theme_script": mark_safe(theme),  # noqa: S308 (our own files)
        "theme_switch": mark_safe(switch),  # noqa: S308
        "script": mark_safe(script),  # noqa: S308
    }
    html = _render("compare/log_report.html", {**page, **scripts, "version": VERSION})
    style, run = _choose_styles(html), " ".join(map(_hash, scripts.values()))
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {run}; base-uri 'none'; form-action 'none'"
    # No text of a log stands before any of these places.
    for place, filled in (
        ('Policy" content="">', f'Policy" content="{policy}">'),
        ("<style></style>", f"<style>{style}</style>"),
        ("<svg hidden></svg>", f"<svg hidden>{_choose_glyphs(html)}</svg>"),
    ):
        html = html.replace(place, filled, 1)
    return html


def _render(name: str, values: Mapping[str, Any]) -> str:
    html: str = _engine().get_template(name).render(Context(dict(values), use_l10n=False, use_tz=False))
    return html.replace(f'href="{sprite_address()}#', 'href="#')


class Unindented(filesystem.Loader):
    """Reads templates without their indentation, of which a file would be full."""

    def get_contents(self, origin: Any) -> str:
        return re.sub(r"\n\s+", "\n", str(super().get_contents(origin)))


@cache
def _engine() -> Engine:
    return Engine(
        dirs=[str(FRONTEND / feature / "templates") for feature in FEATURES],
        libraries={name: f"frontend.templatetags.{name}" for name in LIBRARIES},
        builtins=["frontend.templatetags.terms"],
        loaders=[("django.template.loaders.cached.Loader", [f"{__name__}.Unindented"])],
    )


def _choose_styles(html: str) -> str:
    """Return the rules that can apply: those whose class names occur in the page."""
    names = set(re.findall(r"[\w-]+", html))

    def choose(rule: re.Match[str]) -> str:
        selectors = re.split(r",(?![^(]*\))", rule[1])
        used = [each for each in selectors if set(CLASS.findall(re.sub(r"\(.*?\)", "", each))) <= names]
        return f"{','.join(used)}{{{rule[2]}}}" if used else ""

    css = RULE.sub(choose, _read_styles())
    return re.sub(r"@media[^{}]*\{\}", "", css)


@cache
def _read_styles() -> str:
    css = "\n".join(_read_static(name) for name in STYLES)
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    return re.sub(r"\s*([{};,])\s*", r"\1", re.sub(r"\s+", " ", css)).replace(";}", "}").strip()


@cache
def _read_script(name: str) -> str:
    """Return a script without comments on their own lines."""
    return re.sub(r"^\s*(//[^\n]*|/\*.*?\*/)\n", "", _read_static(name), flags=re.MULTILINE | re.DOTALL).strip()


def _theme_switch() -> str:
    return f'{_read_script("shell/themes.js")}\ndocument.querySelectorAll("[data-theme-switch]").forEach(mount);'


def _read_static(name: str) -> str:
    return (FRONTEND / name.partition("/")[0] / "static" / name).read_text(encoding="utf-8")


def _choose_glyphs(html: str) -> str:
    """Return the glyphs that the page uses."""
    used = set(re.findall(r'<use href="#([\w-]+)"', html))
    every = re.finditer(r'<symbol id="([\w-]+)".*?</symbol>', _read_static("shell/sprite.svg"), re.DOTALL)
    return "".join(symbol[0] for symbol in every if symbol[1] in used)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _weigh(html: str) -> int:
    return len(html.encode())
