#!/bin/sh
# Build the web image on Debian 12 without a Docker daemon, and start it once: sh deploy/build-without-docker.sh [WORK]
#
# As root, with Debian's packages buildah and debootstrap, and with DATABASE_URL naming an empty database. WORK (a folder,
# else a temporary one that is removed) takes 1.5 GB. The base is made by debootstrap and has Debian's own Python 3.11, not
# the official image's, and no npm, so that pages get the whole Plotly; all else is the Dockerfile. BUILD_OPTIONS goes to
# `buildah bud`, such as volumes with certificates.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${1:-}" ]; then work=$1; else work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; fi
mkdir -p "$work"
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }

base=docker.io/library/python:3.11-slim-bookworm
if [ ! -e "$work/base" ]; then
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$work/base" > "$work/base.log"
  rm -rf "$work"/base/var/cache/apt/archives/*.deb "$work"/base/var/lib/apt/lists/*
fi
container=$(buildah from scratch)
buildah add --quiet "$container" "$work/base" /
buildah commit --quiet --rm --format docker "$container" "$base"

# shellcheck disable=SC2086  # several words are meant
buildah bud --format docker --pull-never --build-arg NODE_IMAGE="$base" --target web --tag evalboard-web ${BUILD_OPTIONS:-} .
buildah images

container=$(buildah from --pull-never evalboard-web)
secret=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
in_image() {
  buildah run --env DATABASE_URL="$DATABASE_URL" --env EVALBOARD_SECRET_KEY="$secret" \
    --env EVALBOARD_WEB_BIND=127.0.0.1:8033 "$container" -- "$@"
}
in_image python manage.py migrate --no-input
in_image python manage.py load_profiles
in_image python manage.py load_policies
in_image timeout 45 gunicorn -c deploy/gunicorn.conf.py &
in_image python - < deploy/try_image.py
wait || true  # the server is ended by its timeout
buildah rm "$container" > /dev/null
