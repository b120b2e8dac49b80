//! `gatehouse files`: what the results of a session's calls were saved as.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use gatehouse_proto::gateway::v1::{self as pb, FileLocation, get_file_response::Part};

use super::{
    Context, convert,
    failure::{Code, Failure},
    grpc::pages,
    nearest::{Noun, named},
    output::{self, Answer, Out},
    server_view::time,
    table::{Cell, Style, Table},
    when,
};

/// `files SESSION` and its subcommands.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Files {
    #[command(subcommand)]
    command: Option<Command>,
    /// Id or external id of the session
    #[arg(required = true)]
    session: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

/// Subcommands of `files`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Fetch one file
    Get(Get),
}

/// Arguments of `files get`.
#[derive(Debug, Args)]
struct Get {
    /// Id or external id of the session
    session: String,
    /// Path of the file, as in the list
    path: String,
    /// Where to write it, `-` for standard output; default: its name, in this folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

impl Files {
    /// Runs it.
    pub(crate) async fn run(self, context: &Context) -> Result<Answer, Failure> {
        let limit = (!self.all).then_some(self.limit);
        match (self.command, self.session) {
            (Some(Command::Get(get)), _) => get.run(context).await,
            (None, Some(session)) => list(&session, limit, context).await,
            (None, None) => Err(Failure::usage("give the id or external id of a session")),
        }
    }
}

async fn list(session: &str, limit: Option<usize>, context: &Context) -> Result<Answer, Failure> {
    let client = &context.client;
    let page_size = limit.map_or(500, |limit| i32::try_from(limit.clamp(1, 500)).unwrap_or(500));
    let page = |page_token| async move {
        let request = pb::ListFilesRequest { session: session.to_owned(), page_size, page_token };
        let response = client.answer(client.files().list_files(request)).await?;
        Ok((response.files, response.next_page_token))
    };
    let (mut files, more) = named(context, pages(limit, page), &[(Noun::Session, session)]).await?;
    let is_cut = !more.is_empty() || limit.is_some_and(|limit| files.len() > limit);
    files.truncate(limit.unwrap_or(usize::MAX));
    let mut text = if files.is_empty() { "No files.\n".to_owned() } else { table(&files, &context.out) };
    if is_cut {
        text.push_str("There are more; --limit or --all shows them.\n");
    }
    let mut document = convert::json_list("files", "File", &files)?;
    document["more"] = is_cut.into();
    Ok(Answer::new(text, &document))
}

fn table(files: &[pb::File], out: &Out) -> String {
    let mut table = Table::new(&["TIME", "SERVER", "TOOL", "SIZE", "TYPE", "WHERE", "PATH"]);
    for file in files {
        let place = match file.location() {
            FileLocation::Unspecified => "",
            FileLocation::Workspace => "workspace",
            FileLocation::Platform => "platform",
        };
        table.row([
            time(file.created_at.as_ref(), out).into(),
            file.server.as_str().into(),
            file.tool.as_str().into(),
            u64::try_from(file.size_bytes).map(when::size).unwrap_or_default().into(),
            Cell::new(&file.media_type, Style::Dim),
            place.into(),
            file.path.as_str().into(),
        ]);
    }
    table.render(out.colour)
}

impl Get {
    async fn run(self, context: &Context) -> Result<Answer, Failure> {
        let out = match &self.out {
            Some(out) => out.clone(),
            None => default_name(&self.path)?,
        };
        if out.as_os_str() == "-" {
            return self.print(context).await;
        }
        let mut target = Target::open(&out, self.force)?;
        let file = self.fetch(context, |chunk| target.write(chunk).map(|()| true)).await?;
        target.keep()?;
        let size = u64::try_from(file.size_bytes).map(when::size).unwrap_or_default();
        let mut document = serde_json::json!({ "out": out.to_string_lossy() });
        document["file"] = convert::json("File", &file)?;
        let name = super::safe::line(&out.to_string_lossy());
        Ok(Answer::new(format!("Wrote {name} ({size}).\n"), &document))
    }

