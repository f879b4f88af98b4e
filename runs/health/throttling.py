"""Limit requests per minute by token, or by person for sessions, and by scope.

For fairness, not for security: one script in a tight loop must not take the server from everybody else. The numbers
are settings, `RATES`.
"""

import time
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from runs.access import roles
from runs.models import Token
from runs.store import counters

WINDOW_SECONDS = 60


class ByCallerAndScope(BaseThrottle):
    """Counts within whole minutes of the server's clock, one number for each caller and scope.

    Not DRF's own SimpleRateThrottle: that keeps the time of every request in the cache, reads and writes all of them
    each time, and loses some where two processes do so at once.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        scope = view.required_scopes.get("GET" if request.method == "HEAD" else request.method, roles.ANYONE)
        if scope == roles.ANYONE:
            return True
        most = settings.RATES[scope]
        if most == 0:
            return True
        self.now = time.time()
        window = int(self.now // WINDOW_SECONDS)
        n = counters.count(f"calls:{_caller(request)}:{scope}:{window}", seconds=2 * WINDOW_SECONDS)
        return n is None or n <= most

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return WINDOW_SECONDS - self.now % WINDOW_SECONDS


def _caller(request: Request) -> str:
    if isinstance(request.auth, Token):
        return f"token{request.auth.pk}"
    return f"person{request.user.pk}"
