"""Store who answered: the model by name, and a bucket per backend (`evalboard.logged.backends`)."""

from dataclasses import asdict

from evalboard.core.profile import OBSERVED, identify_log
from evalboard.logged.backends import Known, name_model
from runs.models import BucketRecord, FingerprintRecord, Model


def model_of(name: str, revision: str = "", *, line: str = "") -> Model:
    """Return the model of a name and declared revision, shared by logs and calls.

    line: its model line; by default its name.
    """
    known = asdict(name_model(name, revision, line=line))
    return Model.objects.get_or_create(digest=known.pop("digest"), defaults=known)[0]


def bucket_of(model: Model, known: Known, *, log: str = "", run: str = "") -> BucketRecord:
    """Return the bucket of a reported stack; its batching is unknown.

    log, run: identifies the stack if it is not named, so that no other log or run shares it.
    """
    identity = identify_log(dict(known), log=log, run=run)
    print_, _ = FingerprintRecord.objects.get_or_create(
        digest=identity.digest, defaults={"label": identity.label, "manifest": identity.manifest}
    )
    return BucketRecord.objects.get_or_create(model=model, fingerprint=print_, batch_class=OBSERVED)[0]
