"""What may be sent: strict JSON, JSONL where a suite is uploaded, files where a log is."""

import gzip
import io
import zlib
from collections.abc import Callable, Mapping
from typing import IO, Any

import zstandard
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, MultiPartParser

from evalboard.core.document import read_strict_json, storage_problems
from evalboard.core.errors import InvalidInput

MAX_FIELDS = 20
UNPACKED: Mapping[str, Callable[[IO[bytes]], Any]] = {
    "": lambda stream: stream,
    "identity": lambda stream: stream,
    "gzip": lambda stream: gzip.GzipFile(fileobj=stream),
    "zstd": lambda stream: zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True),
}


class StrictJson(BaseParser):
    """JSON without NaN, infinities, doubled keys, or characters that cannot be stored."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        text = _text(stream, parser_context)
        try:
            value = read_strict_json(text)
        except ValueError as error:
            raise ParseError(f"The body is not strict JSON: {error}.") from None
        unfit = [pair for pair, _ in zip(storage_problems(value, ""), range(MAX_FIELDS), strict=False)]
        if unfit:
            raise InvalidInput("The body holds what cannot be stored.", fields=dict(unfit))
        return value


class JsonLinesParser(BaseParser):
    """JSONL as text; the suite document is made of it where the slug is known."""

    media_type = "application/x-ndjson"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        return _text(stream, parser_context)


class PlainText(JsonLinesParser):
    media_type = "text/plain"


class CsvParser(JsonLinesParser):
    media_type = "text/csv"


class PackedLines(BaseParser):
    """Lines as bytes, unpacked where they came compressed, up to the same limit as any body."""

    media_type = "application/x-ndjson"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        _refuse_large(parser_context)
        encoding = parser_context["request"].META.get("HTTP_CONTENT_ENCODING", "") if parser_context else ""
        if encoding not in UNPACKED:
            raise ParseError(f"Content-Encoding is {encoding}; zstd, gzip and none are read.")
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        try:
            lines = UNPACKED[encoding](io.BytesIO(stream.read())).read(limit + 1)
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
            raise ParseError(f"The body is not {encoding}: {error}.") from None
        if len(lines) > limit:
            raise RequestDataTooBig(f"The body unpacks to more than {limit:,} bytes.")
        return lines


class LogForm(MultiPartParser):
    """The files of a log, as browsers and curl send them; runs.uploads bounds and spools them."""

    media_type = "multipart/form-data"


def _refuse_large(context: Mapping[str, Any] | None) -> None:
    """Raise before a body is read that has too many bytes: the framework's own limit does not see streams."""
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    length = context["request"].META.get("CONTENT_LENGTH") if context else None
    if length and length.isdigit() and int(length) > limit:
        raise RequestDataTooBig(f"The body has {int(length):,} bytes; at most {limit:,} are read.")


def _text(stream: IO[bytes], context: Mapping[str, Any] | None) -> str:
    """The body as text."""
    _refuse_large(context)
    try:
        return stream.read().decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"The body is not UTF-8: {error.reason} at byte {error.start}.") from None
