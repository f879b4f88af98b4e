"""Addresses of the pages. They are permanent: tickets and releases link to them."""

from django.conf import settings as site
from django.urls import path

import evalboard.path_converters  # noqa: F401  registers the converters
from evalboard import wings
from frontend.access import account_views as account
from frontend.access import comment_views as comments
from frontend.access import notification_views as notifications
from frontend.access import people_views as people
from frontend.access import webhook_views as webhooks
from frontend.api_docs import views as api_docs
from frontend.badges import views as badges
from frontend.board import views as board
from frontend.compare import choice_views as compare_choice
from frontend.compare import pair_views as trace_diff
from frontend.compare import replay_views as pair_replays
from frontend.compare import views as compare
from frontend.endpoints import endpoint_views as endpoints
from frontend.endpoints import fingerprint_views as fingerprints
from frontend.endpoints import setting_views as settings
from frontend.find import views as find
from frontend.imports import views as imports
from frontend.probes import views as probes
from frontend.release import action_views as release_actions
from frontend.release import views as releases
from frontend.replays import views as replays
from frontend.retention import views as retention
from frontend.rollouts import views as rollouts
from frontend.runs import action_views as run_actions
from frontend.runs import label_views as labels
from frontend.runs import list_views as runs
from frontend.runs import response_views as responses
from frontend.runs import run_views as run
from frontend.schedules import views as schedules
from frontend.suites import baseline_views as baselines
from frontend.suites import case_views as cases
from frontend.suites import making_views as making
from frontend.suites import scorer_views
from frontend.suites import views as suites

