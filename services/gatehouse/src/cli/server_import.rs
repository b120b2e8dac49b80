//! `gatehouse server import`: registers the servers of files that people have.

use std::{collections::HashMap, fmt::Write as _};

use gatehouse_proto::gateway::v1 as pb;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{
    Context, convert,
    failure::{Code, FAILED, Failure, OK, SKIPPED},
    import::{self, Entry, Found, Named, shown_url},
    output::Answer,
    safe,
    server::{self, Import},
    table::{Cell, Style, Table},
};

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Added,
    Updated,
    Skipped,
    Failed,
}

impl Did {
    fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Added | Self::Updated => Style::Good,
            Self::Skipped => Style::Warn,
            Self::Failed => Style::Bad,
        }
    }
}

/// One line of the report.
struct Line {
    did: Did,
    name: String,
    source: String,
    url: String,
    notes: Vec<String>,
}

/// Imports what can be, and says what became of each entry.
pub(crate) async fn run(import: &Import, context: &Context) -> Result<Answer, Failure> {
    let mut entries = Vec::new();
    let mut sources = Vec::new();
    for file in &import.files {
        let text = std::fs::read_to_string(file).map_err(|error| Failure::file("read", file, &error))?;
        let found = import::parse(&file.to_string_lossy(), &text, &|name| std::env::var(name).ok());
        let found = found.map_err(|why| {
            Failure::new(Code::File, format!("{} cannot be imported: {why}", file.display()))
                .next("`gatehouse server import --help` names the files that can be")
        })?;
        let source = |entry: &Entry| format!("{}{}", file.display(), place(entry));
        sources.extend(found.iter().map(source));
        entries.extend(found);
    }
    let existing: Vec<String> = server::all(context).await?.into_iter().map(|server| server.name).collect();
    let names = import::assign(&entries, &import.prefix);
    let mut lines = Vec::new();
    for ((entry, named), source) in entries.iter().zip(names).zip(sources) {
        lines.push(one(entry, named, source, import, &existing, context).await?);
    }
    Ok(report(&lines, import.dry_run, context))
}

fn place(entry: &Entry) -> String {
    if entry.place.is_empty() { String::new() } else { format!(" ({})", entry.place) }
}

async fn one(
    entry: &Entry,
    named: Named,
    source: String,
    import: &Import,
    existing: &[String],
    context: &Context,
) -> Result<Line, Failure> {
    let mut line = Line { did: Did::Skipped, name: named.name, source, url: String::new(), notes: Vec::new() };
    let found = match &entry.outcome {
        Ok(found) => found,
        Err(reason) => {
            line.name.clone_from(&entry.name);
            line.notes.push(reason.clone());
            return Ok(line);
        }
    };
    line.url = shown_url(found.url.expose_secret());
    line.notes.extend(found.notes.iter().cloned());
    let present = existing.iter().find(|name| import::same(name, &line.name));
    let done = match present {
        Some(present) if !import.update => {
            line.notes.push(format!("`{present}` is registered already; --update changes it"));
            return Ok(line);
        }
        Some(present) => {
            line.did = Did::Updated;
            line.name.clone_from(present);
            if import.dry_run { Ok(()) } else { update(present, found, context).await }
        }
        None => {
            line.did = Did::Added;
            line.notes.extend(Some(named.change).filter(|change| !change.is_empty()));
            if import.dry_run { Ok(()) } else { add(&line.name, found, context).await }
        }
    };
    match done {
        Ok(()) => {}
        // What is wrong with the whole connection would be wrong with every entry.
        Err(failure)
            if !matches!(failure.code, Code::InvalidArgument | Code::AlreadyExists | Code::FailedPrecondition) =>
        {
            return Err(failure);
        }
        Err(failure) => {
            line.did = Did::Failed;
            line.notes.push(failure.message);
            line.notes.extend(failure.fields.into_iter().map(|(field, words)| format!("{field}: {words}")));
        }
    }
    Ok(line)
}

fn headers(found: &Found) -> HashMap<String, String> {
    let header = |(name, value): &(String, secrecy::SecretString)| (name.clone(), value.expose_secret().to_owned());
    found.headers.iter().map(header).collect()
}

async fn add(name: &str, found: &Found, context: &Context) -> Result<(), Failure> {
    let request = pb::CreateServerRequest {
        name: name.to_owned(),
        url: found.url.expose_secret().to_owned(),
        headers: headers(found),
        connect_timeout: convert::duration(found.connect_timeout)?,
        request_timeout: convert::duration(found.request_timeout)?,
        disabled: found.disabled,
        ..pb::CreateServerRequest::default()
    };
    context.client.answer(context.client.servers().create_server(request)).await.map(drop)
}

async fn update(name: &str, found: &Found, context: &Context) -> Result<(), Failure> {
    let request = pb::UpdateServerRequest {
        server: name.to_owned(),
        url: Some(found.url.expose_secret().to_owned()),
        set_headers: headers(found),
        connect_timeout: convert::duration(found.connect_timeout)?,
        request_timeout: convert::duration(found.request_timeout)?,
        enabled: Some(!found.disabled),
        ..pb::UpdateServerRequest::default()
    };
    context.client.answer(context.client.servers().update_server(request)).await.map(drop)
}

fn report(lines: &[Line], dry_run: bool, context: &Context) -> Answer {
    let out = &context.out;
    let mut table = Table::new(&["", "NAME", "URL", "FROM"]);
    let mut notes = String::new();
    for line in lines {
        let did = Cell::new(line.did.word(), line.did.style());
        table.row([did, line.name.as_str().into(), line.url.as_str().into(), line.source.as_str().into()]);
        for note in &line.notes {
            // Writing to a String does not fail.
            let _ = writeln!(notes, "  {}: {}", safe::line(&line.name), safe::line(note));
        }
    }
    let of = |did: Did| lines.iter().filter(|line| line.did == did).count();
    let counts = [Did::Added, Did::Updated, Did::Skipped, Did::Failed].map(|did| format!("{} {}", of(did), did.word()));
    let mut text = if lines.is_empty() { "No server is in there.\n".to_owned() } else { table.render(out.colour) };
    text.push_str(&notes);
    let _ = writeln!(text, "{}{}.", if dry_run { "Nothing was done. It would be: " } else { "" }, counts.join(", "));
    let entry = |line: &Line| {
        let (result, Line { name, url, source, notes, .. }) = (line.did.word(), line);
        json!({ "result": result, "name": name, "url": url, "source": source, "notes": notes })
    };
    let document = json!({ "dryRun": dry_run, "entries": lines.iter().map(entry).collect::<Vec<Value>>() });
    let exit = match (of(Did::Failed), of(Did::Skipped)) {
        (0, 0) => OK,
        (0, _) => SKIPPED,
        _ => FAILED,
    };
    Answer::new(text, &document).exit(exit)
}
