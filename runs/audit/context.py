"""Tell PostgreSQL with each write who acts; its triggers write the audit trail.

The triggers are in runs/migrations/_audit.py. The actor travels in a
setting that ends with the transaction, in the same round trip as the statement.
"""

import functools
import getpass
import json
import logging
import os
import re
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse

from runs.access import credential
from runs.access.login_guard import client_address, counted_address
from runs.models import AuditLineRecord
from runs.store import counters, storable

logger = logging.getLogger(__name__)

WRITES = re.compile(
    r"\s*(?:INSERT|UPDATE|DELETE|MERGE|WITH\b.*\b(?:INSERT|UPDATE|DELETE))\b", re.IGNORECASE | re.DOTALL
)
# Security events that are recorded in a minute: of one address, and in all.
MAX_OF_ADDRESS, MAX_IN_ALL = 20, 300
REFUSED, SIGN_IN_FAILED = "refused", "sign_in_failed"

# The environment of a process that works for a request has the actor in this variable.
ACTOR = "EVALBOARD_ACTOR"
_acting: ContextVar[Callable[[], dict[str, str]] | None] = ContextVar("acting", default=None)

Execute = Callable[[Any, Any, bool, dict[str, Any]], Any]


class ActorNaming:
    """A wrapper of statements (Django's `execute_wrapper`) that names the actor of each write."""

    def __init__(self, describe: Callable[[], dict[str, str]]) -> None:
        self.describe = describe

    def __call__(self, execute: Execute, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if not (isinstance(sql, str) and WRITES.match(sql)):
            return execute(sql, params, many, context)
        text = json.dumps(self.describe()).replace("'", "''")
        naming = f"SELECT set_config('evalboard.actor', '{text}', true); "
        if many:  # a statement with another before it cannot be sent many times
            context["cursor"].cursor.execute(naming)
            return execute(sql, params, many, context)
        answer = execute((naming if params is None else naming.replace("%", "%%")) + sql, params, many, context)
        context["cursor"].nextset()  # past the answer of set_config
        return answer


class AuditTrail:
    """Middleware: names the actor of all that a request writes, and records refusals."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        who = partial(describe, request)
        token = _acting.set(who)
        try:
            with connection.execute_wrapper(ActorNaming(who)):
                response = self.get_response(request)
        finally:
            _acting.reset(token)
        is_wrong_token = response.status_code == 401 and "Authorization" in request.headers
        if response.status_code == 403 or is_wrong_token:
            note_event(request, REFUSED)
        elif getattr(request, "is_wrong_password", False):
            note_event(request, SIGN_IN_FAILED)
        return response


def describe(request: HttpRequest) -> dict[str, str]:
    """Return who sends a request, from where, and by which address of ours."""
    user, token = getattr(request, "user", None), getattr(request, "auth", None)
    is_known = user is not None and user.is_authenticated
    has_session = is_known and token is None and request.session.session_key
    match = request.resolver_match
    return {
        "actor": ("person" if token is None else "token") if is_known else "anonymous",
        "person": user.get_username() if is_known and user is not None else "",
        "credential": credential(request)[:120] if token is not None or has_session else "",
        "address": (client_address(request) or "")[:60],
        "via": storable(f"{request.method} {match.view_name if match else request.path}")[:120],
        "request_id": getattr(request, "request_id", ""),
    }


def note_event(request: HttpRequest, act: str) -> None:
    """Record that a request was refused. Of a flood of them only the first of each minute are recorded."""
    address = counters.count(f"audit:{counted_address(request)}", seconds=60) or 1
    everyone = counters.count("audit:", seconds=60) or 1
    if address > MAX_OF_ADDRESS or everyone > MAX_IN_ALL:
        if address == MAX_OF_ADDRESS + 1 or everyone == MAX_IN_ALL + 1:
            logger.warning("audit_events_left_out address=%s", client_address(request))
        return
    try:
        AuditLineRecord.objects.create(act=act, **describe(request))
    except DatabaseError:
        logger.exception("A security event is missing in the audit trail: %s", act)


def hand_on_actor() -> dict[str, str]:
    """Return the environment by which a child process writes in the name of the present request."""
    who = _acting.get()
    return {} if who is None else {ACTOR: json.dumps(who())}


@functools.cache
def operator_recorder(command: str) -> ActorNaming:
    """Return what names the actor of a command of manage.py: this server's account, or a request's."""
    if (handed := os.environ.get(ACTOR)) is not None:
        given: dict[str, str] = json.loads(handed)
        return ActorNaming(lambda: given)
    try:
        account = getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as containers have
        account = f"uid {os.getuid()}"
    described = {"actor": "operator", "person": account[:150], "via": f"manage.py {command}"[:120]}
    return ActorNaming(lambda: described)
