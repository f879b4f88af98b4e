"""Domain errors that a page did not turn into words of its own, and outages, become an error page, in one place."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from evalboard.core.errors import EvalboardError
from frontend.views import errors
from runs.outage import notice


class ErrorPages:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, EvalboardError):
            return errors.domain_error(request, exception)
        found = notice(exception)
        return errors.outage(request, found) if found else None
