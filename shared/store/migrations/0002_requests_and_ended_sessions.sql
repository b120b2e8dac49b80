-- What a request asked for, so that a `request_id` that comes back with another content is refused: SHA-256 over the fields
-- of the request. Values of headers are not part of it; a digest of a short secret could be guessed.
ALTER TABLE servers ADD COLUMN request_digest bytea;
ALTER TABLE profiles ADD COLUMN request_digest bytea;
ALTER TABLE sessions ADD COLUMN request_digest bytea;

-- The row of a deleted session stays for a while, so that every replica sees its end. It must not keep its profile alive.
-- Live sessions: `store/sessions.rs` locks the profile while it makes one, `store/profiles.rs` refuses to delete one in use.
ALTER TABLE sessions DROP CONSTRAINT sessions_profile_id_fkey;

-- The audit is read by tool and by time, too.
CREATE INDEX calls_started ON calls (started_at);
CREATE INDEX sessions_external_id_all ON sessions (external_id) WHERE external_id IS NOT NULL;
