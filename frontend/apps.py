from typing import Any

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class FrontendConfig(AppConfig):
    name = "frontend"

    def ready(self) -> None:
        user_logged_in.connect(_begin_session)


def _begin_session(request: Any, **facts: Any) -> None:
    from frontend.shell.middleware import begin_session  # needs the apps to be loaded

    begin_session(request.session)
