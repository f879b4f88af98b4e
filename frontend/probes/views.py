"""Probes: request and list them, and show each with its calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.probe import Probe, ProbeEstimate
from evalboard.contract.verification import read_finding
from evalboard.core import table
from evalboard.wording.capability import LABELS, describe_parameter
from evalboard.wording.clock import describe_clock
from evalboard.wording.vendors import CELL_NAMES, list_cells
from frontend.endpoints.words import ParameterState, mark_parameter
from frontend.probes import charts, words
from frontend.probes import numbers as probe_numbers
from frontend.probes.bands import bands
from frontend.probes.words import QUESTIONS
from frontend.shell.findings import split_claim
from frontend.shell.forms import JSONText, PlainForm, blaming, endpoint_choices, once
from frontend.shell.lists import filter_by, parse_number, read_filters, read_view
from frontend.shell.live import answer_list, answer_progress
from frontend.templatetags.drawing import drawn_plain, shortened
from runs.access import READ, RUN, may, requires
from runs.catalogue import read
from runs.models import ProbeRecord
from runs.probes import (
    canaries,
    comparable_batches,
    compare_batches,
    create_probe,
    estimate_probe,
    probe_tokens,
    read_stacks,
    read_vendor_card,
)
from runs.probes import read as selector
from runs.suites import suite_rows
from runs.work import unclaimed_reason


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter of a capability check."""

    name: str
    wanted: str
    state: ParameterState
    seen: str


def parameter_rows(numbers: Mapping[str, Any]) -> tuple[ParameterRow, ...]:
    """Return the table of a capability check; nothing where too little was answered."""
    return tuple(
        ParameterRow(
            LABELS[row["parameter"]],
            "" if row["asked"] is None else str(row["asked"]).lower(),
            mark_parameter(row),
            describe_parameter(row),
        )
        for row in numbers.get("rows", ())
    )


class OptionalJSON(JSONText):
    """A JSON object typed as text; none typed is an empty one."""

    def clean(self, value: Any) -> dict[str, Any]:
        return super().clean(value) if (value or "").strip() else {}


