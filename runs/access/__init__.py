"""Who may do what: people, roles, tokens, one-time links."""

from runs.access import login_guard, roles
from runs.access.people import add_person, end_sessions, remove_person, use_link
from runs.access.read_tokens import TOKEN_ORDERS, token_row, token_rows
from runs.access.roles import (
    ADMIN,
    ANYONE,
    READ,
    ROLES,
    RUN,
    SCOPES,
    SIGN,
    credential,
    grant_role,
    may,
    requires,
    scopes_of,
)
from runs.access.tokens import LONGEST_NAME, create_token, revoke_token, secret_digest, use_token

__all__ = [
    "ADMIN",
    "ANYONE",
    "LONGEST_NAME",
    "READ",
    "ROLES",
    "RUN",
    "SCOPES",
    "SIGN",
    "TOKEN_ORDERS",
    "add_person",
    "create_token",
    "credential",
    "end_sessions",
    "grant_role",
    "login_guard",
    "may",
    "remove_person",
    "requires",
    "revoke_token",
    "roles",
    "scopes_of",
    "secret_digest",
    "token_row",
    "token_rows",
    "use_link",
    "use_token",
]
