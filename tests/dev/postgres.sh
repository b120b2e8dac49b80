# shellcheck shell=bash
# Postgres clusters of one run: in a folder that goes with it, on a free port of the loopback address.

install_postgres() {
  postgres_bin >/dev/null || debian initdb postgresql
  PATH=$(postgres_bin):$PATH
}

# The folder with initdb and postgres: the newest that Debian's packages brought, or whatever is in PATH.
postgres_bin() {
  local newest
  newest=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
  if [[ -n $newest ]]; then
    echo "$newest"
  else
    dirname "$(command -v initdb)" 2>/dev/null | grep .
  fi
}

# Postgres refuses to run as root; then the user that its package made runs it.
as_postgres() {
  if ((EUID == 0)); then setpriv --reuid postgres --regid postgres --clear-groups env HOME=/ "$@"; else "$@"; fi
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# start_cluster NAME: starts a cluster and sets CLUSTER_URL (a superuser's) and CLUSTER_PID.
# What is thrown away need not survive a crash, so nothing waits for the disk, unless DURABLE is set.
start_cluster() {
  local folder=$TMP/postgres-$1 port options
  mkdir "$folder"
  ((EUID != 0)) || chown postgres: "$folder"
  port=$(free_port)
  options="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=500 -c shared_buffers=256MB"
  [[ -n ${DURABLE:-} ]] || options+=" -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
  {
    as_postgres initdb --pgdata "$folder/data" --username gatehouse --auth trust --encoding UTF8 --locale C.UTF-8 --no-sync &&
      as_postgres pg_ctl start --pgdata "$folder/data" --log "$folder/log" --options "$options" --wait
  } >"$TMP/postgres.log" 2>&1 || { cat "$TMP/postgres.log" "$folder/log" >&2; die "Postgres did not start"; }
  at_exit "stop_cluster $folder/data"
  CLUSTER_URL=postgres://gatehouse@127.0.0.1:$port/postgres
  # shellcheck disable=SC2034 # read by `dev`
  CLUSTER_PID=$(head -n 1 "$folder/data/postmaster.pid")
}

stop_cluster() { as_postgres pg_ctl stop --pgdata "$1" --mode immediate --silent; }

# A database with all migrations, for the queries that are checked against it while compiling. Sets DATABASE_URL.
migrated_database() {
  local migration
  psql --quiet "$CLUSTER_URL" --command 'CREATE DATABASE gatehouse'
  export DATABASE_URL=${CLUSTER_URL%/postgres}/gatehouse
  for migration in shared/store/migrations/*.sql; do
    psql --quiet --set ON_ERROR_STOP=1 --single-transaction "$DATABASE_URL" --file "$migration"
  done
}
