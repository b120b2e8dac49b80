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

/// Where it is: its URL, or its command. A program without a sandbox is marked wherever it is shown.
fn place(server: &pb::Server) -> Cell {
    match &server.transport {
        Some(Transport::StreamableHttp(http)) => http.url.as_str().into(),
        Some(Transport::Stdio(stdio)) if stdio.trusted => {
            Cell::new(&format!("{} ({NO_SANDBOX})", command(stdio)), Style::Bad)
        }
        Some(Transport::Stdio(stdio)) => command(stdio).into(),
        None => "".into(),
    }
}

/// How a program that an admin trusts is marked.
const NO_SANDBOX: &str = "TRUSTED, runs without a sandbox";

fn command(stdio: &pb::Stdio) -> String {
    let quoted = |word: &String| {
        if word.contains([' ', '"', '\'']) || word.is_empty() { format!("{word:?}") } else { word.clone() }
    };
    let words: Vec<String> = std::iter::once(&stdio.program).chain(&stdio.args).map(quoted).collect();
    words.join(" ")
}

/// What a program may use, and what became of it.
fn program(fields: Fields, server: &pb::Server, out: &Out) -> Fields {
    let Some(Transport::Stdio(stdio)) = &server.transport else { return fields };
    let opened = |open: &pb::OpenedPath| format!("{}{}", open.path, if open.write { " (read and write)" } else { "" });
    let limits = stdio.limits.unwrap_or_default();
    let mebibytes = |bytes: Option<i64>| format!("{} MiB", bytes.unwrap_or_default() >> 20);
    let limits = format!(
        "{} of memory, {} % of a core, {} processes, {} at home",
        mebibytes(limits.memory_bytes),
        limits.cpu_percent.unwrap_or_default(),
        limits.processes.unwrap_or_default(),
        mebibytes(limits.home_bytes)
    );
    let sandbox = if stdio.trusted { Cell::new(NO_SANDBOX, Style::Bad) } else { Cell::new("yes", Style::Good) };
    let fields = fields
        .with("Sandbox", sandbox)
        .with("Environment", stdio.env_names.join(", "))
        .with("Opened", stdio.open.iter().map(opened).collect::<Vec<_>>().join(", "))
        .with("Network", if stdio.network { "yes" } else { "no" })
        .with("Limits", limits);
    let Some(process) = &server.process else { return fields.with("Process", "has not run yet") };
    let state = if process.running {
        format!("runs, {} processes, {} MiB", process.processes, process.memory_bytes >> 20)
    } else {
        "does not run; the next call starts it".to_owned()
    };
    fields
        .with("Process", state)
        .with("Started", time(process.started_at.as_ref(), out))
        .with("Starts", process.starts.to_string())
        .with("Last end", process.last_exit.as_str())
}

/// The last lines of a program, below all else.
fn last_lines(server: &pb::Server) -> String {
    let lines = server.process.as_ref().map_or(&[][..], |process| &process.stderr);
    let shown: String = lines.iter().map(|line| format!("  {}\n", super::safe::line(line))).collect();
    if shown.is_empty() { shown } else { format!("\nIt wrote last:\n{shown}") }
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
        table.row([server.name.as_str().into(), state(server), server.tool_count.to_string().into(), place(server)]);
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
        Some(Transport::Stdio(_)) | None => String::new(),
    };
    let place_name = if matches!(server.transport, Some(Transport::Stdio(_))) { "Program" } else { "URL" };
    let named = [status.server_name.as_str(), status.server_version.as_str()].join(" ");
    let fields = Fields::default()
        .with("Name", server.name.as_str())
        .with("Id", server.id.as_str())
        .with("Description", server.description.as_str())
        .with(place_name, place(server))
        .with("Headers", header_names);
    let fields = program(fields, server, out)
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
        .with("Changed", time(server.updated_at.as_ref(), out));
    fields.render("", out.colour) + &last_lines(server)
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
