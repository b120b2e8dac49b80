#!/usr/bin/env bash
# Makes the secrets that docker-compose.yml uses, once. Those that exist stay as they are.
#
# The containers run as user ids of their own, so the files are readable; the folder around them is closed to others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

mkdir -p secrets
chmod 700 secrets

random() { head -c 32 /dev/urandom | base64 | tr -d '\n'; }
url_safe() { random | tr '+/' '-_' | tr -d '='; }

# secret NAME TEXT: writes it unless it is there.
secret() {
  [[ -e secrets/$1 ]] && return
  printf '%s\n' "$2" >"secrets/$1"
  chmod 444 "secrets/$1"
}

# The folder of the database remembers its first password, so the two files are made together.
secret postgres-password "$(url_safe)"
secret gatehouse.toml "database_url = \"postgres://gatehouse:$(<secrets/postgres-password)@postgres:5432/gatehouse\""
secret keyring "k1:$(random)"
secret service-token "$(url_safe)"
secret admin-key "ghk_$(url_safe)"
secret reference-token "$(url_safe)"
echo "The secrets are in $PWD/secrets."
