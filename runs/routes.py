"""Addresses of the REST API, below /api/v1/. docs/api-reference.md describes each; a test keeps it so."""

from django.urls import path, re_path

import evalboard.path_converters  # noqa: F401  registers the converters
from evalboard import wings
from runs.access import api as access
from runs.audit import api as audit
from runs.baselines import api as baselines
from runs.catalogue import api as catalogue
from runs.comments import api as comments
from runs.compare import api as compare
from runs.exports import api as exports
from runs.find import api as find
from runs.fingerprints import api as fingerprints
from runs.health import api as health
from runs.imports import api as imports
from runs.judging import api as judging
from runs.labels import api as labels
from runs.probes import api as probes
from runs.release import api as release
from runs.replays import api as replays
from runs.retention import api as retention
from runs.rollouts import api as rollouts
from runs.run import api as run
from runs.schedules import api as schedules
from runs.suites import api as suites
from runs.uploads import api as uploads
from runs.webhooks import api as webhooks

app_name = "api"
urlpatterns = [
    re_path(r"^health/?$", health.health, name="health"),
    re_path(r"^ready/?$", health.ready, name="ready"),
    path("suites/", suites.suite_list, name="suites"),
    path("suites/<text:slug>/", suites.suite_detail, name="suite"),
    path("suites/<text:slug>/versions/", suites.version_list, name="suite_versions"),
    path("suites/<text:slug>/history/", suites.history, name="suite_history"),
    path("suites/<text:slug>/baselines/", baselines.baseline_list, name="suite_baselines"),
    path("suites/<text:slug>/scorer/", suites.adopt, name="suite_scorer"),
    path("rollouts/", rollouts.series_list, name="rollouts"),
    path("rollouts/<text:series>/", rollouts.series_detail, name="rollout_series"),
    path("rollouts/<text:series>/steps/", rollouts.step_list, name="rollout_steps"),
    path("scorers/", suites.scorer_list, name="scorers"),
    path("follows/", webhooks.follow_list, name="follows"),
    path("follows/<int:follow_id>/", webhooks.follow_detail, name="follow"),
    path("follows/addresses/", webhooks.address_list, name="addresses"),
    path("follows/addresses/<int:webhook_id>/", webhooks.address_detail, name="address"),
    path("trials/", suites.trial_list, name="trials"),
    path("trials/<int:trial_id>/", suites.trial_detail, name="trial"),
    path("suites/<text:slug>/cases/<text_path:case>/", suites.case_detail, name="suite_case"),
    path("uploads/", uploads.upload_list, name="uploads"),
    path("uploads/<int:upload_id>/", uploads.upload_detail, name="upload"),
    path("uploads/<int:upload_id>/parts/<int:offset>/", uploads.part, name="upload_part"),
    path("uploads/<int:upload_id>/close/", uploads.close, name="upload_close"),
    path("endpoints/", catalogue.endpoint_list, name="endpoints"),
    path("endpoints/<text:endpoint>/endings/", suites.endings, name="endpoint_endings"),
    path("endpoints/<text:endpoint>/fingerprint/", catalogue.fingerprint, name="endpoint_fingerprint"),
    path("endpoints/<text:endpoint>/price/", catalogue.price, name="endpoint_price"),
    path("endpoints/<text:endpoint>/try/", fingerprints.try_now, name="endpoint_try"),
    path("endpoints/<text:endpoint>/", fingerprints.endpoint_detail, name="endpoint"),
    path("profiles/", catalogue.profile_list, name="profiles"),
    path("policies/", catalogue.policy_list, name="policies"),
    path("model-names/", fingerprints.model_name_list, name="model_names"),
    path("model-names/<int:same_model_id>/", fingerprints.model_name_detail, name="model_name"),
    path("comments/", comments.comment_list, name="comments"),
    path("comments/<int:comment_id>/", comments.comment_detail, name="comment"),
    path("runs/", run.run_list, name="runs"),
    path("runs/pairs/", run.pair_list, name="run_pairs"),
    path("runs/estimate/", run.run_estimate, name="run_estimate"),
    path("runs/<int:run_id>/", run.run_detail, name="run"),
    path("runs/<int:run_id>/cancel/", run.cancel, name="run_cancel"),
    path("runs/<int:run_id>/again/", run.again, name="run_again"),
    path("runs/<int:run_id>/complete/", run.complete, name="run_complete"),
    path("runs/<int:run_id>/repeats/", run.add_repeats, name="run_repeats"),
    path("runs/<int:run_id>/rescore/", suites.rescore, name="run_rescore"),
    path("runs/<int:run_id>/rescored/<int:scorer_id>/", suites.rescored, name="rescored"),
    path("runs/<int:run_id>/rescored/<int:scorer_id>/cases/", suites.rescored_cases, name="rescored_cases"),
    path("runs/<int:run_id>/judgings/", judging.judging_list, name="judgings"),
    path("runs/<int:run_id>/cases/", run.case_list, name="run_cases"),
    path("runs/<int:run_id>/responses/", run.response_list, name="responses"),
    path("runs/<int:run_id>/strays/", run.stray_list, name="strays"),
    path("runs/<int:run_id>/responses/<int:repeat>/<text_path:case>/trace/", run.trace, name="trace"),
    path("runs/<int:run_id>/export/", exports.run, name="run_export"),
    path("runs/<int:run_id>/cases.csv", exports.cases_csv, name="cases_csv"),
    path("runs/<int:run_id>/cases.jsonl", exports.cases_jsonl, name="cases_jsonl"),
    path("runs/<int:run_id>/labels/", labels.label_list, name="run_labels"),
    path("runs/<int:run_id>/labels/next/", labels.next_list, name="answers_to_label"),
    path("runs/<int:run_id>/labels/<int:repeat>/<text_path:case>/", labels.label_detail, name="label"),
    path("runs/<int:run_id>/agreement/", labels.agreement, name="agreement"),
    path("runs/<int:run_id>/replays/", replays.replay_list, name="run_replays"),
    path("replays/", replays.production_list, name="production_replays"),
    path("replays/<int:replay_id>/", replays.replay_detail, name="replay"),
    path("retention/rules/", retention.rule_list, name="retention_rules"),
    path("retention/rules/<int:rule_id>/", retention.rule_detail, name="retention_rule"),
    path("retention/due/", retention.due_list, name="due_deletions"),
    path("retention/storage/", retention.storage_list, name="suite_storage"),
    path("retention/cases/", retention.purge, name="purge_case"),
    path("deletions/", retention.deletion_list, name="deletions"),
    path("imports/", imports.import_list, name="imports"),
    path("imports/<int:import_id>/", imports.import_detail, name="import"),
    path("imports/readings/<int:reading_id>/", imports.import_reading, name="import_reading"),
    path("probes/", probes.probe_list, name="probes"),
    path("probes/estimate/", probes.estimate, name="probe_estimate"),
    path("probes/<int:probe_id>/", probes.probe_detail, name="probe"),
    path("vendors/", probes.vendors, name="vendors"),
    path("probes/<int:probe_id>/calls/", probes.call_list, name="probe_calls"),
    path("probes/<int:probe_id>/against/<int:other>/", probes.against, name="probes_held"),
    path("schedules/", schedules.schedule_list, name="schedules"),
    path("schedules/<int:schedule_id>/", schedules.schedule_detail, name="schedule"),
    path("schedules/<int:schedule_id>/pause/", schedules.pause, name="schedule_pause"),
    path("schedules/<int:schedule_id>/resume/", schedules.resume, name="schedule_resume"),
    path("compare/", compare.comparison, name="comparison"),
    path("compare/cases.csv", exports.pairs_csv, name="pairs_csv"),
    path("compare/cases.jsonl", exports.pairs_jsonl, name="pairs_jsonl"),
    path("compare/cases/", compare.case_list, name="compared_cases"),
    path("compare/outcomes/", compare.outcome_list, name="compared_outcomes"),
    path("compare/cases/<text_path:case>/", compare.case_detail, name="compared_case"),
    path("releases/", release.release_list, name="releases"),
    path("releases/<int:release_id>/", release.release_detail, name="release"),
    path("releases/<int:release_id>/export/", exports.release, name="release_export"),
    path("releases/<int:release_id>/signoffs/", release.sign, name="release_sign_offs"),
    path("releases/<int:release_id>/rerun/", release.rerun, name="release_rerun"),
    path("releases/<int:release_id>/settle/", release.settle, name="release_settle"),
    path("signoffs/", exports.sign_offs, name="sign_offs"),
    path("find/", find.search, name="find"),
    path("fingerprints/", fingerprints.fingerprint_list, name="fingerprints"),
    path("fingerprints/<int:fingerprint_id>/", fingerprints.fingerprint_detail, name="fingerprint"),
    path(
        "fingerprints/<int:fingerprint_id>/diff/<int:other>/",
        fingerprints.fingerprint_difference,
        name="fingerprint_difference",
    ),
    path("workers/", fingerprints.worker_list, name="workers"),
    path("audit/", audit.line_list, name="audit"),
    path("audit/check/", audit.check, name="audit_check"),
    path("audit/lines.jsonl", audit.export, name="audit_export"),
    path("people/", access.people_list, name="people"),
    path("people/<text:name>/", access.person_detail, name="person"),
    path("people/<text:name>/role/", access.role, name="person_role"),
    path("people/<text:name>/link/", access.link, name="person_link"),
    path("sessions/", access.session_list, name="sessions"),
    path("sessions/<text:session>/", access.session_detail, name="session"),
    path("tokens/", access.token_list, name="tokens"),
    path("tokens/<int:token_id>/", access.token_detail, name="token"),
    path("webhooks/", webhooks.webhook_list, name="webhooks"),
    path("webhooks/<int:webhook_id>/", webhooks.webhook_detail, name="webhook"),
    path("webhooks/<int:webhook_id>/on/", webhooks.switch_on, name="webhook_on"),
    path("webhooks/<int:webhook_id>/test/", webhooks.send_test, name="webhook_test"),
    *wings.gather("runs.{}.api", "urlpatterns"),
    re_path(r"^", health.unknown, name="unknown"),
]
