"""How log lines are written: secrets taken out, and where JSON is asked for, one object a line."""

import json
import logging
import re
from datetime import UTC, datetime

REMOVED = "[removed]"
# Tokens, keeping the part that names one; webhooks' secrets; sign-in links; headers as libraries print them.
SECRETS = (
    (re.compile(r"\b(evb_(?:[0-9a-f]{8}_)?)[A-Za-z0-9_-]{6,}"), rf"\1{REMOVED}"),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/=_-]+"), f"whsec_{REMOVED}"),
    (re.compile(r"\b(sesame=)[^\s&\"'<>]+"), rf"\1{REMOVED}"),
    (re.compile(r"\b((?:Bearer|Basic)\s+)(?!evb_)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1{REMOVED}"),
)


def redact(text: str) -> str:
    """The text without secrets. What a token is called stays, so that the one that was used can be found."""
    for pattern, instead in SECRETS:
        text = pattern.sub(instead, text)
    return text


class TextLines(logging.Formatter):
    """Django's usual lines, an exception's own words included, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """`at`, `level`, `logger`, `request_id`, `message`; `trace` where an exception was logged."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "request_id": getattr(record, "request_id", "-"),
            "message": redact(record.getMessage()),
        }
        if record.exc_info:
            line["trace"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)
