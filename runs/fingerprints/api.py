"""Fingerprints and workers: what served responses, and who is there to serve more."""

from evalboard.contract.catalogue import Endpoint, SameModel
from evalboard.contract.endpoint import EndpointReport
from evalboard.contract.stack import Fingerprint, FingerprintDifference, FingerprintRow, Worker
from runs import fingerprints
from runs.access import ADMIN
from runs.api.resource import Resource, get, serve
from runs.api.serializers import Strict, Text
from runs.catalogue.read import endpoint_row
from runs.fingerprints.read import fingerprint_report, fingerprint_rows, same_model_row, same_model_rows
from runs.fingerprints.read_endpoint import endpoint_report
from runs.fingerprints.same_models import say_same_model, take_back_same_model
from runs.work import try_endpoint, worker_rows


class SameModelIn(Strict):
    name = Text()
    other_name = Text()
    reason = Text()


FINGERPRINT = Resource("fingerprint", Fingerprint, fingerprint_report)
ENDPOINT = Resource("endpoint", Endpoint, endpoint_row, takes_record=True)
SAME_MODEL = Resource("model_name", SameModel, same_model_row, changes=ADMIN)

fingerprint_list = serve(
    FINGERPRINT.listed("fingerprints", "Fingerprints, newest first", FingerprintRow, lambda: fingerprint_rows)
)
fingerprint_detail = serve(FINGERPRINT.one("A fingerprint with its manifest"))
fingerprint_difference = serve(
    get(
        "fingerprint_difference",
        "What moved between two fingerprints",
        FingerprintDifference,
        fingerprints.fingerprint_difference,
    )
)
endpoint_detail = serve(get("endpoint", "An endpoint with what is known of it lately", EndpointReport, endpoint_report))
try_now = serve(ENDPOINT.acted("try_endpoint", "Try a paused endpoint now", try_endpoint))
worker_list = serve(ENDPOINT.listed("workers", "Workers and what they do", Worker, worker_rows))
model_name_list = serve(
    SAME_MODEL.listed("model_names", "Names of models that people said are one", SameModel, same_model_rows),
    SAME_MODEL.made(
        "Say that two names are one model",
        SameModelIn,
        say_same_model,
        name="say_same_model",
        is_located=False,
        refuses=[409],
    ),
)
model_name_detail = serve(
    SAME_MODEL.one("Two names of one model"),
    SAME_MODEL.deleted(
        "Take back that two names are one model", take_back_same_model, name="take_back_same_model", by="user"
    ),
)
