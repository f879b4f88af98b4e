"""The Celery app: a doorbell on Redis, without tasks of its own (`worker/tasks.py`) or results.

A message says "there is work", and nothing is lost with it: the work stands in the database. Hence early
acknowledgement, JSON only, and no retry that would keep a web request waiting (docs/decisions/0008).
"""

from celery import Celery
from django.conf import settings

CONTROL = "control"  # the queue of what needs no engine

app = Celery("evalboard", set_as_current=True)
app.conf.update(
    broker_url=settings.REDIS_URL or None,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,  # for ever: until Redis is back, workers look
    broker_connection_timeout=settings.REDIS_SECONDS,
    broker_transport_options={
        "global_keyprefix": "evb:",
        "socket_connect_timeout": settings.REDIS_SECONDS,
        "socket_timeout": 10,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "visibility_timeout": 3600,
    },
    accept_content=["json"],
    task_serializer="json",
    result_serializer="json",
    task_ignore_result=True,
    task_acks_late=False,
    task_reject_on_worker_lost=False,
    task_publish_retry=False,
    task_default_queue=CONTROL,
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    imports=["worker.tasks"],
    beat_scheduler="celery.beat:Scheduler",  # keeps no file: its one entry is due again soon after any restart
    beat_schedule={"reconcile": {"task": "evalboard.reconcile", "schedule": settings.RECONCILE_SECONDS}},
)
