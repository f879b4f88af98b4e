"""gunicorn's settings for a team's web server: `gunicorn -c deploy/gunicorn.conf.py` (docs/deploy.md).

The settings are read here first, so that what they refuse is one sentence and not a traceback for each process.
"""

import time
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environs import EnvError

try:
    from evalboard import settings
    from evalboard.liveness import liveness_of
    from evalboard.safety import LOCAL_HOSTS

    if not settings.HAS_SECRET_KEY:
        raise ImproperlyConfigured(
            "EVALBOARD_SECRET_KEY is empty, and several processes sign sessions with it; set 50 or more random "
            "characters, or name a file that has them in EVALBOARD_SECRET_KEY_FILE."
        )
    if not settings.VERDICT_KEYS and not set(settings.HOSTS) <= set(LOCAL_HOSTS):
        raise ImproperlyConfigured(
            "EVALBOARD_VERDICT_KEY is empty, so a verdict changed in the database would be shown; set 50 or more "
            "random characters for the web server and the scheduler, or name a file that has them in "
            "EVALBOARD_VERDICT_KEY_FILE."
        )
    bind = settings.env.str("EVALBOARD_WEB_BIND", "127.0.0.1:8000")
    workers = settings.env.int("EVALBOARD_WEB_PROCESSES", 2)
    threads = settings.env.int("EVALBOARD_WEB_THREADS", 8)
    # Where /live is answered without the request threads; empty: nowhere.
    live_bind = settings.env.str("EVALBOARD_LIVE_BIND", "")
    # How long requests may wait without any being finished before /live answers 503.
    liveness = liveness_of(settings.env.float("EVALBOARD_STALL_SECONDS", 60.0))
except (ImproperlyConfigured, EnvError) as refused:
    raise SystemExit(f"Evalboard cannot start: {refused}") from None

wsgi_app = "evalboard.wsgi"
worker_class = "gthread"  # most of a request's time is spent waiting for PostgreSQL

# What a process may have gathered in a while is given back; the jitter keeps them from starting anew together.
max_requests = 5000
max_requests_jitter = 1000
graceful_timeout = 30  # seconds that a request under way has after SIGTERM
keepalive = 75  # longer than a proxy keeps a connection that it will use again
control_socket_disable = True

# The same lines as the product's own, request id included, and who called: person:3 or token:7. A query is left out: a
# sign-in link has its secret there.
accesslog = "-"
access_log_format = '%(h)s %({evalboard.caller}e)s "%(m)s %(U)s" %(s)s %({content-length}o)s bytes %(M)s ms'
_LINES = {"handlers": ["console"], "level": "INFO", "propagate": False}
logconfig_dict = {**settings.LOGGING, "loggers": {"gunicorn.access": _LINES, "gunicorn.error": _LINES}}


def on_starting(server: Any) -> None:
    if live_bind:
        host, _, port = live_bind.rpartition(":")
        try:
            liveness.serve(host, int(port))
        except (OSError, ValueError) as problem:
            raise SystemExit(f"Evalboard cannot start: EVALBOARD_LIVE_BIND={live_bind}: {problem}") from None


def pre_fork(server: Any, worker: Any) -> None:
    worker.slot = liveness.take_slot()


def post_worker_init(worker: Any) -> None:
    liveness.watch(worker.slot, worker)


def post_request(worker: Any, request: Any) -> None:
    worker.last_end = time.monotonic()


def child_exit(server: Any, worker: Any) -> None:
    liveness.free_slot(worker.slot)
