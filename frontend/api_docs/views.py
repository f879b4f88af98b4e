"""The API's documentation, rendered by Redoc from /api/schema/ without external resources."""

from csp.constants import SELF
from csp.decorators import csp_replace
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runs.access import ANYONE, requires

# Redoc makes empty style elements, which it fills rule by rule, and one for code samples that is always the same.
EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
SAMPLES = "'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='"


@requires(ANYONE)
@csp_replace({"style-src": [SELF, EMPTY, SAMPLES]})
def api_docs(request: HttpRequest) -> HttpResponse:
    return render(request, "api_docs/page.html")
