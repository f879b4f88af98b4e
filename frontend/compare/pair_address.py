"""Addresses of two compared responses, which preserve the reader's filters."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from evalboard.contract.compare import Comparison
from evalboard.contract.treatments import BY_ID, BY_INPUT, PROMPT_TREATMENT, TREATMENTS, Terms
from evalboard.core.stats import CASE_OUTCOMES
from evalboard.path_converters import reverse_case
from runs.compare import CASE_LISTS, SORTS, DivergenceFilter

CHANGED = {"yes": True, "no": False}
FILTERS = (
    "show",
    "outcome",
    "look",
    "cause",
    "changed",
    "tag",
    "backend",
    "cluster",
    "q",
    "compact",
    "sort",
    "rows",
    "hide",
)
COLUMNS = {"got": "expected / got", "why": "why"}  # of a list of cases, that `hide` may name
PAGE_SIZES = ("10", "50", "200")
VIEW = ("compact", "sort", "rows", "hide")  # how a list is shown, not which cases
PAIRS = "pairs"  # of `show`: pairs of responses, not cases
MAX_DIGITS = 9

Filters = Mapping[str, str]  # filters of the address, as `asked_filter` gives them
NOTHING: Filters = {}
MODEL_TERMS = Terms()


def parse_filters(request: HttpRequest) -> dict[str, str]:
    """Return the non-empty filters of the address, unchanged."""
    values = {name: request.GET.get(name, "").strip()[:200] for name in FILTERS}
    if values["changed"] not in CHANGED:
        values["changed"] = ""
    if values["outcome"] not in CASE_LISTS:
        values["outcome"] = ""
    if values["outcome"] not in CASE_OUTCOMES:
        values["look"] = ""
    if values["show"] != PAIRS:
        values["show"] = ""
    if values["sort"] not in SORTS:
        values["sort"] = ""
    if values["rows"] not in PAGE_SIZES:
        values["rows"] = ""
    values["hide"] = ",".join(name for name in COLUMNS if name in values["hide"].split(","))
    if parse_look(values) is None:
        values["look"] = ""
    return {name: value for name, value in values.items() if value}


def parse_look(active: Mapping[str, str]) -> int | None:
    """Return the first so many repeats of each side, as a verdict at that look reads them; None for all."""
    text = active.get("look", "")
    return int(text) or None if text.isascii() and text.isdigit() and len(text) < MAX_DIGITS else None


def divergence_filter(active: dict[str, str]) -> DivergenceFilter:
    return DivergenceFilter(
        cause=active.get("cause", ""),
        is_changed=CHANGED.get(active.get("changed", "")),
        tag=active.get("tag", ""),
        backend=active.get("backend", ""),
        cluster=active.get("cluster", ""),
        query=active.get("q", ""),
    )


def parse_terms(request: HttpRequest) -> dict[str, str]:
    """Return `treatment` and `pair_by` of the address for `runs.compare.compare`, ignoring invalid ones."""
    treatment, pair_by = request.GET.get("treatment", ""), request.GET.get("pair_by", "")
    is_by_id = pair_by == BY_ID and treatment in ("", PROMPT_TREATMENT)
    return {"treatment": treatment if treatment in TREATMENTS else "", "pair_by": BY_ID if is_by_id else BY_INPUT}


def parse_repeats(request: HttpRequest) -> tuple[int, int] | None:
    """Return the two repeats of `?repeat=1,2`, or of a form's two fields; nonsense reads as none."""
    parts = ",".join(request.GET.getlist("repeat")).split(",")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < MAX_DIGITS for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def comparison_url(
    baseline: int,
    candidate: int,
    *,
    repeats: tuple[int, int] | None = None,
    filters: Filters = NOTHING,
    terms: Terms = MODEL_TERMS,
) -> str:
    query = ({} if repeats is None else {"repeat": f"{repeats[0]},{repeats[1]}"}) | terms.query | dict(filters)
    return f"{reverse('compare', args=[baseline, candidate])}{f'?{_encoded(query)}' if query else ''}"


def lists_of(report: Comparison) -> Callable[[Filters], str]:
    """Return what gives the address of a list of a comparison's cases, by its filters."""
    address = partial(comparison_url, *report.run_ids, repeats=report.repeats, terms=report.terms)
    return lambda filters: address(filters=filters)


def pair_url(
    baseline: int,
    candidate: int,
    case_id: str,
    *,
    repeats: tuple[int, int],
    at: int | None = None,
    filters: Filters = NOTHING,
    terms: Terms = MODEL_TERMS,
) -> str:
    """Return the address of the trace diff page of one case; see `addresses.response_url` for its dots."""
    query = (
        {"repeat": f"{repeats[0]},{repeats[1]}"} | terms.query | dict(filters) | ({} if at is None else {"at": str(at)})
    )
    return f"{_pair_page(baseline, candidate, case_id)}?{_encoded(query)}"


@lru_cache(maxsize=1024)  # lists are read again and again, and an address takes long to make
def _pair_page(baseline: int, candidate: int, case_id: str) -> str:
    return reverse_case("trace_diff", baseline, candidate, case_id)


def _encoded(query: dict[str, str]) -> str:
    return urlencode(query, safe=",")
