"""No secret reaches a log: what the formatters take out, and that every handler has one of them."""

import json
import logging
import logging.config
import sys
from typing import Any

import pytest
from django.conf import settings

from evalboard.logs import JsonFormatter, TextLines, redact

TOKEN = "evb_1a2b3c4d_" + "Zq7" * 14 + "x_0aB3dE"
OLD_TOKEN = "evb_Jx0-9_kTqk3mX0m6vUeJ1uPzP0oG4m4m7dYQd5n3qRk"
HOOK = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD/x="
LINK = "/signin/?sesame=AAAAAXkX9zqI.abc-d_e"
BASIC = "bWFyeTpodW50ZXIy"
SECRETS = (TOKEN, OLD_TOKEN, HOOK, "AAAAAXkX9zqI.abc-d_e", "eyJhbGciOiJSUzI1NiJ9.e30.sig", BASIC)


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        (f"Authorization: Bearer {TOKEN}", "evb_1a2b3c4d_[removed]"),
        (f"refused {OLD_TOKEN}.", "refused evb_[removed]."),
        (f'{{"secret": "{HOOK}"}}', '{"secret": "whsec_[removed]"}'),
        (f'"GET {LINK}&next=/runs/ HTTP/1.1" 302', "sesame=[removed]&next=/runs/"),
        ("authorization: bearer eyJhbGciOiJSUzI1NiJ9.e30.sig", "authorization: bearer [removed]"),
        (f"Proxy-Authorization: Basic {BASIC}", "Proxy-Authorization: Basic [removed]"),
    ],
)
def test_a_secret_is_taken_out_and_the_rest_stays(said: str, stays: str) -> None:
    assert stays in redact(said)
    assert not any(secret in redact(said) for secret in SECRETS)


@pytest.mark.parametrize("said", ["evb_", "the evb_ prefix", "sesame seeds", "Bearer of bad news", "GET /runs/1/"])
def test_what_is_no_secret_stays(said: str) -> None:
    assert redact(said) == said


@pytest.mark.parametrize("lines", [TextLines("%(message)s"), JsonFormatter()])
def test_arguments_and_exceptions_are_looked_at_too(lines: logging.Formatter) -> None:
    try:
        raise ValueError(TOKEN)
    except ValueError:
        record = logging.LogRecord("x", logging.INFO, "x", 1, "used %s", (HOOK,), sys.exc_info())
    said = lines.format(record)
    assert "ValueError" in said
    assert not any(secret in said for secret in SECRETS)
    if isinstance(lines, JsonFormatter):
        assert json.loads(said)["message"] == "used whsec_[removed]"


def test_every_handler_of_the_settings_takes_secrets_out() -> None:
    configured: dict[str, Any] = settings.LOGGING
    for handler in configured["handlers"].values():
        for name in ("text", "json"):
            made = logging.config.DictConfigurator({**configured}).configure_formatter(configured["formatters"][name])
            assert isinstance(made, TextLines | JsonFormatter)
        assert handler["formatter"] in configured["formatters"]
