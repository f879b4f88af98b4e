"""Parse an uploaded suite, one part per transaction, so that work continues after a crash.

Cases are checked and stored separately until all are there. Then they become a version in one transaction, by the rules
of a suite that is pushed whole.
"""

import json
import logging
from typing import Any

import zstandard
from django.db import DatabaseError, connection, transaction

from evalboard.core import scoring
from evalboard.core.document import Problems
from evalboard.core.errors import InvalidInput
from evalboard.core.suite import CaseDocument, digest_parts, parse_head, parse_part
from runs.models import Case, SuiteVersionRecord, UploadedCase, UploadPartRecord, UploadRecord
from runs.store import keep_images, mark_images
from runs.store.bulk import copy_values
from runs.suites import bind_document, case_content, keep_version

logger = logging.getLogger(__name__)

COLUMNS = ("index", "case_id", "digest", "content", "tags", "group", "is_reference")
OWN_FAULT = "Reading it failed. The worker's log has the reason."


def read_next_part() -> bool:
    """Read the next part of the oldest upload that is whole, or store its version; False where none waits.

    Whoever reads holds the upload's row, and others pass it by.
    """
    with transaction.atomic():
        whole = UploadRecord.objects.filter(status=UploadRecord.Status.READING).order_by("pk")
        upload = whole.select_for_update(skip_locked=True, of=("self",)).first()
        if upload is None:
            return False
        try:
            with transaction.atomic():
                _go_on(upload)
        except InvalidInput as problem:
            _fail(upload, problem.fields or {"": problem.detail})
        except DatabaseError:
            raise
        except Exception:  # whatever it is, it must not keep this upload, and all behind it, waiting for ever
            logger.exception("Gave up %s", upload)
            _fail(upload, {"": OWN_FAULT})
    return True


def _go_on(upload: UploadRecord) -> None:
    if upload.n_read == upload.n_bytes:
        _store(upload)
        return
    part = upload.parts.get(offset=upload.n_read)
    _keep_cases(upload, part)
    part.delete()
    upload.save(update_fields=["n_read", "n_lines", "n_cases", "header"])


def _keep_cases(upload: UploadRecord, part: UploadPartRecord) -> None:
    data = zstandard.ZstdDecompressor().decompress(bytes(part.data), max_output_size=part.n_bytes)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = upload.n_lines + 1 + data[: error.start].count(b"\n")
        raise InvalidInput("It is not UTF-8.", fields={f"line {line}": f"is not UTF-8: {error.reason}"}) from None
    known = {"header": upload.header, "slug": upload.slug, "title": upload.title}
    read = parse_part(text, **known, n_lines=upload.n_lines, n_cases=upload.n_cases)
    _refuse_unbound(read.cases)
    _refuse_known_ids(upload, read.cases)
    keep_images(read.cases)
    rows = ([upload.pk, *_values(case)] for case in read.cases)
    copy_values(UploadedCase, ("upload_id", *COLUMNS, "scorer"), rows)
    upload.n_read += part.n_bytes
    upload.n_lines += read.n_lines
    upload.n_cases += len(read.cases)
    upload.header = read.header


def _refuse_unbound(cases: tuple[CaseDocument, ...]) -> None:
    """Raise InvalidInput for cases with a team's scorer of no digest: parts may come days apart."""
    problems = Problems()
    for case in cases:
        if case.scorer is not None and case.scorer.get("digest") == "":
            text = "is missing; in an upload by parts, a case that names a team's own scorer names its digest"
            problems.add(f"case {case.index + 1:,}.scorer.digest", text)
    problems.raise_if_any("The suite is not valid")


def _refuse_known_ids(upload: UploadRecord, cases: tuple[CaseDocument, ...]) -> None:
    """Raise InvalidInput for ids that an earlier part has."""
    problems = Problems()
    earlier = upload.cases.filter(case_id__in=[case.id for case in cases]).order_by("index")
    for case_id, index in earlier.values_list("case_id", "index"):
        place = next(case.index for case in cases if case.id == case_id)
        problems.add(f"case {place + 1:,}, id {case_id}", f"is the id of case {index + 1:,} too")
    problems.raise_if_any("The suite is not valid")


def _values(case: CaseDocument) -> list[Any]:
    content, tags = (json.dumps(value, ensure_ascii=False) for value in (case_content(case), case.tags))
    scorer = None if case.scorer is None else json.dumps(case.scorer, ensure_ascii=False)
    return [case.index, case.id, case.digest, content, tags, case.group, case.is_reference, scorer]


def _store(upload: UploadRecord) -> None:
    if not upload.n_cases:
        raise InvalidInput("It holds no case.", fields={"cases": "must be a list of at least one case"})
    head = parse_head(bind_document(upload.header), slug=upload.slug, title=upload.title)
    digest = digest_parts(head, upload.cases.order_by("index").values_list("digest", flat=True).iterator())
    own: dict[str, Any] = dict(upload.cases.exclude(scorer=None).order_by("index").values_list("case_id", "scorer"))
    upload.version, upload.is_new = keep_version(
        head, digest=digest, plan=scoring.plan(head.scorer, own), n_cases=upload.n_cases, store_cases=_move(upload)
    )
    with_image = upload.cases.filter(content__messages__contains=[{"content": [{"type": "image_url"}]}])
    mark_images(with_image.values_list("content", flat=True).iterator())
    upload.cases.all()._raw_delete(upload.cases.db)
    upload.status = UploadRecord.Status.FINISHED
    upload.save(update_fields=["status", "version", "is_new"])


def _move(upload: UploadRecord) -> Any:
    """Return what makes the cases of an upload those of a version, in one statement."""
    quoted = ", ".join(map(connection.ops.quote_name, COLUMNS))
    tables = Case._meta.db_table, UploadedCase._meta.db_table

    def move(version: SuiteVersionRecord) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {tables[0]} (suite_version_id, {quoted}) "  # noqa: S608  names of our own
                f"SELECT %s, {quoted} FROM {tables[1]} WHERE upload_id = %s ORDER BY index",
                [version.pk, upload.pk],
            )

    return move


def _fail(upload: UploadRecord, fields: dict[str, str]) -> None:
    """Mark an upload as failed, and delete what was parsed."""
    upload.parts.all().delete()
    upload.cases.all()._raw_delete(upload.cases.db)
    upload.refresh_from_db(fields=["n_read", "n_lines", "n_cases"])
    upload.status, upload.fields = UploadRecord.Status.FAILED, fields
    upload.save(update_fields=["status", "fields"])
