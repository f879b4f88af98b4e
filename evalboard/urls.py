"""The composition root: the only place that knows both the API and the pages."""

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("runs.api.urls")),
    path("", include("frontend.urls")),
]

handler400 = "frontend.views.errors.bad_request"
handler403 = "frontend.views.errors.forbidden"
handler404 = "frontend.views.errors.not_found"
handler500 = "frontend.views.errors.server_error"
