"""Decode a response of a pair again from its page: the last replay's finding, and a form for another."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from evalboard.contract.pair import TracePair
from frontend.compare import pair_address
from frontend.shell.forms import PlainForm, once, posted_from, refuse, reporting
from runs.access import RUN, requires
from runs.catalogue.read import decoding_profiles
from runs.replays import create_replay, newest_replay

USUAL_SIZES = "1, 2, 4, 8, 16"


class ReplayForm(PlainForm):
    """The form to decode a case again. Another profile than the run's makes it one of production's."""

    case = forms.CharField(widget=forms.HiddenInput)
    run = forms.IntegerField(widget=forms.HiddenInput)
    batch_sizes = forms.CharField(
        required=False,
        initial=USUAL_SIZES,
        label="Batch sizes",
        help_text="Batch sizes to try. Blank: the profile's.",
    )
    profile = forms.ChoiceField(
        required=False, help_text="Another profile replays production's settings; it counts toward no score."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = self.fields
        choices["profile"].choices = [("", "the run’s own"), *((slug, slug) for slug in decoding_profiles())]

    def clean_batch_sizes(self) -> list[int]:
        parts = self.cleaned_data["batch_sizes"].replace(",", " ").split()
        if not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
            raise forms.ValidationError("Batch sizes are whole numbers, such as 1, 2, 4.")
        return [int(part) for part in parts]


def describe_last(pair: TracePair, run: str | None) -> dict[str, Any]:
    """Return the page's part about the newest replay of a side; empty for two logs.

    A running one shows its number of finished variants, so that reloading shows progress.
    """
    if run is None:
        return {}
    replay = newest_replay(int(run), pair.case)
    took = None
    if replay is not None and replay.finished_at is not None:
        took = (replay.finished_at - replay.created_at).total_seconds()
    form = ReplayForm(initial={"case": pair.case, "run": run, "batch_sizes": USUAL_SIZES})
    return {"replay": replay, "replay_took": took, "replay_form": form}


@requires(RUN)
@posted_from("compare", "baseline", "candidate")
@once
def replay(request: HttpRequest, baseline: int, candidate: int) -> HttpResponse:
    repeats = pair_address.parse_repeats(request) or (1, 1)
    form = ReplayForm(request.POST)
    if not form.is_valid() or form.cleaned_data["run"] not in (baseline, candidate):
        problems = [str(problem) for each in form.errors.values() for problem in each]
        refuse(request, " ".join(problems) or "That run is no side of this pair.")
        case = request.POST.get("case", "")
        return redirect(_page(baseline, candidate, case, repeats) if case else f"/compare/{baseline}/{candidate}/")
    sent: Mapping[str, Any] = form.cleaned_data
    repeat = repeats[1] if sent["run"] == candidate else repeats[0]
    with reporting(request):
        made = create_replay(
            run_id=sent["run"],
            case_id=sent["case"],
            repeat=repeat,
            batch_sizes=sent["batch_sizes"],
            profile=sent["profile"] or None,
            user=request.user,
        )
        if sent["profile"]:
            return redirect("replay", replay_id=made.pk)
        messages.success(request, f"Replay {made.pk} is queued; the line below says how far it is.")
    return redirect(_page(baseline, candidate, sent["case"], repeats))


def _page(baseline: int, candidate: int, case: str, repeats: tuple[int, int]) -> str:
    return pair_address.pair_url(baseline, candidate, case, repeats=repeats)
