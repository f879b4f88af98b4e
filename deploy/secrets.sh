#!/bin/sh
# Write the secrets that compose.yaml hands to the containers, into deploy/secrets; one that is there stays as it is.
# Nobody but the owner may enter the folder; the files themselves are open, since the containers' account reads them.
set -eu
folder="$(dirname "$0")/secrets"
mkdir -p "$folder"
chmod 700 "$folder"

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
keep() { [ -s "$folder/$1" ] || { printf '%s\n' "$2" > "$folder/$1"; chmod 644 "$folder/$1"; }; }

keep secret_key "$(random)$(random)"
keep verdict_key "$(random)$(random)"
keep postgres_password "$(random)"
keep web_password "$(random)"
keep worker_password "$(random)"
keep database_url "postgres://evalboard:$(cat "$folder/postgres_password")@postgres:5432/evalboard"
keep web_database_url "postgres://evalboard_web:$(cat "$folder/web_password")@postgres:5432/evalboard"
keep worker_database_url "postgres://evalboard_worker:$(cat "$folder/worker_password")@postgres:5432/evalboard"
keep redis_auth.conf "requirepass $(random)"
keep redis_url "redis://:$(cut -d' ' -f2 "$folder/redis_auth.conf")@redis:6379/0"
keep oidc_client_secret ""  # yours to fill in, where people sign in through a provider of your own
keep email_password ""  # yours to fill in, where the mail server asks for one
ls -1 "$folder"
