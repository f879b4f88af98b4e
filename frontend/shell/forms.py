"""Form helpers. Forms check shape, services check meaning; `blame` shows a service's errors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import reverse

from evalboard.contract.catalogue import Endpoint
from evalboard.core.digest import digest_json
from evalboard.core.document import read_strict_json
from evalboard.core.errors import EvalboardError, NotFound
from evalboard.wording.messages import Messages
from frontend.templatetags.drawing import shortened
from runs.catalogue import ENGINES
from runs.models import RunRecord
from runs.run import claim_key

# In place of Django's "Ensure this value is …", with its own field for the limit.
LIMITS = Messages(
    "number_field",
    {
        ("number", "advises"): {
            "least": "This must be at least %(limit_value)s.",
            "most": "This must be at most %(limit_value)s.",
        },
    },
)


def blame(
    form: forms.Form, problem: EvalboardError, *, names: Mapping[str, str] | None = None, under: str | None = None
) -> None:
    """Show a service's error at the fields it names.

    Errors of other fields are shown at the field `under`, or at the top.
    """
    for path, words in problem.fields.items():
        field = (names or {}).get(path) or path.split(".")[0].split("[")[0]
        if field not in form.fields:
            form.add_error(under, f"{path}: {words}")
            continue
        prefix = f"{path}: " if path != field and not names else ""
        form.add_error(field, f"{prefix}{words}")
    if not problem.fields:
        form.add_error(None, problem.detail)


@contextmanager
def blaming(form: forms.Form, **options: Any) -> Iterator[None]:
    """Apply `blame` to a service's error inside; the view continues with the form."""
    try:
        yield
    except EvalboardError as problem:
        blame(form, problem, **options)


def endpoint_choices(endpoints: Iterable[Endpoint], *engines: str) -> list[tuple[str, str]]:
    """Return the choices of endpoints that answer calls, paused ones last: a form chooses the first.

    engines: of which they are; all but logs' unless given.
    """
    rows = sorted(endpoints, key=lambda row: row.rests_until is not None)
    return [(row.slug, f"{row.slug} ({row.about})") for row in rows if row.engine in (engines or ENGINES)]


@contextmanager
def reporting(request: HttpRequest) -> Iterator[None]:
    """Show a service's error inside on the next page, with the fields that it names. NotFound is raised."""
    try:
        yield
    except NotFound:
        raise
    except EvalboardError as problem:
        unsaid = (f"{name}: {text}" for name, text in problem.fields.items() if text not in problem.detail)
        refuse(request, " ".join((problem.detail, *unsaid)))


def refuse(request: HttpRequest, words: str) -> None:
    """Show on the next page why nothing was made, so that the same form may be sent again."""
    messages.error(request, words)
    request.is_refused = True  # type: ignore[attr-defined]


View = Callable[..., HttpResponse]
FORM_KEY = "csrfmiddlewaretoken"  # the field of Django's {% csrf_token %}


def posted_from(page: str, *names: str, at: str = "") -> Callable[[View], View]:
    """Make a view answer POST only, and lead a GET of its address to the page with its form.

    page: its name among the addresses, `names` those parameters of the view that it has, `at` the form's id. A view
    that shows that page again says `form_page` to what the page then asks for.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def answered(request: HttpRequest, *args: Any, **parameters: Any) -> HttpResponse:
            path = reverse(page, kwargs={name: parameters[name] for name in names})
            if request.method in ("GET", "HEAD"):
                query = f"?{request.GET.urlencode()}" if request.GET else ""
                return redirect(path + query + (f"#{at}" if at else ""))
            if request.method != "POST":
                return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
            request.form_page = path  # type: ignore[attr-defined]
            return view(request, *args, **parameters)

        return answered

    return decorate


def once(view: View) -> View:
    """Make a view do its work once for each form; a form that is sent again leads to what it made.

    A page draws its forms with a CSRF token of its own, which a second page does not have: that is the form's key, with
    its address and input. What is refused, or answered without leading elsewhere, may be sent again.
    """

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **parameters: Any) -> HttpResponse:
        if request.method != "POST" or not request.POST.get(FORM_KEY):
            return view(request, *args, **parameters)
        sent = [request.get_full_path(), sorted(request.POST.lists())]
        with claim_key(f"form-{digest_json(sent)}", sent, request.user, waits=True) as known:
            if known.pk is not None:
                messages.info(request, "This form was sent before and led here. Nothing was added.")
                return redirect(known.address)
            answer = view(request, *args, **parameters)
            made = answer.status_code == HTTPStatus.FOUND and not getattr(request, "is_refused", False)
            known.address = answer["Location"] if made else ""
        return answer

    answered.is_once = True  # type: ignore[attr-defined]
    return answered


def show_queued(request: HttpRequest, runs: Sequence[RunRecord], then: str) -> HttpResponse:
    """Lead to the last of the runs that a form started. then: what follows."""
    named = " and ".join(f"run {run.pk}" for run in runs).capitalize()
    messages.success(request, f"{named} {'is' if len(runs) == 1 else 'are'} queued; {then}.")
    return redirect("run", run_id=runs[-1].pk)


# A name that addresses have.
NameText = partial(forms.CharField, max_length=80, label="Name", help_text="Small letters, digits, dots and dashes.")


class CodeText(forms.CharField):
    """A text that is no prose, and so is not checked for spelling."""

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return {**super().widget_attrs(widget), "spellcheck": "false"}


class LabelLines(CodeText):
    """The labels of a run, name=value per line."""

    def __init__(self) -> None:
        lines = forms.Textarea(attrs={"rows": 3, "placeholder": "commit=8f21c0e\nbranch=main"})
        super().__init__(required=False, widget=lines, help_text="One name=value per line.")

    def clean(self, value: Any) -> dict[str, str]:
        labels: dict[str, str] = {}
        for line in filter(str.strip, super().clean(value).splitlines()):
            name, equals, text = (part.strip() for part in line.partition("="))
            if not equals or not name:
                raise forms.ValidationError(f"“{shortened(line, 40)}” is not name=value.")
            labels[name] = text
        return labels


class JSONText(CodeText):
    """A JSON object typed as text."""

    widget = forms.Textarea

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(value)
        if not text:
            return {}
        try:
            parsed = read_strict_json(text)
        except ValueError as problem:
            raise forms.ValidationError(f"This is not valid JSON: {problem}.") from problem
        if not isinstance(parsed, dict):
            raise forms.ValidationError("This must be a JSON object: { … }.")
        return parsed


class PlainForm(forms.Form):
    """A form that marks invalid fields for assistive technology; templates render it."""

    def forget(self, names: Iterable[str]) -> None:
        """Clear the input of some fields when the form is shown again."""
        self.data = {**self.data.dict(), **{self.add_prefix(name): "" for name in names}}  # type: ignore[attr-defined]

    def mark_problems(self) -> None:
        for name in self.errors:
            if name != NON_FIELD_ERRORS and name in self.fields:
                attrs = self.fields[name].widget.attrs
                attrs["aria-invalid"] = "true"
                attrs["aria-describedby"] = f"{self[name].id_for_label}-problem"
