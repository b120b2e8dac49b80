//! The rules that hold for the project as a whole.

use std::{collections::BTreeSet, path::Path, process::Command};

use super::rules::File;

/// Every service has these, so that having read one, a reader knows all.
const SKELETON: [&str; 4] = ["main.rs", "lib.rs", "config.rs", "error.rs"];
/// The services; each is a crate of its own that knows none of the others.
const SERVICES: [&str; 4] = ["gateway", "interaction", "oauth", "task-poller"];

/// The text files of the project, as git sees them: what is tracked, and what is new and not ignored.
pub(crate) fn files(root: &Path) -> Vec<File> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .expect("git lists the files");
    assert!(listing.status.success(), "{}", String::from_utf8_lossy(&listing.stderr));
    let listing = String::from_utf8(listing.stdout).expect("paths are UTF-8");
    // Made by tools, or the words of others.
    let foreign = [".lock", "package-lock.json", "LICENSE", ".png"];
    let is_ours = |path: &&str| !path.is_empty() && !foreign.iter().any(|ending| path.ends_with(ending));
    listing
        .split('\0')
        .filter(is_ours)
        .filter_map(|path| Some(File { path: path.to_owned(), text: std::fs::read_to_string(root.join(path)).ok()? }))
        .collect()
}

/// What the skeleton of a service lacks.
pub(crate) fn skeleton(paths: &BTreeSet<String>) -> Vec<String> {
    let wanted = SERVICES.iter().flat_map(|service| SKELETON.map(|file| format!("services/{service}/src/{file}")));
    wanted.filter(|path| !paths.contains(path)).map(|path| format!("{path}: every service has one")).collect()
}

/// Dependencies between crates that must not be.
pub(crate) fn dependencies(manifest: &File) -> Vec<String> {
    let Some(folder) = manifest.path.strip_suffix("/Cargo.toml") else { return Vec::new() };
    let forbidden: Vec<String> = match folder.split_once('/') {
        Some(("services", "gatehouse")) => Vec::new(),
        Some(("services", own)) => {
            SERVICES.iter().filter(|&&other| other != own).map(|other| format!("gatehouse-{other}")).collect()
        }
        Some(("shared", "types")) => ["tokio", "tonic", "prost", "sqlx"].map(str::to_owned).to_vec(),
        Some(("shared", _)) => SERVICES.iter().map(|service| format!("gatehouse-{service}")).collect(),
        _ => Vec::new(),
    };
    let declares =
        |line: &str, name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    forbidden
        .iter()
        .filter(|name| manifest.text.lines().any(|line| declares(line, name)))
        .map(|name| format!("{}: must not depend on {name}", manifest.path))
        .collect()
}

/// Names in the headings of docs/errors.md: "### `NAME`".
pub(crate) fn headings(errors: &str) -> BTreeSet<String> {
    errors.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).map(str::to_owned).collect()
}

/// Names of the rows of the error table.
pub(crate) fn reasons(table: &str) -> BTreeSet<String> {
    table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("row(Reason::")?.split('"').nth(1))
        .map(str::to_owned)
        .collect()
}

/// Reasons that the comment of `TestStep.reason` names.
pub(crate) fn step_reasons(proto: &str) -> BTreeSet<String> {
    let comment = proto.split("  string message = 4;").nth(1).and_then(|rest| rest.split("string reason = 5;").next());
    let is_reason = |text: &&str| text.len() > 3 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    comment.unwrap_or_default().split('`').filter(is_reason).map(str::to_owned).collect()
}

/// Names in the table `VARIABLES` of the configuration: the first text of each row.
pub(crate) fn variables(config: &str) -> BTreeSet<String> {
    let table = config.split("const VARIABLES").nth(1).and_then(|rest| rest.split("\n];").next()).unwrap_or_default();
    let first = |row: &str| row.trim_start().strip_prefix('"')?.split('"').next().map(str::to_owned);
    table.split("\n    (").skip(1).filter_map(first).collect()
}
