-- One schema for all services. `docs/architecture.md` says who writes which table.

-- Counts every change that an engine's next call must see. One row. The row lock of its UPDATE puts changes in commit order.
CREATE TABLE config_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- Servers, tools, profiles, settings.
    catalog bigint NOT NULL DEFAULT 1,
    -- Sessions, tokens, runs' ends, ended edge sessions.
    sessions bigint NOT NULL DEFAULT 1
);
INSERT INTO config_epoch DEFAULT VALUES;

CREATE TABLE servers (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (name ~ '^[a-z0-9_-]{1,32}$'),
    description text NOT NULL DEFAULT '',
    enabled boolean NOT NULL DEFAULT true,
    url text NOT NULL,
    -- Names in the clear, in the order they were set; values sealed as one JSON object.
    header_names text[] NOT NULL DEFAULT '{}',
    headers_sealed bytea,
    connect_timeout_ms integer NOT NULL CHECK (connect_timeout_ms BETWEEN 1000 AND 120000),
    request_timeout_ms integer NOT NULL CHECK (request_timeout_ms BETWEEN 1000 AND 86400000),
    max_concurrency integer NOT NULL CHECK (max_concurrency BETWEEN 1 AND 10000),
    request_id text UNIQUE,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- What the last contact showed.
    state text NOT NULL DEFAULT 'unknown' CHECK (state IN ('unknown', 'healthy', 'failing')),
    state_message text NOT NULL DEFAULT '',
    state_since timestamptz,
    checked_at timestamptz,
    protocol_version text NOT NULL DEFAULT '',
    server_name text NOT NULL DEFAULT '',
    server_version text NOT NULL DEFAULT '',
    capabilities text NOT NULL DEFAULT '',
    tools_updated_at timestamptz,
    -- When the tools were last listed, changed or not.
    listed_at timestamptz,
    -- Who lists the tools now, so that many new connections cost one listing.
    refresh_lease uuid,
    refresh_lease_until timestamptz
);
-- `-` and `_` are one letter to some engines.
CREATE UNIQUE INDEX servers_name ON servers (replace(name, '-', '_'));

-- The tool cache. A row of a tool that is gone stays while it carries overrides.
CREATE TABLE tools (
    server_id uuid NOT NULL REFERENCES servers ON DELETE CASCADE,
    name text NOT NULL,
    -- Place in the server's list; NULL when the tool is gone.
    position integer,
    -- The definition as the server sent it, byte for byte.
    definition text NOT NULL,
    fingerprint text NOT NULL,
    changed_at timestamptz NOT NULL,
    -- Hints that an admin set; NULL is not overridden.
    read_only boolean,
    destructive boolean,
    idempotent boolean,
    PRIMARY KEY (server_id, name)
);

CREATE TABLE profiles (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9_-]{1,64}$'),
    description text NOT NULL DEFAULT '',
    request_id text UNIQUE,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE profile_servers (
    profile_id uuid NOT NULL REFERENCES profiles ON DELETE CASCADE,
    server_id uuid NOT NULL REFERENCES servers ON DELETE CASCADE,
    -- NULL: all tools.
    tools text[],
    PRIMARY KEY (profile_id, server_id)
);
CREATE INDEX profile_servers_server ON profile_servers (server_id);

CREATE TABLE settings (
    key text PRIMARY KEY,
    value jsonb NOT NULL,
    updated_at timestamptz NOT NULL,
    updated_by text NOT NULL
);

CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    external_id text,
    profile_id uuid NOT NULL REFERENCES profiles,
    engine text NOT NULL CHECK (engine IN ('claude_code', 'codex', 'other')),
    permission_mode text NOT NULL CHECK (permission_mode IN ('read_only', 'ask', 'auto')),
    workspace text NOT NULL DEFAULT '',
    locale text NOT NULL,
    request_id text UNIQUE,
    -- `config_epoch.sessions` of the last change to this session, its tokens or its runs.
    epoch bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz
);
CREATE UNIQUE INDEX sessions_external_id ON sessions (external_id) WHERE deleted_at IS NULL;
CREATE INDEX sessions_epoch ON sessions (epoch);
CREATE INDEX sessions_created ON sessions (created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX sessions_profile ON sessions (profile_id) WHERE deleted_at IS NULL;

CREATE TABLE session_tokens (
    id uuid PRIMARY KEY,
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    actor text NOT NULL DEFAULT '',
    -- SHA-256 of the secret.
    hash bytea NOT NULL UNIQUE,
    prefix text NOT NULL,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX session_tokens_session ON session_tokens (session_id);

CREATE TABLE runs (
    id uuid PRIMARY KEY,
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    actor text NOT NULL DEFAULT '',
    request_id text UNIQUE,
    began_at timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE UNIQUE INDEX runs_one_open ON runs (session_id, actor) WHERE ended_at IS NULL;

-- MCP sessions that engines ended with DELETE; their self-describing ids are refused until they would have expired.
CREATE TABLE ended_edge_sessions (
    id uuid PRIMARY KEY,
    session_id uuid NOT NULL,
    epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX ended_edge_sessions_epoch ON ended_edge_sessions (epoch);

-- MCP sessions at upstream servers, so that a restarted or another replica can take them up.
CREATE TABLE upstream_sessions (
    server_id uuid NOT NULL REFERENCES servers ON DELETE CASCADE,
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The `Mcp-Session-Id`, sealed.
    mcp_session_id_sealed bytea NOT NULL,
    protocol_version text NOT NULL,
    -- The `initialize` result as it was sent.
    initialize_result text NOT NULL,
    -- A hash of URL and headers: a changed registration must not meet an old MCP session.
    config_hash bytea NOT NULL,
    used_at timestamptz NOT NULL,
    PRIMARY KEY (server_id, session_id)
);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    scope text NOT NULL CHECK (scope IN ('admin', 'sessions')),
    -- SHA-256 of the secret.
    hash bytea NOT NULL UNIQUE,
    prefix text NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at timestamptz
);
CREATE UNIQUE INDEX api_keys_name ON api_keys (name) WHERE revoked_at IS NULL;

-- Gateway replicas. What a replica held is orphaned once its heartbeat has lapsed.
CREATE TABLE replicas (
    id uuid PRIMARY KEY,
    address text NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL
);

-- The audit: one row a tool call. Names are copied, since servers can be renamed and removed.
CREATE TABLE calls (
    id uuid PRIMARY KEY,
    session_id uuid NOT NULL,
    actor text NOT NULL DEFAULT '',
    run_id uuid,
    server_id uuid,
    server text NOT NULL,
    tool text NOT NULL,
    -- bits: 1 readOnly, 2 destructive, 4 idempotent, 8 openWorld
    hints smallint NOT NULL,
    -- NULL while it runs.
    outcome text CHECK (outcome IN ('ok', 'tool_error', 'denied', 'timed_out', 'cancelled', 'interrupted', 'unknown', 'background', 'not_sent')),
    started_at timestamptz NOT NULL,
    duration_us bigint,
    retries integer NOT NULL DEFAULT 0,
    -- Masked, cut to 20 KB.
    arguments text NOT NULL,
    arguments_bytes bigint NOT NULL,
    arguments_sha256 bytea NOT NULL,
    result_bytes bigint NOT NULL DEFAULT 0,
    structured_result text,
    error text NOT NULL DEFAULT '',
    trace_id text NOT NULL DEFAULT '',
    -- The replica that runs it; what it held is `interrupted` once it is gone.
    replica_id uuid NOT NULL
);
CREATE INDEX calls_session ON calls (session_id, id);
CREATE INDEX calls_server ON calls (server, id);
CREATE INDEX calls_running ON calls (replica_id) WHERE outcome IS NULL;
