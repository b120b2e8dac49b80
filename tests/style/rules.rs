//! The rules that hold for one file at a time.

use super::mask::{closing, code_only, line_of, words};

/// Longest file, in lines.
const FILE_LINES: usize = 400;
/// Longest function, in lines.
const FUNCTION_LINES: usize = 70;
/// Longest `main.rs` of a service, in lines.
const MAIN_LINES: usize = 20;

/// A file of the project, its path relative to the root.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    fn ends_with(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.ends_with(ending))
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.ends_with(&[".rs"])
    }

    fn is_shell(&self) -> bool {
        self.ends_with(&[".sh"]) || self.path == "dev" || self.path == ".ci/run"
    }

    /// A file that holds nothing but tests and what only they use.
    fn is_test(&self) -> bool {
        let path = format!("/{}", self.path);
        path.contains("/tests/") && !path.starts_with("/tests/bench/")
            || self.ends_with(&["/tests.rs", "_tests.rs", ".test.mjs"])
    }

    /// Whether any part of the path, without its ending, begins with one of `names`.
    fn has_part(&self, names: &[&str]) -> bool {
        self.path.split('/').any(|part| names.iter().any(|name| part.starts_with(name)))
    }

    fn is_under(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// Every breach of the rules in one file, as `path:line: what`.
pub(crate) fn check(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    let mut report = |line: usize, what: String| found.push(format!("{}:{line}: {what}", file.path));
    marks(file, &mut report);
    if file.is_rust() || file.is_shell() || file.ends_with(&[".ts", ".mjs", ".vue", ".py"]) {
        file_length(file, &mut report);
    }
    if file.is_rust() {
        let masked = code_only(&file.text);
        rust_functions(&masked, &mut report);
        attributes(&file.text, &masked, &mut report);
        waits(file, &masked, &mut report);
        layers(file, &masked, &mut report);
        crate_root(file, &mut report);
    } else {
        indented_functions(file, &mut report);
    }
    found
}

fn file_length(file: &File, report: &mut impl FnMut(usize, String)) {
    let lines = file.text.lines().count();
    if lines > FILE_LINES {
        report(lines, format!("the file has {lines} lines; {FILE_LINES} is the limit"));
    }
    let is_service_main = file.path.starts_with("services/") && file.path.ends_with("/src/main.rs");
    if is_service_main && lines > MAIN_LINES {
        report(lines, format!("main.rs has {lines} lines; {MAIN_LINES} is the limit"));
    }
}

/// Words and addresses that have no place in any file. They are put together here, so that this file is clean.
fn marks(file: &File, report: &mut impl FnMut(usize, String)) {
    let unfinished = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"]].map(|parts| parts.concat());
    let machine = ["root", "work", "home"].map(|folder| format!("/{folder}/"));
    let hosts = [
        ["registry.", "npmjs"],
        ["pypi", ".org"],
        ["crates.io", "-index"],
        ["static.", "crates.io"],
        ["python", "hosted"],
        ["deb.", "debian"],
    ];
    let hosts = hosts.map(|parts| parts.concat());
    for (number, line) in file.text.lines().enumerate() {
        for word in &unfinished {
            if words(line, word).next().is_some() {
                report(number + 1, format!("unfinished work is marked with {word}"));
            }
        }
        for folder in &machine {
            let stands_alone = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_.}$*".contains(c));
            if line.match_indices(folder.as_str()).any(|(at, _)| stands_alone(at)) {
                report(number + 1, format!("a path of one machine: {folder}"));
            }
        }
        for host in &hosts {
            if line.contains(host.as_str()) {
                report(number + 1, format!("the address of a package registry: {host}"));
            }
        }
    }
}

fn rust_functions(masked: &str, report: &mut impl FnMut(usize, String)) {
    for start in words(masked, "fn") {
        let Some(body) = body_of(masked, start) else { continue };
        let Some(end) = closing(masked, body) else { continue };
        let (first, last) = (line_of(masked, start), line_of(masked, end));
        if last - first + 1 > FUNCTION_LINES {
            report(first, format!("the function has {} lines; {FUNCTION_LINES} is the limit", last - first + 1));
        }
    }
}

/// Where the body of the function at `start` opens; none for a declaration or a function pointer type.
fn body_of(masked: &str, start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, c) in masked[start..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' if depth == 0 => return None,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(start + offset),
            ';' | ',' | '=' if depth == 0 && !masked[start + offset..].starts_with("=>") => return None,
            _ => {}
        }
    }
    None
}

