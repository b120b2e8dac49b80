-- Policies, approvals, files of results, risks of tools, events.

-- An admin's policy for a tool; NULL: the default that follows from its effective hints.
ALTER TABLE tools ADD COLUMN policy text CHECK (policy IN ('allow', 'ask', 'confirm', 'deny'));
-- The definition that an admin last looked at; NULL: none yet.
ALTER TABLE tools ADD COLUMN acknowledged_definition text;
ALTER TABLE tools ADD COLUMN acknowledged_fingerprint text;
ALTER TABLE tools ADD COLUMN acknowledged_at timestamptz;
ALTER TABLE tools ADD COLUMN acknowledged_by text;

-- JSON pointers (RFC 6901; `*` stands for any member or place) to secrets in arguments and structured results, by tool or `*`.
ALTER TABLE servers ADD COLUMN mask_rules text[] NOT NULL DEFAULT '{}';

-- "Approve for the rest of the session". Good only for the definition that the person saw.
CREATE TABLE grants (
    id uuid PRIMARY KEY,
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    server_id uuid NOT NULL REFERENCES servers ON DELETE CASCADE,
    tool text NOT NULL,
    fingerprint text NOT NULL,
    interaction_id uuid NOT NULL,
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL,
    UNIQUE (session_id, server_id, tool)
);

-- Cards: questions to people. Written by the interaction service alone. A card that was answered keeps its answer, also when the
-- call could not use it because its terms had moved (`superseded`).
CREATE TABLE interactions (
    id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('approval', 'form', 'url')),
    state text NOT NULL CHECK (state IN ('open', 'answered', 'timed_out', 'cancelled', 'session_deleted', 'interrupted', 'superseded')),
    session_id uuid NOT NULL,
    actor text NOT NULL DEFAULT '',
    run_id uuid,
    -- The call that waits.
    call_id uuid NOT NULL,
    -- The gateway replica that waits; the card is `interrupted` once that is gone.
    replica_id uuid NOT NULL,
    server text NOT NULL,
    tool text NOT NULL,
    -- What the card shows: JSON as the service's proto describes it, secrets masked.
    card text NOT NULL,
    -- What an approval is bound to: hashes of the raw arguments and of the terms.
    arguments_sha256 bytea,
    terms_sha256 bytea,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    closed_at timestamptz,
    -- The answer, once. `content` is what a form was filled with.
    answer text CHECK (answer IN ('approve', 'approve_for_session', 'deny', 'accept', 'decline', 'cancel')),
    reason text NOT NULL DEFAULT '',
    content text,
    answered_by text NOT NULL DEFAULT '',
    answered_at timestamptz,
    -- Grows with every change of the row.
    version bigint NOT NULL DEFAULT 1,
    CHECK ((answer IS NULL) = (answered_at IS NULL)),
    CHECK ((state = 'open') = (closed_at IS NULL))
);
CREATE INDEX interactions_open ON interactions (expires_at) WHERE state = 'open';
CREATE INDEX interactions_session ON interactions (session_id, id);
CREATE INDEX interactions_run ON interactions (run_id) WHERE state = 'open';

-- Files saved from results. Paths are relative to the session's workspace.
CREATE TABLE files (
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    path text NOT NULL,
    call_id uuid NOT NULL,
    -- Place within the call's result: the same result processed again finds its files by it.
    place integer NOT NULL,
    size_bytes bigint NOT NULL CHECK (size_bytes >= 0),
    media_type text NOT NULL DEFAULT '',
    uri text NOT NULL DEFAULT '',
    sha256 bytea NOT NULL,
    -- The bytes, only when the workspace does not hold them: the session has none, or it could not take them.
    content bytea,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (session_id, path),
    UNIQUE (call_id, place)
);

-- What happened, for those who follow. Ids of one session are given under a lock, so that they commit in order; a reader over
-- all sessions stays below the oldest transaction that is still open (`xact`).
CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- NULL: concerns no single session.
    session_id uuid,
    kind text NOT NULL,
    -- A JSON object.
    payload text NOT NULL,
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX events_session ON events (session_id, id);

-- The audit: who decided and why, what was saved, what did not match.
ALTER TABLE calls ADD COLUMN policy text NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN permission_mode text NOT NULL DEFAULT '';
-- `allowed`, `granted`, `approved`, `approved_for_session`, `denied`, or the word that closed the last card.
ALTER TABLE calls ADD COLUMN decision text NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN decided_by text NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN decided_at timestamptz;
ALTER TABLE calls ADD COLUMN interaction_id uuid;
-- Paths of saved files.
ALTER TABLE calls ADD COLUMN files text[] NOT NULL DEFAULT '{}';
-- What did not match the tool's outputSchema, and what could not be checked or saved.
ALTER TABLE calls ADD COLUMN notes text[] NOT NULL DEFAULT '{}';
