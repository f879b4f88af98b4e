"""Pages of people, sessions and the audit trail, for admins. Everybody has their own sessions."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_date
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.audit import KINDS_AUDITED
from frontend.access.forms import PersonForm
from frontend.shell.forms import blaming, posted_from, reporting
from frontend.shell.lists import Filter, Filters, filter_by, read_filters, read_view
from runs.access import (
    ADMIN,
    PEOPLE_ORDERS,
    READ,
    change_role,
    end_session,
    invite_person,
    may,
    people_rows,
    remove_person,
    requires,
    session_id,
    session_rows,
    write_link,
)
from runs.api import streams
from runs.audit import AUDIT_ORDERS, AuditFilter, audit_lines, check_trail, export_lines

ACT_NAMES = {
    "created": "created",
    "changed": "changed",
    "deleted": "deleted",
    "signed_in": "signed in",
    "sign_in_failed": "wrong password",
    "link_made": "sign-in link made",
    "refused": "refused",
    "cut": "old lines removed",
}
PEOPLE_PER_PAGE = LINES_PER_PAGE = 100


@requires(ADMIN)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def people(request: HttpRequest) -> HttpResponse:
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with blaming(form):
            name = invite_person(**form.cleaned_data).get_username()
            return _people(request, PersonForm(), invited=name)
    form.mark_problems()
    return _people(request, form)


@requires(ADMIN)
@never_cache
@posted_from("people")
def link(request: HttpRequest, name: str) -> HttpResponse:
    return _people(request, PersonForm(), invited=name)


@requires(ADMIN)
@posted_from("people")
def role(request: HttpRequest, name: str) -> HttpResponse:
    chosen = request.POST.get("role", "")
    return _act(request, lambda: change_role(name=name, role=chosen), f"{name} is now {chosen}.")


@requires(ADMIN)
@posted_from("people")
def remove(request: HttpRequest, name: str) -> HttpResponse:
    return _act(request, lambda: remove_person(name=name), f"{name} can no longer sign in. What they did stays.")


@requires(READ)
@never_cache
@require_safe
def sessions(request: HttpRequest) -> HttpResponse:
    sees_all = may(request.user, ADMIN)
    rows = session_rows(None if sees_all else request.user)
    view = read_view(request.GET, size=PEOPLE_PER_PAGE)
    page = {
        "list": view.slice(rows),
        "sees_all": sees_all,
        "here": session_id(request.session.session_key or ""),
    }
    return render(request, "access/sessions.html", page)


@requires(READ)
@posted_from("sessions")
def end(request: HttpRequest, session: str) -> HttpResponse:
    with reporting(request):
        end_session(session_id=session, user=request.user, may_all=may(request.user, ADMIN))
        messages.success(request, "The session has ended. Its browser is signed out.")
    return redirect("sessions")


@requires(ADMIN)
@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    filters = _audit_filters(request)
    view = read_view(
        request.GET, orders=AUDIT_ORDERS, default="-id", size=LINES_PER_PAGE, active=filters.active, anchor="lines"
    )
    page = {
        "filters": filters,
        "list": view.read(audit_lines(_read_audit_filter(filters))),
        "checked": check_trail() if "check" in request.GET else None,
        "query": request.GET.urlencode(),
        "acts": tuple(ACT_NAMES.items()),
    }
    return render(request, "access/audit.html", page)


@requires(ADMIN)
@require_safe
def audit_export(request: HttpRequest) -> StreamingHttpResponse:
    lines = export_lines(_read_audit_filter(_audit_filters(request)))
    return streams.answer(streams.Jsonl, lines, name="audit.jsonl")


def _audit_filters(request: HttpRequest) -> Filters:
    free = ("person", "subject", "address", "since", "until")
    return read_filters(
        request.GET,
        Filter("act", "Act", tuple(ACT_NAMES.items())),
        filter_by("kind", KINDS_AUDITED, label="What"),
        free=free,
    )


def _read_audit_filter(filters: Filters) -> AuditFilter:
    values = dict(filters.values)
    since, until = _midnight(values.pop("since")), _midnight(values.pop("until"), days_after=1)
    return AuditFilter(**values, since=since, until=until)


def _midnight(day: str, *, days_after: int = 0) -> datetime | None:
    try:
        parsed = parse_date(day)
        if parsed is None:
            return None
        return datetime.combine(parsed + timedelta(days=days_after), time(tzinfo=UTC))
    except (ValueError, OverflowError):  # the shape of a date, but no such day, or none after it
        return None


def _act(request: HttpRequest, act: Callable[[], object], words: str) -> HttpResponse:
    with reporting(request):
        act()
        messages.success(request, words)
    return redirect("people")


def _people(request: HttpRequest, form: PersonForm, *, invited: str = "") -> HttpResponse:
    """Return the list with the form. invited: a person whose link this one answer shows."""
    query = request.GET if request.method != "POST" else {}
    view = read_view(query, orders=PEOPLE_ORDERS, size=PEOPLE_PER_PAGE)
    rows = people_rows()
    page = {
        "form": form,
        "invited": invited,
        "link": request.build_absolute_uri(write_link(name=invited)) if invited else "",
        "list": view.slice([row for row in rows if row.is_active]),
        "removed": [row for row in rows if not row.is_active],
        "roles": PersonForm.ROLES,
    }
    return render(request, "access/people.html", page, status=422 if form.errors else 201 if invited else 200)
