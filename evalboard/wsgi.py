import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
application = get_wsgi_application()

from runs.store import limit_statements  # noqa: E402  Django first

limit_statements()
