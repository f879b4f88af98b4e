"""Addresses of the REST API, below /api/v1/. docs/api.md describes each; a test keeps it so."""

from django.urls import path, re_path

from runs.api.views import catalogue, health, identity, responses, runs, suites

app_name = "api"
urlpatterns = [
    re_path(r"^health/?$", health.health, name="health"),
    re_path(r"^ready/?$", health.ready, name="ready"),
    path("suites/", suites.suite_list, name="suites"),
    path("suites/<str:slug>/", suites.suite_detail, name="suite"),
    path("suites/<str:slug>/versions/", suites.version_list, name="suite_versions"),
    path("suites/<str:slug>/history/", suites.history, name="suite_history"),
    path("endpoints/", catalogue.endpoint_list, name="endpoints"),
    path("profiles/", catalogue.profile_list, name="profiles"),
    path("runs/", runs.run_list, name="runs"),
    path("runs/<int:run_id>/", runs.run_detail, name="run"),
    path("runs/<int:run_id>/cancel/", runs.cancel, name="run_cancel"),
    path("runs/<int:run_id>/repeats/", runs.add_repeats, name="run_repeats"),
    path("runs/<int:run_id>/rescore/", runs.rescore, name="run_rescore"),
    path("runs/<int:run_id>/responses/", responses.response_list, name="responses"),
    path("runs/<int:run_id>/responses/<int:repeat>/<path:case>/trace/", responses.trace, name="trace"),
    path("fingerprints/", identity.fingerprint_list, name="fingerprints"),
    path("fingerprints/<int:fingerprint_id>/", identity.fingerprint_detail, name="fingerprint"),
    path("workers/", identity.worker_list, name="workers"),
    re_path(r"^", health.unknown, name="unknown"),
]