    async fn print(&self, context: &Context) -> Result<Answer, Failure> {
        if context.out.json {
            return Err(Failure::usage("--out - writes the file itself to standard output: leave --json out"));
        }
        if output::is_terminal() {
            return Err(Failure::usage("a file of a server could command this terminal")
                .next("write to a file, or into a pipe"));
        }
        self.fetch(context, output::bytes).await?;
        Ok(Answer::new(String::new(), &serde_json::Value::Null))
    }

    /// Gives each chunk to `write`, until that says that no more are wanted.
    async fn fetch(
        &self,
        context: &Context,
        mut write: impl FnMut(&[u8]) -> Result<bool, Failure>,
    ) -> Result<pb::File, Failure> {
        let client = context.client.endless();
        let request = pb::GetFileRequest { session: self.session.clone(), path: self.path.clone() };
        let asked = client.answer(client.files().get_file(request)).await.map_err(|failure| match failure.code {
            Code::NotFound => failure.next("`gatehouse files SESSION` shows what there is"),
            _ => failure,
        });
        let mut stream = asked?;
        let broken = |what: &str| Failure::new(Code::Internal, format!("the server {what}"));
        let Some(Part::File(file)) = client.next(&mut stream).await?.and_then(|message| message.part) else {
            return Err(broken("did not say which file it sends"));
        };
        let mut left = file.size_bytes;
        while let Some(message) = client.next(&mut stream).await? {
            let Some(Part::Chunk(chunk)) = message.part else { return Err(broken("sent something else than bytes")) };
            left = left.saturating_sub(i64::try_from(chunk.len()).unwrap_or(i64::MAX));
            if !write(&chunk)? {
                return Ok(file);
            }
        }
        if left == 0 { Ok(file) } else { Err(broken("sent another number of bytes than it said")) }
    }
}

/// The last part of the path. A server chose it, so it must be a plain name.
fn default_name(path: &str) -> Result<PathBuf, Failure> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_plain = !name.is_empty() && !name.starts_with(['.', '-']) && !name.contains(['\\', ':', '\0']);
    if is_plain { Ok(PathBuf::from(name)) } else { Err(Failure::usage("say with --out where to write the file")) }
}

/// A file that is being written: complete under its name, or not there.
struct Target {
    path: PathBuf,
    part: PathBuf,
    file: File,
    /// Whether the name was free, and is taken by an empty file until the end.
    reserved: bool,
    kept: bool,
}

impl Target {
    fn open(path: &Path, force: bool) -> Result<Self, Failure> {
        let failed = |error: &std::io::Error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Failure::new(Code::File, format!("{} is there already", path.display()))
                    .next("choose another name with --out, or replace it with --force")
            }
            _ => Failure::file("write", path, error),
        };
        let mut name = path.file_name().ok_or_else(|| Failure::usage("--out takes the name of a file"))?.to_owned();
        let create = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        if !force {
            create(path).map_err(|error| failed(&error))?;
        }
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        match create(&part) {
            Ok(file) => Ok(Self { path: path.to_owned(), part, file, reserved: !force, kept: false }),
            Err(error) => {
                if !force {
                    remove(path);
                }
                Err(Failure::file("write", &part, &error))
            }
        }
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        self.file.write_all(chunk).map_err(|error| Failure::file("write", &self.part, &error))
    }

    fn keep(mut self) -> Result<(), Failure> {
        let placed = self.file.sync_all().and_then(|()| fs::rename(&self.part, &self.path));
        placed.map_err(|error| Failure::file("write", &self.path, &error))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        remove(&self.part);
        if self.reserved {
            remove(&self.path);
        }
    }
}

/// Takes away what was begun. It fails only where nothing could be begun either.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_to_its_own_plain_name_unless_another_is_given() {
        assert_eq!(default_name(".agent/mcp/c/订单.pdf").unwrap(), PathBuf::from("订单.pdf"));
        for bad in ["", "a/", "a/..", "a/.bashrc", "a/-x", "a\\b", "c:x"] {
            assert!(default_name(bad).is_err(), "{bad}");
        }
    }
}
