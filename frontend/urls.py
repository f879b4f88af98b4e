"""Addresses of the pages. They are permanent: tickets and releases link to them."""

from django.urls import path

from frontend.views import account, board, responses, run, run_actions, runs, settings, suites, workers

urlpatterns = [
    path("", board.board, name="board"),
    path("login/", account.login, name="login"),
    path("logout/", account.logout, name="logout"),
    path("signin/", account.signin, name="signin"),
    path("suites/", suites.suites, name="suites"),
    path("suites/<str:slug>/", suites.suite, name="suite"),
    path("suites/<str:slug>/versions/<int:number>/", suites.version, name="suite_version"),
    path("runs/", runs.runs, name="runs"),
    path("runs/new/", runs.new_run, name="run_new"),
    path("runs/<int:run_id>/", run.run, name="run"),
    path("runs/<int:run_id>/cancel/", run_actions.cancel, name="run_cancel"),
    path("runs/<int:run_id>/delete/", run_actions.delete, name="run_delete"),
    path("runs/<int:run_id>/repeats/", run_actions.add_repeats, name="run_repeats"),
    path("runs/<int:run_id>/rescore/", run_actions.rescore, name="run_rescore"),
    path("runs/<int:run_id>/repeats/<int:repeat>/cases/<path:case>/", responses.response, name="response"),
    path("workers/", workers.workers, name="workers"),
    path("settings/", settings.settings, name="settings"),
    path("settings/endpoints/new/", settings.new_endpoint, name="endpoint_new"),
    path("settings/profiles/new/", settings.new_profile, name="profile_new"),
]