urlpatterns = [
    path("", board.board, name="board"),
    path("tour/end/", board.leave_tour, name="tour_end"),
    path("api/docs/", api_docs.api_docs, name="api_docs"),
    path("login/", account.login, name="login"),
    path("logout/", account.logout, name="logout"),
    path("logout/everywhere/", account.logout_everywhere, name="logout_everywhere"),
    path("signin/", account.signin, name="signin"),
    path("suites/", suites.suites, name="suites"),
    path("suites/new/", making.new_suite, name="suite_new"),
    path("suites/<text:slug>/", suites.suite, name="suite"),
    path("suites/<text:slug>/badge.svg", badges.badge, name="suite_badge"),
    path("suites/<text:slug>/baselines/", baselines.set_baseline, name="suite_baselines"),
    path("suites/<text:slug>/baselines/<int:baseline_id>/again/", baselines.again, name="baseline_again"),
    path("suites/<text:slug>/scorers/", scorer_views.scorers, name="suite_scorers"),
    path("suites/<text:slug>/cases/<text_path:case>/", cases.case, name="suite_case"),
    path("suites/<text:slug>/versions/<int:number>/", suites.version, name="suite_version"),
    path("images/<text:digest>/", cases.image, name="image"),
    path("runs/", runs.runs, name="runs"),
    path("runs/new/", runs.new_run, name="run_new"),
    path("runs/<int:run_id>/", run.run, name="run"),
    path("runs/<int:run_id>/again/", run_actions.again, name="run_again"),
    path("runs/<int:run_id>/cancel/", run_actions.cancel, name="run_cancel"),
    path("runs/<int:run_id>/complete/", run_actions.complete, name="run_complete"),
    path("runs/<int:run_id>/delete/", run_actions.delete, name="run_delete"),
    path("runs/<int:run_id>/repeats/", run_actions.add_repeats, name="run_repeats"),
    path("runs/<int:run_id>/rescore/", run_actions.rescore, name="run_rescore"),
    path("runs/<int:run_id>/judge-again/", run_actions.judge_again, name="run_judge_again"),
    path("runs/<int:run_id>/labels/", labels.labels, name="run_labels"),
    path("runs/<int:run_id>/labels/next/", labels.label, name="label"),
    path("runs/<int:run_id>/strays/", responses.strays, name="strays"),
    path("runs/<int:run_id>/repeats/<int:repeat>/cases/<text_path:case>/", responses.response, name="response"),
    path("rollouts/", rollouts.all_series, name="rollouts"),
    path("rollouts/<text:series>/", rollouts.one_series, name="rollout_series"),
    path("rollouts/<text:series>/delete/", rollouts.delete, name="rollout_series_delete"),
    path("find/", find.find, name="find"),
    path("imports/", imports.imports, name="imports"),
    path("imports/readings/<int:reading_id>/", imports.import_reading, name="import_reading"),
    path("endpoints/", endpoints.endpoints, name="endpoints"),
    path("endpoints/<text:endpoint>/price/", settings.price, name="endpoint_price"),
    path("endpoints/<text:endpoint>/fingerprint/", settings.set_fingerprint, name="endpoint_fingerprint"),
    path("endpoints/<text:endpoint>/try/", run_actions.try_now, name="endpoint_try"),
    path("endpoints/<text:endpoint>/", endpoints.endpoint, name="endpoint"),
    path("fingerprints/", fingerprints.fingerprints, name="fingerprints"),
    path("fingerprints/<int:fingerprint_id>/", fingerprints.fingerprint, name="fingerprint"),
    path("fingerprints/<int:fingerprint_id>/diff/<int:other>/", fingerprints.difference, name="fingerprint_diff"),
    path("compare/", compare_choice.choose, name="compare_chosen"),
    path("compare/<int:baseline>/<int:candidate>/", compare.compare, name="compare"),
    path("compare/<int:baseline>/<int:candidate>/replay/", pair_replays.replay, name="pair_replay"),
    path("compare/<int:baseline>/<int:candidate>/cases/<text_path:case>/", trace_diff.trace_diff, name="trace_diff"),
    path("releases/", releases.releases, name="releases"),
    path("releases/new/", releases.new_release, name="release_new"),
    path("releases/signoffs.jsonl", releases.sign_offs_export, name="sign_offs_export"),
    path("releases/<int:release_id>/", releases.release, name="release"),
    path("releases/<int:release_id>/signoffs/", release_actions.sign, name="release_sign_offs"),
    path("releases/<int:release_id>/settle/", release_actions.settle, name="release_settle"),
    path("releases/<int:release_id>/rerun/", release_actions.rerun, name="release_rerun"),
    path("probes/", probes.probes, name="probes"),
    path("probes/<int:probe_id>/", probes.probe, name="probe"),
    path("vendors/", probes.vendors, name="vendors"),
    path("replays/", replays.replays, name="replays"),
    path("replays/<int:replay_id>/", replays.replay, name="replay"),
    *wings.gather("frontend.{}.views", "urlpatterns"),
    path("schedules/", schedules.schedules, name="schedules"),
    path("schedules/<int:schedule_id>/delete/", schedules.delete, name="schedule_delete"),
    path("schedules/<int:schedule_id>/pause/", schedules.pause, name="schedule_pause"),
    path("schedules/<int:schedule_id>/resume/", schedules.resume, name="schedule_resume"),
    path("workers/", endpoints.workers, name="workers"),
    path("settings/", settings.settings, name="settings"),
    path("settings/endpoints/new/", settings.new_endpoint, name="endpoint_new"),
    path("settings/policies/new/", settings.new_policy, name="policy_new"),
    path("settings/model-names/new/", settings.new_same_model, name="same_model_new"),
    path("settings/model-names/<int:same_model_id>/take-back/", settings.take_back_same_model, name="same_model_back"),
    path("settings/people/", people.people, name="people"),
    path("settings/people/<text:name>/link/", people.link, name="person_link"),
    path("settings/people/<text:name>/role/", people.role, name="person_role"),
    path("settings/people/<text:name>/remove/", people.remove, name="person_remove"),
    path("settings/sessions/", people.sessions, name="sessions"),
    path("settings/sessions/<text:session>/end/", people.end, name="session_end"),
    path("settings/audit/", people.audit, name="audit"),
    path("settings/audit/lines.jsonl", people.audit_export, name="audit_export"),
    path("settings/tokens/", account.tokens, name="tokens"),
    path("settings/tokens/<int:token_id>/revoke/", account.revoke, name="token_revoke"),
    path("settings/notifications/", notifications.notifications, name="notifications"),
    path("settings/notifications/<int:webhook_id>/delete/", notifications.delete_address, name="address_delete"),
    path("settings/notifications/<int:webhook_id>/on/", notifications.switch_address_on, name="address_on"),
    path("settings/notifications/<int:webhook_id>/test/", notifications.test_address, name="address_test"),
    path("comments/", comments.comment, name="comments"),
    path("comments/<int:comment_id>/withdraw/", comments.withdraw, name="comment_withdraw"),
    path("follows/", notifications.follow, name="follow"),
    path("unsubscribe/<text:stop_link>/", notifications.unsubscribe, name="unsubscribe"),
    path("follows/<int:follow_id>/stop/", notifications.unfollow, name="unfollow"),
    path("settings/retention/", retention.retention, name="retention"),
    path("settings/retention/case/", retention.case, name="retention_case"),
    path("settings/retention/<int:rule_id>/delete/", retention.delete, name="retention_rule_delete"),
    path("settings/webhooks/", webhooks.webhooks, name="webhooks"),
    path("settings/webhooks/<int:webhook_id>/delete/", webhooks.delete, name="webhook_delete"),
    path("settings/webhooks/<int:webhook_id>/on/", webhooks.switch_on, name="webhook_on"),
    path("settings/webhooks/<int:webhook_id>/test/", webhooks.send_test, name="webhook_test"),
    path("settings/profiles/new/", settings.new_profile, name="profile_new"),
]
if site.OIDC:
    from frontend.access import sso

    urlpatterns += [
        path("sso/<slug:provider_id>/", sso.begin, name="openid_connect_login"),
        path("sso/<slug:provider_id>/callback/", sso.end, name="openid_connect_callback"),
    ]
