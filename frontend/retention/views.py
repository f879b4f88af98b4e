"""Show rules of retention, what they would delete, what was deleted, and what suites take."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from frontend.shell.forms import PlainForm, blaming, once, posted_from, reporting
from frontend.shell.lists import read_view
from runs.access import ADMIN, requires
from runs.retention import (
    count_due,
    create_rule,
    delete_rule,
    deletions,
    due_rows,
    purge_case,
    rule_rows,
    storage_rows,
)
from runs.suites import suite_slugs

DELETIONS_PER_PAGE = 25
DUE_SHOWN = 20  # as many as one sweep deletes


class RuleForm(PlainForm):
    what = forms.ChoiceField(
        label="Delete",
        choices=[
            ("traces", "traces: tokens and logprobs"),
            ("texts", "texts: answers and what quotes them, with the traces"),
            ("runs", "runs: everything, scores included"),
        ],
    )
    days = forms.IntegerField(label="After days", min_value=1, help_text="Since a run ended, or its log was imported.")
    suite = forms.ChoiceField(required=False, help_text="Only runs of this suite.")
    label = forms.CharField(required=False, max_length=242, help_text="Only runs with this label, as branch=main.")

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["suite"].choices = [("", "All suites"), *_suites()]  # type: ignore[attr-defined]


class CaseForm(PlainForm):
    suite = forms.ChoiceField()
    case = forms.CharField(max_length=200, label="Case id")
    reason = forms.CharField(max_length=500, help_text="Shown in place of the texts.")
    voids_sign_offs = forms.BooleanField(required=False, label="Void sign-offs on its runs, where there are any")

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["suite"].choices = _suites()  # type: ignore[attr-defined]


def _suites() -> list[tuple[str, str]]:
    return [(slug, slug) for slug in suite_slugs()]


@requires(ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def retention(request: HttpRequest) -> HttpResponse:
    """Show the page, or make a rule and show what it deletes at the next sweep."""
    form = RuleForm(request.POST or None, prefix="rule")
    if request.method == "POST" and form.is_valid():
        with blaming(form):
            create_rule(**form.cleaned_data, user=request.user)
            messages.success(request, "The rule was made. The next sweep follows it.")
            return redirect("retention")
    form.mark_problems()
    return _page(request, form, CaseForm(prefix="case"))


@requires(ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def case(request: HttpRequest) -> HttpResponse:
    """Delete the texts of one case."""
    form = CaseForm(request.POST or None, prefix="case")
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        with blaming(form):
            gone = purge_case(case_id=fields.pop("case"), **fields, user=request.user)
            n = sum(each.n_responses for each in gone)
            messages.success(request, f"The texts of the case were deleted, {n:,} answers included.")
            return redirect("retention")
    form.mark_problems()
    return _page(request, RuleForm(prefix="rule"), form)


@requires(ADMIN)
@posted_from("retention")
def delete(request: HttpRequest, rule_id: int) -> HttpResponse:
    with reporting(request):
        delete_rule(rule_id=rule_id)
        messages.success(request, "The rule was deleted. What it deleted stays deleted.")
    return redirect("retention")


def _page(request: HttpRequest, form: RuleForm, case_form: CaseForm) -> HttpResponse:
    view = read_view(request.GET, orders={"id": "id"}, default="-id", size=DELETIONS_PER_PAGE, anchor="deletions")
    n_due = count_due()
    page = {
        "form": form,
        "case_form": case_form,
        "rules": rule_rows(),
        "due": due_rows(DUE_SHOWN),
        "n_due": n_due,
        "n_more": max(n_due - DUE_SHOWN, 0),
        "storage": storage_rows(),
        "list": view.read(deletions()),
    }
    return render(request, "retention/page.html", page, status=422 if form.errors or case_form.errors else 200)
