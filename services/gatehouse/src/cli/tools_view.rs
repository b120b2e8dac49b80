//! Pure: tools for people.

use gatehouse_proto::gateway::v1::{self as pb, HintSource, Policy};

use super::{
    output::Out,
    table::{Cell, Fields, Style, Table},
};

/// Longest description in a list, in characters.
const DESCRIPTION_CHARS: usize = 60;

const LEGEND: &str = "\n* set by an admin, ~ declared by nobody\n";

/// A policy as on the command line; nothing when none is chosen.
pub(crate) const fn policy_word(policy: Policy) -> &'static str {
    match policy {
        Policy::Unspecified => "",
        Policy::Allow => "allow",
        Policy::Ask => "ask",
        Policy::Confirm => "confirm",
        Policy::Deny => "deny",
    }
}

/// A row a tool; `*` and `~` say where a hint or policy comes from.
pub(crate) fn table(tools: &[pb::Tool], out: &Out) -> String {
    let mut table = Table::new(&["TOOL", "POLICY", "HINTS", "DESCRIPTION"]);
    for tool in tools {
        let name = format!("{} {}", tool.server, tool.name);
        let note = if tool.problem.is_empty() {
            beginning(&tool.description).into()
        } else {
            Cell::new(&format!("not offered: {}", tool.problem), Style::Bad)
        };
        let hints = hints(tool).into_iter().map(|(word, source)| format!("{word}{}", mark(source)));
        table.row([name.into(), policy(tool), hints.collect::<Vec<_>>().join(" ").into(), note]);
    }
    format!("{}{LEGEND}", table.render(out.colour))
}

const fn mark(source: HintSource) -> &'static str {
    match source {
        HintSource::Admin => "*",
        HintSource::Default => "~",
        HintSource::Unspecified | HintSource::Server => "",
    }
}

fn policy(tool: &pb::Tool) -> Cell {
    let chosen = if tool.policy() == Policy::Unspecified { "" } else { "*" };
    let style = match tool.effective_policy() {
        Policy::Deny => Style::Bad,
        Policy::Confirm => Style::Warn,
        _ => Style::Plain,
    };
    Cell::new(&format!("{}{chosen}", policy_word(tool.effective_policy())), style)
}

/// The hints that count, with their sources; those that are false by default are left out.
fn hints(tool: &pb::Tool) -> Vec<(&'static str, HintSource)> {
    let (effective, sources) = (tool.effective.unwrap_or_default(), tool.sources.unwrap_or_default());
    let word = |yes, no, value: Option<bool>, source| match (value.unwrap_or(false), source) {
        (true, _) => Some((yes, source)),
        (false, HintSource::Admin) => Some((no, source)),
        (false, _) => None,
    };
    let words = [
        word("read-only", "not-read-only", effective.read_only, sources.read_only()),
        word("destructive", "not-destructive", effective.destructive, sources.destructive()),
        word("idempotent", "not-idempotent", effective.idempotent, sources.idempotent()),
        word("open-world", "closed-world", effective.open_world, sources.open_world()),
    ];
    words.into_iter().flatten().collect()
}

/// The beginning of a description, on one line.
pub(crate) fn beginning(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= DESCRIPTION_CHARS {
        return line;
    }
    format!("{}…", line.chars().take(DESCRIPTION_CHARS - 1).collect::<String>().trim_end())
}

/// Everything that is known of a tool.
pub(crate) fn whole(tool: &pb::Tool, out: &Out) -> String {
    let default = policy_word(tool.default_policy());
    let policy = match policy_word(tool.policy()) {
        "" => format!("{default} (from its hints)"),
        chosen => format!("{chosen} (set by an admin; from its hints: {default})"),
    };
    let from = |source| match source {
        HintSource::Admin => " (admin)",
        HintSource::Server => " (server)",
        HintSource::Default => " (default)",
        HintSource::Unspecified => "",
    };
    let hints = hints(tool).into_iter().map(|(word, source)| format!("{word}{}", from(source)));
    Fields::default()
        .with("Tool", tool.name.as_str())
        .with("Server", tool.server.as_str())
        .with("Engines see", tool.exposed_name.as_str())
        .with("Title", tool.title.as_str())
        .with("Description", tool.description.as_str())
        .with("Policy", policy)
        .with("Hints", hints.collect::<Vec<_>>().join(", "))
        .with("Tasks", tool.task_support.as_str())
        .with("Not offered", tool.problem.as_str())
        .with("Input", tool.input_schema_json.as_str())
        .with("Output", tool.output_schema_json.as_str())
        .render("", out.colour)
}
