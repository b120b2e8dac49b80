//! Pure: servers and test reports for people.

use gatehouse_proto::gateway::v1::{self as pb, ServerState, server::Transport};

use super::{
    convert,
    output::Out,
    table::{Cell, Fields, Style, Table},
    when,
};

/// `1 tool`, `2 tools`.
pub(crate) fn count(number: i64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A point in time on the user's clock; nothing when it is not set.
pub(crate) fn time(at: Option<&convert::Time>, out: &Out) -> String {
    convert::instant(at).map(|at| when::local(at, &out.zone)).unwrap_or_default()
}

fn url(server: &pb::Server) -> &str {
    match &server.transport {
        Some(Transport::StreamableHttp(http)) => &http.url,
        None => "",
    }
}

fn state(server: &pb::Server) -> Cell {
    let state = server.status.as_ref().map_or(ServerState::Unknown, pb::ServerStatus::state);
    let style = match state {
        _ if !server.enabled => return Cell::new("switched off", Style::Dim),
        ServerState::Healthy => Style::Good,
        ServerState::Failing => Style::Bad,
        ServerState::Unspecified | ServerState::Unknown => Style::Dim,
    };
    Cell::new(convert::state_word(state), style)
}

/// All servers: a row each, and below what is wrong.
pub(crate) fn list(servers: &[pb::Server], out: &Out) -> String {
    if servers.is_empty() {
        return "No server is registered. `gatehouse server add NAME URL` registers one.\n".to_owned();
    }
    let mut table = Table::new(&["NAME", "STATE", "TOOLS", "URL"]);
    let mut wrong = Table::default();
    for server in servers {
        table.row([
            server.name.as_str().into(),
            state(server),
            server.tool_count.to_string().into(),
            url(server).into(),
        ]);
        let message = server.status.as_ref().map_or("", |status| status.message.as_str());
        if server.enabled && !message.is_empty() {
            wrong.row([Cell::new(&server.name, Style::Bad), message.into()]);
        }
    }
    let (table, wrong) = (table.render(out.colour), wrong.render(out.colour));
    if wrong.is_empty() { table } else { format!("{table}\n{wrong}") }
}

/// One server with everything that is known of it.
pub(crate) fn one(server: &pb::Server, out: &Out) -> String {
    let status = server.status.clone().unwrap_or_default();
    let span = |duration: Option<_>| convert::span(duration).map(when::took).unwrap_or_default();
    let header_names = match &server.transport {
        Some(Transport::StreamableHttp(http)) => http.header_names.join(", "),
        None => String::new(),
    };
    let named = [status.server_name.as_str(), status.server_version.as_str()].join(" ");
    Fields::default()
        .with("Name", server.name.as_str())
        .with("Id", server.id.as_str())
        .with("Description", server.description.as_str())
        .with("URL", url(server))
        .with("Headers", header_names)
        .with("Hidden", server.mask_rules.join(", "))
        .with("State", state(server))
        .with("Message", status.message.as_str())
        .with("Since", time(status.since.as_ref(), out))
        .with("Last asked", time(status.checked_at.as_ref(), out))
        .with("Calls itself", named.trim())
        .with("Protocol", status.protocol_version.as_str())
        .with("Capabilities", status.capabilities_json.as_str())
        .with("Tools", server.tool_count.to_string())
        .with("Tools changed", time(server.tools_updated_at.as_ref(), out))
        .with("Connect timeout", span(server.connect_timeout.as_ref()))
        .with("Request timeout", span(server.request_timeout.as_ref()))
        .with("Max concurrency", server.max_concurrency.to_string())
        .with("Registered", time(server.created_at.as_ref(), out))
        .with("Changed", time(server.updated_at.as_ref(), out))
        .render("", out.colour)
}

/// A test report: a line each step, then what was found.
pub(crate) fn report(report: &pb::TestServerResponse, out: &Out) -> String {
    let mut steps = Table::default();
    for step in &report.steps {
        let mark = if step.ok { Cell::new("ok", Style::Good) } else { Cell::new("FAILED", Style::Bad) };
        let took = convert::span(step.took.as_ref()).map(when::took).unwrap_or_default();
        let reason = if step.reason.is_empty() { String::new() } else { format!(" ({})", step.reason) };
        let message = format!("{}{reason}", step.message);
        steps.row(["".into(), mark, step.name.as_str().into(), took.into(), message.trim().into()]);
    }
    let found = |number: Option<i32>, noun: &str| number.map(|number| count(i64::from(number), noun));
    let counts = [found(report.tools, "tool"), found(report.resources, "resource"), found(report.prompts, "prompt")];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let named = [report.server_name.as_str(), report.server_version.as_str()].join(" ");
    let fields = Fields::default()
        .with("Calls itself", named.trim())
        .with("Protocol", report.protocol_version.as_str())
        .with("TLS", report.tls.as_str())
        .with("Offers", counts.join(", "));
    let verdict =
        if report.ok { Cell::new("It works.", Style::Good) } else { Cell::new("It does not work.", Style::Bad) };
    format!("{}{}{}\n", steps.render(out.colour), fields.render("  ", out.colour), verdict.paint(out.colour))
}
