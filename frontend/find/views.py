"""The search over everything: a page of its own, and the list that the dialog of every page shows."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evalboard.contract.find import ANSWER, KINDS, Hit, SearchResult
from evalboard.wording.numbers import counted
from frontend.find.acts import find_acts
from frontend.find.words import KIND_NAMES, PLURALS, describe_result, glyph_of
from runs.access import READ, requires
from runs.find import HITS_OF_ALL, Wanted, count_responses, parse_wanted, search


@dataclass(frozen=True, slots=True)
class KindLink:
    """A kind that the list can be narrowed to, with how many hits it has."""

    kind: str
    label: str
    count: str
    url: str
    is_here: bool


@dataclass(frozen=True, slots=True)
class HitLine:
    """A hit: its kind, its glyph, and its name split around the typed part."""

    hit: Hit
    kind_name: str
    glyph: str
    before: str
    marked: str
    after: str


@requires(READ)
@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """Show the results. `part=list` is the dialog's list of nine lines. A unique address opens at once."""
    is_part = request.GET.get("part") == "list"
    kind = request.GET.get("kind", "")
    text = request.GET.get("q", "")
    wanted = parse_wanted(text, kind if kind in (*KINDS, ANSWER) else "")
    result = search(wanted, origin=request.build_absolute_uri("/").removesuffix("/"))
    if result.opens is not None and not is_part:
        return redirect(result.opens)
    hits = result.hits[:HITS_OF_ALL] if is_part else result.hits
    acts = () if kind else find_acts(wanted.text, request.GET.get("of", "")[:200], hits, request.user)
    page = {
        "wanted": wanted,
        "text": text,
        "result": result,
        "lines": tuple(_line(hit, wanted.text) for hit in hits),
        "summary": describe_result(result, n_shown=len(hits)) if hits or not acts else counted(len(acts), "act"),
        "kinds": _kinds(wanted, result),
        "all_url": _address(wanted.text),
        "answers_url": _address(wanted.text, ANSWER),
        "n_responses": count_responses() if wanted.text and not hits and wanted.kind != ANSWER else None,
        "is_answers": wanted.kind == ANSWER,
        "acts": acts,
    }
    return render(request, "find/_list.html" if is_part else "find/page.html", page)


def _line(hit: Hit, text: str) -> HitLine:
    at = hit.name.lower().find(text.lower())
    if at < 0 or len(hit.name.lower()) != len(hit.name):  # letters that are two in small letters move what follows
        return HitLine(hit, KIND_NAMES[hit.kind], glyph_of(hit), hit.name, "", "")
    end = at + len(text)
    return HitLine(hit, KIND_NAMES[hit.kind], glyph_of(hit), hit.name[:at], hit.name[at:end], hit.name[end:])


def _kinds(wanted: Wanted, result: SearchResult) -> tuple[KindLink, ...]:
    """Return the kinds that have hits, and the one that the list is narrowed to."""
    return tuple(
        KindLink(
            count.kind,
            PLURALS[count.kind],
            f"{count.n}+" if count.is_more else f"{count.n}",
            _address(wanted.text, count.kind),
            count.kind == wanted.kind,
        )
        for count in result.counts
        if count.n or count.kind == wanted.kind
    )


def _address(text: str, kind: str = "") -> str:
    return f"{reverse('find')}?{urlencode({'q': text, **({'kind': kind} if kind else {})})}"
