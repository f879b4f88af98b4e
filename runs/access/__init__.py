"""Who may do what: people, roles, tokens, one-time links."""

from runs.access import login_guard, roles
from runs.access.people import (
    add_person,
    change_role,
    invite_person,
    remove_person,
    use_link,
    write_link,
)
from runs.access.read_people import PEOPLE_ORDERS, people_rows, person_row
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
from runs.access.sessions import end_session, end_sessions, session_id, session_rows
from runs.access.tokens import LONGEST_NAME, create_token, revoke_token, secret_digest, use_token

__all__ = [
    "ADMIN",
    "ANYONE",
    "LONGEST_NAME",
    "PEOPLE_ORDERS",
    "READ",
    "ROLES",
    "RUN",
    "SCOPES",
    "SIGN",
    "TOKEN_ORDERS",
    "add_person",
    "change_role",
    "create_token",
    "credential",
    "end_session",
    "end_sessions",
    "grant_role",
    "invite_person",
    "login_guard",
    "may",
    "people_rows",
    "person_row",
    "remove_person",
    "requires",
    "revoke_token",
    "roles",
    "scopes_of",
    "secret_digest",
    "session_id",
    "session_rows",
    "token_row",
    "token_rows",
    "use_link",
    "use_token",
    "write_link",
]