/// Functions of shell, JavaScript and Python, told by their indentation.
fn indented_functions(file: &File, report: &mut impl FnMut(usize, String)) {
    let opens: &[&str] = match file.path.rsplit('.').next() {
        _ if file.is_shell() => &["() {"],
        Some("mjs" | "ts" | "vue") => &["function ", "=> {"],
        Some("py") => &["def "],
        _ => return,
    };
    let lines: Vec<&str> = file.text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    for (first, line) in lines.iter().enumerate() {
        if !opens.iter().any(|open| line.contains(open)) {
            continue;
        }
        let inside = |later: &&&str| later.trim().is_empty() || indent(later) > indent(line);
        let length = 1 + lines[first + 1..].iter().take_while(inside).count();
        if length > FUNCTION_LINES {
            report(first + 1, format!("the function has {length} lines; {FUNCTION_LINES} is the limit"));
        }
    }
}

fn attributes(text: &str, masked: &str, report: &mut impl FnMut(usize, String)) {
    for name in ["allow", "expect", "ignore"] {
        for at in words(masked, name) {
            let opening = masked[..at].trim_end();
            if !opening.ends_with("#[") && !opening.ends_with("#![") {
                continue;
            }
            let end = closing(masked, opening.len() - 1).unwrap_or(masked.len());
            if name == "ignore" {
                report(line_of(text, at), "a test is switched off".to_owned());
            } else if words(&masked[at..end], "reason").next().is_none() {
                report(line_of(text, at), format!("`{name}` without a reason"));
            }
        }
    }
}

/// Parts of the code that are compiled for tests only.
fn test_code(masked: &str) -> Vec<std::ops::Range<usize>> {
    let attribute = "#[cfg(test)]";
    let ends = |at: usize| {
        let item = at + attribute.len();
        let open = masked[item..].find(['{', ';']).map(|offset| item + offset)?;
        if masked[open..].starts_with('{') { closing(masked, open) } else { Some(open) }
    };
    masked.match_indices(attribute).map(|(at, _)| at..ends(at).unwrap_or(masked.len())).collect()
}

/// A test waits for an event, with a deadline, and never for a while.
fn waits(file: &File, masked: &str, report: &mut impl FnMut(usize, String)) {
    let tests = test_code(masked);
    for at in words(masked, "sleep") {
        let is_call = masked[at..].starts_with("sleep(") && !masked[..at].ends_with("fn ");
        if is_call && (file.is_test() || tests.iter().any(|range| range.contains(&at))) {
            report(line_of(masked, at), "a test sleeps".to_owned());
        }
    }
}

fn layers(file: &File, masked: &str, report: &mut impl FnMut(usize, String)) {
    let tests = test_code(masked);
    let in_tests = |at: &usize| file.is_test() || tests.iter().any(|range| range.contains(at));
    let mut only = |names: &[&str], allowed: bool, where_allowed: &str| {
        for name in names {
            if let Some(at) = words(masked, name).find(|at| !allowed && !in_tests(at)) {
                report(line_of(masked, at), format!("`{name}` is for {where_allowed} only"));
            }
        }
    };
    let bench = file.is_under(&["tests/bench/"]);
    let wire = bench
        || file.has_part(&["grpc", "convert", "peers"])
        || file.is_under(&["shared/proto/", "shared/platform/", "shared/testkit/"]);
    only(
        &["tonic", "tonic_health", "tonic_types", "prost", "prost_types"],
        wire,
        "grpc, convert, peers, shared/proto, shared/platform and shared/testkit",
    );
    let data = file.has_part(&["store"]) || file.is_under(&["shared/store/", "shared/platform/", "shared/testkit/"]);
    only(&["sqlx"], data, "store, shared/store, shared/platform and shared/testkit");
    let mcp = bench || file.is_under(&["services/gateway/", "services/oauth/"]);
    only(&["rmcp"], mcp, "the gateway and oauth");
    let pure = file.text.lines().any(|line| line.starts_with("//! Pure"));
    only(&["async", "await"], !pure, "files that are not marked pure");
}

/// Each crate says first what it is for.
fn crate_root(file: &File, report: &mut impl FnMut(usize, String)) {
    let is_root = file.ends_with(&["/src/lib.rs", "/src/main.rs"]) || file.path == "tests/style.rs";
    if is_root && !file.text.starts_with("//!") {
        report(1, "a crate opens with `//!`: what it is for".to_owned());
    }
}
