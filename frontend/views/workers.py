"""Workers and what each is doing."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runs import selectors
from runs.access import READ, requires


@requires(READ)
@require_safe
def workers(request: HttpRequest) -> HttpResponse:
    return render(request, "frontend/workers.html", {"workers": selectors.worker_rows()})
