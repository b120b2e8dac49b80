//! Pure: sessions and engine configurations for people.

use std::fmt::Write as _;

use gatehouse_proto::gateway::v1 as pb;
use serde_json::{Value, json};

use super::{
    convert,
    output::Out,
    safe,
    server_view::time,
    snippet::{Engine, Step},
    table::{Cell, Fields, Style, Table},
};

/// Sessions, a row each.
pub(crate) fn list(sessions: &[pb::Session], out: &Out) -> String {
    if sessions.is_empty() {
        return "There is no session. `gatehouse session create --profile PROFILE` makes one.\n".to_owned();
    }
    let mut table = Table::new(&["ID", "EXTERNAL ID", "PROFILE", "ENGINE", "MODE", "MADE"]);
    for session in sessions {
        table.row([
            session.id.as_str().into(),
            session.external_id.as_str().into(),
            session.profile.as_str().into(),
            convert::engine_of(session).word().into(),
            convert::mode_word(session.permission_mode()).into(),
            time(session.created_at.as_ref(), out).into(),
        ]);
    }
    table.render(out.colour)
}

/// One session with its open runs.
pub(crate) fn one(response: &pb::GetSessionResponse, out: &Out) -> String {
    let session = response.session.clone().unwrap_or_default();
    let mut fields = Fields::default()
        .with("Id", session.id.as_str())
        .with("External id", session.external_id.as_str())
        .with("Profile", session.profile.as_str())
        .with("Engine", convert::engine_of(&session).word())
        .with("Mode", convert::mode_word(session.permission_mode()))
        .with("Workspace", session.workspace.as_str())
        .with("Locale", session.locale.as_str())
        .with("MCP URL", response.mcp_url.as_str())
        .with("Made", time(session.created_at.as_ref(), out))
        .with("Changed", time(session.updated_at.as_ref(), out));
    for run in &response.open_runs {
        let since = time(run.began_at.as_ref(), out);
        fields = fields.with("Open run", format!("{} ({}, since {since})", run.id, actor(&run.actor)));
    }
    fields.render("", out.colour)
}

/// An actor for people.
pub(crate) fn actor(actor: &str) -> &str {
    if actor.is_empty() { "default actor" } else { actor }
}

/// The steps that connect an engine, ready to paste.
pub(crate) fn config(steps: &[Step], out: &Out) -> String {
    let mut text = String::new();
    for step in steps {
        let title = Cell::new(&format!("# {}:", step.title), Style::Bold);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{}\n{}\n", title.paint(out.colour), safe::block(&step.text));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The same for scripts.
pub(crate) fn config_json(engine: Engine, steps: &[Step]) -> Value {
    let steps: Vec<Value> = steps.iter().map(|step| json!({ "title": step.title, "text": step.text })).collect();
    json!({ "engine": engine.word(), "steps": steps })
}