class ProbeForm(PlainForm):
    endpoint = forms.ChoiceField()
    kind = forms.ChoiceField(choices=[(kind, f"{kind}: {QUESTIONS.write(kind)}") for kind in QUESTIONS])
    profile = forms.ChoiceField(
        required=False, help_text="The profile of the engine. The probe chooses its own prompts and sampling."
    )
    parameters = OptionalJSON(
        required=False,
        label="Parameters as JSON",
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": '{"copies": 200}'}),
        help_text="Only those that differ from the defaults.",
    )

    def __init__(self, *args: Any, endpoints: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        """Build the form. endpoints, profiles: rows of the catalogue, without those of logs."""
        super().__init__(*args, **kwargs)
        choices = self.fields
        choices["endpoint"].choices = endpoint_choices(endpoints)  # type: ignore[attr-defined]
        choices["profile"].choices = [  # type: ignore[attr-defined]
            ("", "the one that fits the kind"),
            *((row.slug, f"{row.slug}: {drawn_plain(shortened(row.title, 80))}") for row in profiles),
        ]


class CommaBoxes(forms.CheckboxSelectMultiple):
    """Boxes to tick, whose names an address may also give in one value with commas."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [each.strip() for text in data.getlist(name) for each in text.split(",") if each.strip()]


class CardForm(PlainForm):
    """Which endpoints a vendor card compares."""

    endpoints = forms.MultipleChoiceField(widget=CommaBoxes, label="Endpoints that claim one model")
    reference = forms.ChoiceField(required=False, help_text="The endpoint that the others are compared with.")
    suite = forms.ChoiceField(required=False, help_text="The suite that verifications used.")
    until = forms.CharField(required=False, help_text="A day or a time, such as 2026-11-29. Nothing newer is used.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        served = endpoint_choices(read.endpoint_rows())
        choices = {
            "endpoints": served,
            "reference": [("", "none"), *served],
            "suite": [("", "any"), *((row.slug, row.slug) for row in suite_rows())],
        }
        for name, offered in choices.items():
            self.fields[name].choices = offered  # type: ignore[attr-defined]

    def clean_endpoints(self) -> str:
        return ",".join(self.cleaned_data["endpoints"])


PROBES_PER_PAGE = 25
CALLS_PER_PAGE = 25
PARTS = {"progress": "probes/_live.html"}


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def probes(request: HttpRequest) -> HttpResponse:
    choices = {"endpoints": read.endpoint_rows(), "profiles": read.profile_rows()}
    if request.method != "POST":
        wanted = {name: request.GET[name] for name in ("endpoint", "kind") if request.GET.get(name)}
        return _list(request, ProbeForm(initial=wanted, **choices))
    form = ProbeForm(request.POST, **choices)
    if form.is_valid():
        with blaming(form):
            order = {**form.cleaned_data, "profile": form.cleaned_data["profile"] or None}
            if "price" in request.POST or order["kind"] == ProbeRecord.Kind.BORDER:
                expected = estimate_probe(**order)
                # A search is confirmed by its price: the button that starts it says how many calls were shown.
                if request.POST.get("calls") != str(expected.n_calls):
                    return _list(request, form, expected=expected)
            probe = create_probe(**order, user=request.user)
            messages.success(request, f"Probe {probe.pk} is queued; this page follows it.")
            return redirect("probe", probe_id=probe.pk)
    form.mark_problems()
    return _list(request, form, status=422)


@requires(READ)
@require_safe
def probe(request: HttpRequest, probe_id: int) -> HttpResponse:
    answer = selector.probe_detail(probe_id)
    part = request.GET.get("part")
    if part is None:
        return render(request, "probes/page.html", _live(answer) | _rest(request, answer))
    if part not in PARTS:
        raise Http404
    return answer_progress(request, PARTS[part], _live(answer), is_over=answer.is_terminal)


@requires(READ)
@require_safe
def vendors(request: HttpRequest) -> HttpResponse:
    """Show the vendor card of the endpoints in the address, or send it as CSV."""
    if not request.GET.get("endpoints"):
        return render(request, "probes/vendors.html", {"form": CardForm()})
    form = CardForm(request.GET)
    if not form.is_valid():
        form.mark_problems()
        return render(request, "probes/vendors.html", {"form": form}, status=422)
    with blaming(form):
        card = read_vendor_card(**form.cleaned_data)
        if request.GET.get("as") == table.CSV:
            lines = b"".join(table.write(table.CSV, CELL_NAMES, list_cells(card)))
            return HttpResponse(lines, content_type="text/csv; charset=utf-8")
        address = urlencode({name: value for name, value in form.cleaned_data.items() if value})
        page = {"card": card, "form": form, "address": address, "rows": words.mark_cells(card)}
        page["command"] = words.card_command(card)
        return render(request, "probes/vendors.html", page)
    form.mark_problems()
    return render(request, "probes/vendors.html", {"form": form}, status=422)


def _list(
    request: HttpRequest, form: ProbeForm, *, status: int = 200, expected: ProbeEstimate | None = None
) -> HttpResponse:
    # What a form that was sent back has in it is no filter.
    query = request.GET if request.method != "POST" else {}
    filters = read_filters(
        query,
        filter_by("endpoint", read.endpoint_slugs()),
        filter_by("kind", tuple(ProbeRecord.Kind)),
    )
    view = read_view(query, orders=selector.PROBE_ORDERS, default="-id", size=PROBES_PER_PAGE, active=filters.active)
    shown = view.read(selector.sortable_probes(**filters.values))
    is_all = not (shown.is_continued or shown.is_filtered)
    page = {
        "rows": tuple((row, words.mark(row)) for row in shown.rows),
        "filters": filters,
        "list": shown,
        "kinds": words.costs(),
        "finding": words.describe_list(shown.rows) if shown.rows and is_all else None,
        "may_probe": may(request.user, RUN),
        "form": form,
        "expected": expected,
    }
    is_moving = any(not row.is_terminal for row in shown.rows)
    return answer_list(request, "probes/list.html", "probes/_rows.html", page, is_moving=is_moving, status=status)


def _live(answer: Probe) -> dict[str, object]:
    return {
        "probe": answer,
        "finding": words.describe_probe(answer),
        "mark": words.mark(answer),
        "nobody": unclaimed_reason(answer.endpoint)
        if answer.status == ProbeRecord.Status.QUEUED and not answer.sets
        else "",
        "part_done": answer.progress.n_done / max(answer.progress.n_total, 1),
        "announced_percent": 10 * (10 * answer.progress.n_done // max(answer.progress.n_total, 1)),
    }


def _chart(answer: Probe, numbers: dict[str, Any]) -> dict[str, object]:
    """Return the chart of the probe's kind with its template; empty if there is nothing to draw."""
    chart: object = None
    if answer.kind == ProbeRecord.Kind.CANARY and numbers:
        chart = charts.canaries(canaries(int(answer.id)))
    elif answer.kind == ProbeRecord.Kind.SEED and "prompts" in numbers:
        chart = charts.pairs(numbers, answer.prompts)
    elif answer.kind == ProbeRecord.Kind.BATCH and "first_divergences" in numbers:
        tokens = probe_tokens(int(answer.id), charts.token_ids(numbers))
        chart = charts.places(numbers, answer.prompts, tokens)
    return {"chart": chart, "chart_template": f"probes/_{answer.kind}_chart.html"}


def _against(request: HttpRequest, probe_id: int) -> dict[str, object]:
    """Return the batch probes to compare this one with, and the comparison with the chosen one."""
    others, chosen = comparable_batches(probe_id), parse_number(request.GET.get("against", ""))
    if chosen not in {line.id for line in others} or chosen is None:
        return {"others": others}
    pair = compare_batches(probe_id, chosen)
    return {
        "others": others,
        "chosen": chosen,
        "comparison": pair,
        "comparison_words": split_claim(pair.sentence),
    }


def _rest_of_verification(answer: Probe) -> dict[str, object]:
    judged = read_finding(answer.finding) if answer.finding else None
    return {
        "question": words.QUESTIONS.write(answer.kind),
        "chart": bands(judged, answer.sets) if judged else None,
        "chart_template": "probes/_verify_chart.html",
        "numbers": probe_numbers.verification_rows(judged) if judged else (),
        "warnings": judged.warnings if judged else (),
        "command": words.command(answer.endpoint, answer.kind, answer.profile, answer.parameters),
        "settings": {name: value for name, value in answer.parameters.items() if value is not None},
    }


def _rest(request: HttpRequest, answer: Probe) -> dict[str, object]:
    if answer.sets:
        return _rest_of_verification(answer)
    calls = selector.probe_calls(int(answer.id))
    numbers = answer.finding.numbers if answer.finding else {}
    ahead = numbers.get("clock_ahead")
    stacks = read_stacks(answer.endpoint, probe_numbers.list_digests(numbers, calls))
    return {
        **_chart(answer, numbers),
        **(_against(request, int(answer.id)) if answer.kind == ProbeRecord.Kind.BATCH and numbers else {}),
        "question": words.QUESTIONS.write(answer.kind),
        "numbers": probe_numbers.rows(answer.kind, numbers, stacks),
        "parameters": parameter_rows(numbers),
        "seed_probe": numbers.get("seed_probe"),
        "clock": describe_clock((ahead[0], ahead[1])) if ahead else "",
        "has_backends": any(call.backend for call in calls),
        "tables": probe_numbers.tables(answer.kind, numbers, answer.prompts, calls, stacks) if numbers else (),
        "calls": read_view(request.GET, size=CALLS_PER_PAGE, anchor="calls").slice(
            tuple((call, stacks.get(call.fingerprint or "")) for call in calls)
        ),
        "n_errors": sum(bool(call.error) for call in calls),
        "has_seeds": any(call.seed is not None for call in calls),
        "command": words.command(answer.endpoint, answer.kind, answer.profile, answer.parameters),
        "settings": {name: value for name, value in answer.parameters.items() if name != "prompts"},
    }
