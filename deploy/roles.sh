#!/bin/sh
# Make the database roles of web server and workers, once, when PostgreSQL's image makes its data folder (compose.yaml).
# What they may do is granted by `manage.py grant_roles` after each migration.
set -eu
for role in web worker; do
  psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
    --set=role="evalboard_$role" --set=password="$(cat "/run/secrets/${role}_password")" <<'END'
CREATE ROLE :"role" LOGIN PASSWORD :'password';
END
done
