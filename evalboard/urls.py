"""The composition root: the only place that knows both the API and the pages."""

from django.urls import include, path, re_path

from runs.api.schema import schema
from runs.api.views.metrics import metrics

urlpatterns = [
    path("api/v1/", include("runs.api.urls")),
    path("api/schema/", schema, name="api_schema"),
    re_path(r"^metrics/?$", metrics, name="metrics"),
    path("", include("frontend.urls")),
]

handler400 = "frontend.views.errors.bad_request"
handler403 = "frontend.views.errors.forbidden"
handler404 = "frontend.views.errors.not_found"
handler500 = "frontend.views.errors.server_error"
