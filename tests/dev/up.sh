# shellcheck shell=bash
# `./dev up`: everything in the foreground, with the reference server as the demo's upstream.

# The demo's upstream is on this machine, where upstreams are refused unless an operator allows them.
export GATEHOUSE_UPSTREAM_ALLOW=${GATEHOUSE_UPSTREAM_ALLOW:-127.0.0.0/8,::1/128}
REFERENCE_PORT=${REF_PORT:-7390}

gatehouse() { "$GATEHOUSE" --data "$DATA" "$@"; }

# field PATH: one field of the JSON document on standard input, such as `session.id`.
field() { node -p 'process.argv[1].split(".").reduce((at, key) => at?.[key], JSON.parse(require("node:fs").readFileSync(0, "utf8"))) ?? ""' "$1"; }

# in_background NAME LOG COMMAND…: starts a process that stops with this script. In a session of its own, so that Ctrl-C
# reaches only this script, which stops things in order. Sets STARTED.
in_background() {
  local log=$1
  shift
  setsid "$@" >>"$log" 2>&1 &
  STARTED=$!
  at_exit "stop_process $STARTED"
}

# until_ready WHAT PID LOG COMMAND…: waits until COMMAND succeeds, for at most a minute.
until_ready() {
  local what=$1 pid=$2 log=$3 tries
  shift 3
  for ((tries = 0; tries < 600; tries++)); do
    "$@" >/dev/null 2>&1 && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 20 "$log" >&2
  die "$what did not start; its log is $log"
}

# secret_file FILE: makes a secret once, readable by its owner only.
secret_file() {
  [[ -s $1 ]] || (umask 077 && head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n' >"$1")
}

# Before anything starts: a second run would otherwise fail at the first port that is taken, and say only that.
not_twice() {
  local running
  [[ -s $DATA/endpoints.json ]] || return 0
  running=$(field pid <"$DATA/endpoints.json")
  ! kill -0 "$running" 2>/dev/null || die "it runs already, as process $running"
  rm "$DATA/endpoints.json"
}

start_gatehouse() {
  local log=$DATA/logs/gatehouse.log
  in_background "$log" "$GATEHOUSE" up --data "$DATA"
  GATEHOUSE_PID=$STARTED
  until_ready "gatehouse" "$GATEHOUSE_PID" "$log" test -s "$DATA/endpoints.json"
}

start_reference_server() {
  local log=$DATA/logs/reference-server.log
  secret_file "$DATA/reference.token"
  : >"$log"
  in_background "$log" env PORT="$REFERENCE_PORT" REF_TOKEN_FILE="$DATA/reference.token" REF_DATA="$DATA/orders.json" \
    node examples/mcp-reference-server/server.mjs
  until_ready "the reference server" "$STARTED" "$log" grep -q '"url"' "$log"
  REFERENCE_URL=$(head -n 1 "$log" | field url)
}

# Registers the reference server as `orders`. A second run finds it and brings its address and token up to date.
register_demo() {
  local header=(--header-env Authorization=ORDERS_AUTH) ORDERS_AUTH
  ORDERS_AUTH="Bearer $(<"$DATA/reference.token")"
  export ORDERS_AUTH
  if gatehouse server show orders >/dev/null 2>&1; then
    gatehouse server update orders --url "$REFERENCE_URL" "${header[@]}" >/dev/null
  else
    gatehouse server add orders "$REFERENCE_URL" "${header[@]}" >/dev/null
  fi
  gatehouse server refresh orders >/dev/null
  gatehouse profile show demo >/dev/null 2>&1 || gatehouse profile add demo --server orders >/dev/null
}

# The demo session. Its token is shown once by the gateway; it is kept beside the other secrets so that a second run can
# show it again and an engine that was connected before stays connected.
demo_session() {
  local file=$DATA/demo-session.json session
  if [[ -s $file ]]; then
    session=$(field session.id <"$file")
    gatehouse session show "$session" >/dev/null 2>&1 || rm "$file"
  fi
  if [[ ! -s $file ]]; then
    (umask 077 && gatehouse session create --profile demo --mode auto --request-id dev-up-demo --json >"$file")
  fi
  SESSION=$(field session.id <"$file")
  TOKEN=$(field token <"$file")
  MCP_URL=$(field mcp <"$DATA/endpoints.json")
}

# The engine's configuration with the token in its place.
engine_config() { gatehouse session config "$SESSION" --engine "$1" | sed "s|<token>|$TOKEN|; /^The token was shown/d; s/^/  /"; }

introduce() {
  # Where the command finds the data folder by itself; its key then goes to no other server.
  local place
  place="cd $(printf %q "$PWD")"
  [[ $DATA == "$PWD/.gatehouse" ]] || place="export GATEHOUSE_DATA=$(printf %q "$DATA")"
  cat <<TEXT

Gatehouse is running. Ctrl-C stops it; its data stays in $DATA.

  MCP URL   $MCP_URL
  token     $TOKEN

Claude Code:

$(engine_config claude-code)

Codex:

$(engine_config codex)

Next, in another terminal:

  $place
  export PATH=$(printf %q "$(dirname "$GATEHOUSE")"):"\$PATH"
  gatehouse tools list orders
  gatehouse call $SESSION orders__get_order '{"orderId":"A1001"}'
  gatehouse audit list --session $SESSION
TEXT
}

up() {
  (($# == 0)) || die "up takes no arguments; settings come from the environment, see docs/operations.md"
  install_rust
  install_postgres
  install_node
  DATA=$(realpath -m "${GATEHOUSE_DATA:-.gatehouse}")
  not_twice
  node_modules examples/mcp-reference-server
  # The dev profile: half the build time of the release profile, and the tests share what it builds.
  cargo build --locked --package gatehouse
  GATEHOUSE=$(target_dir)/debug/gatehouse
  # The mode of one that is there is gatehouse's: Postgres, under a user of its own, has its folder inside.
  [[ -d $DATA ]] || (umask 077 && mkdir -p "$DATA")
  mkdir -p "$DATA/logs"
  # What starts last stops first: so the gateway can still take leave of its upstream.
  start_reference_server
  start_gatehouse
  register_demo
  demo_session
  introduce
  wait "$GATEHOUSE_PID" || die "gatehouse ended; its log is $DATA/logs/gatehouse.log"
}
