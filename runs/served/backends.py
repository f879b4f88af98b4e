"""Who answered, as rows: the model by its name, and a bucket for each backend (`evalboard.logged.backends`)."""

from dataclasses import asdict

from evalboard.core.profile import OBSERVED, identify_log
from evalboard.logged.backends import Known, name_model
from runs.models import BucketRecord, FingerprintRecord, Model


def model_of(name: str, revision: str = "", *, line: str = "") -> Model:
    """Return the model by its name and declared revision, which is all that is known of it: one row for logs and calls.

    line: the series that it belongs to; without one its name.
    """
    known = asdict(name_model(name, revision, line=line))
    return Model.objects.get_or_create(digest=known.pop("digest"), defaults=known)[0]


def bucket_of(model: Model, known: Known, *, log: str = "", run: str = "") -> BucketRecord:
    """Return the bucket of a reported stack; how it batches, nobody says.

    log, run: what stands in for the stack where nothing names it, so that no other log and no other run has it.
    """
    identity = identify_log(dict(known), log=log, run=run)
    print_, _ = FingerprintRecord.objects.get_or_create(
        digest=identity.digest, defaults={"label": identity.label, "manifest": identity.manifest}
    )
    return BucketRecord.objects.get_or_create(model=model, fingerprint=print_, batch_class=OBSERVED)[0]
