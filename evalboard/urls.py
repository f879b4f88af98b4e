"""The composition root: the only place that knows both the API and the pages."""

from django.urls import include, path, re_path

from runs.api.schema import schema
from runs.health.api import metrics

urlpatterns = [
    path("api/v1/", include("runs.routes")),
    path("api/schema/", schema, name="api_schema"),
    re_path(r"^metrics/?$", metrics, name="metrics"),
    path("", include("frontend.urls")),
]

handler400 = "frontend.shell.errors.bad_request"
handler403 = "frontend.shell.errors.forbidden"
handler404 = "frontend.shell.errors.not_found"
handler500 = "frontend.shell.errors.server_error"
