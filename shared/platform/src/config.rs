//! Configuration from the environment and a file, with every error reported at once.
//!
//! A value is asked for by the name of its environment variable. In the TOML file the same value has the name in lower
//! case without `GATEHOUSE_`: `GATEHOUSE_OPS_LISTEN` is `ops_listen`, `DATABASE_URL` is `database_url`. The environment
//! wins. A variable that is set to nothing counts as not set. A getter that finds a wrong value notes it and goes on
//! with the default, so that [`Source::finish`] can report all of them together; nobody uses a configuration before
//! that.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use secrecy::SecretString;

/// Every variable there is, with what it takes. A key of the file that is not among them is reported.
pub const VARIABLES: &[(&str, &str)] = &[
    ("DATABASE_LISTEN_URL", "a Postgres URL that reaches the server directly, without a pooler between"),
    ("DATABASE_URL", "a Postgres URL, such as postgres://user:password@host:5432/gatehouse"),
    ("GATEHOUSE_ADMIN_KEY", "the first admin API key: `ghk_` and at least 32 characters of `A-Z a-z 0-9 _ -`"),
    ("GATEHOUSE_ADMIN_KEY_FILE", "path of a file with the first admin API key"),
    ("GATEHOUSE_DATA", "path of the data folder of `gatehouse up`"),
    ("GATEHOUSE_EDGE_ALLOWED_HOSTS", "host names that engines may use in `Host`, separated by commas"),
    ("GATEHOUSE_EDGE_ALLOWED_ORIGINS", "web origins that may call the edge, separated by commas"),
    ("GATEHOUSE_EDGE_LISTEN", "an address and port, such as 127.0.0.1:7300"),
    ("GATEHOUSE_GRPC_LISTEN", "an address and port, such as 127.0.0.1:7301"),
    ("GATEHOUSE_GRPC_TLS_CA", "path of a PEM file with the authority of the other services' certificates"),
    ("GATEHOUSE_GRPC_TLS_CERT", "path of a PEM file with the server's certificate chain"),
    ("GATEHOUSE_GRPC_TLS_CLIENT_CA", "path of a PEM file with the authority of client certificates"),
    ("GATEHOUSE_GRPC_TLS_KEY", "path of a PEM file with the server's private key"),
    ("GATEHOUSE_INTERACTION_LISTEN", "an address and port, such as 127.0.0.1:7303"),
    (
        "GATEHOUSE_INTERACTION_URL",
        "the URL of interaction's gRPC: http on loopback, such as http://127.0.0.1:7303, else https",
    ),
    (
        "GATEHOUSE_KEYRING",
        "`id:base64key`, more of them separated by commas; each key is 32 bytes; the first one seals",
    ),
    ("GATEHOUSE_KEYRING_FILE", "path of a file with the keyring"),
    ("GATEHOUSE_LOG", "a log filter, such as `info` or `info,gatehouse_gateway=debug`"),
    ("GATEHOUSE_LOG_FORMAT", "`json` or `human`"),
    ("GATEHOUSE_OAUTH_LISTEN", "an address and port, such as 127.0.0.1:7304"),
    ("GATEHOUSE_OPS_LISTEN", "an address and port, such as 127.0.0.1:7310"),
    ("GATEHOUSE_PUBLIC_URL", "the base URL that engines are told, such as https://gatehouse.example.com"),
    ("GATEHOUSE_SERVICE_TOKEN", "the token that services share: at least 32 characters"),
    ("GATEHOUSE_SERVICE_TOKEN_FILE", "path of a file with the token that services share"),
    ("GATEHOUSE_STDIO_HOME", "path of the folder that holds the homes of programs that are servers"),
    ("GATEHOUSE_STDIO_SANDBOX", "`bubblewrap`, `landlock-too` (where bubblewrap does not work) or `landlock`"),
    ("GATEHOUSE_TASK_POLLER_LISTEN", "an address and port, such as 127.0.0.1:7302"),
    ("GATEHOUSE_UPSTREAM_ALLOW", "networks and host names of upstreams that may be private, separated by commas"),
    ("GATEHOUSE_UPSTREAM_CA", "path of a PEM file with certificate authorities of upstreams, besides the system's"),
    ("GATEHOUSE_WORKSPACE_ROOT", "path of the folder that holds the sessions' workspaces, or `s3://bucket/prefix`"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "the URL of an OTLP collector (gRPC), such as http://127.0.0.1:4317"),
];

/// The variable of the file's path. Not a key of the file itself.
pub const CONFIG_FILE: &str = "GATEHOUSE_CONFIG";

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The variable, or the file's key or path.
    pub name: String,
    /// What is wrong and what it takes. Never the value.
    pub message: String,
}

/// Everything that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.words())]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    fn words(&self) -> String {
        let mut lines = vec!["the configuration is wrong:".to_owned()];
        lines.extend(self.0.iter().map(|problem| format!("  {}: {}", problem.name, problem.message)));
        lines.join("\n")
    }
}

/// Where configuration comes from. Does not print its values.
#[derive(Default)]
pub struct Source {
    environment: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    problems: Mutex<Vec<Problem>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.environment.keys().chain(self.file.keys())).finish()
    }
}

impl Source {
    /// The process's environment and the file: that of `--config`, else that of `GATEHOUSE_CONFIG`, else none.
    pub fn from_process(config_file: Option<&Path>) -> Self {
        // Variables that are no Unicode cannot be ours.
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut source = Self::from_pairs(environment);
        let file = config_file.map(Path::to_owned).or_else(|| source.environment.get(CONFIG_FILE).map(PathBuf::from));
        if let Some(path) = file {
            source.read_file(&path);
        }
        source
    }

    /// Exactly these variables.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let environment = pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        Self { environment, ..Self::default() }
    }

    /// Sets a variable, over whatever was there.
    pub fn set(&mut self, variable: &str, value: impl Into<String>) {
        self.environment.insert(variable.to_owned(), value.into());
    }

    fn read_file(&mut self, path: &Path) {
        match std::fs::read_to_string(path) {
            Ok(text) => self.add_toml(&path.display().to_string(), &text),
            Err(error) => self.note(path.display(), format!("cannot be read: {error}")),
        }
    }

    /// Adds the keys of a TOML text; `name` is what problems with it are reported under.
    pub fn add_toml(&mut self, name: &str, text: &str) {
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            // Not the error's own words: they quote the line, which may hold a secret.
            Err(error) => {
                let at = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
                return self.note(name, format!("is not TOML (line {at})"));
            }
        };
        for (key, value) in table {
            if !VARIABLES.iter().any(|(variable, _)| file_key(variable) == key) {
                self.note(format!("{name}: {key}"), "there is no such key");
                continue;
            }
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(flag) => flag.to_string(),
                toml::Value::Array(items) if items.iter().all(toml::Value::is_str) => {
                    items.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join(",")
                }
                _ => {
                    self.note(format!("{name}: {key}"), "takes a text, a number, or a list of texts");
                    continue;
                }
            };
            if !text.is_empty() {
                self.file.insert(key, text);
            }
        }
    }

    /// The text of a variable, when it is set.
    pub fn text(&self, variable: &str) -> Option<&str> {
        debug_assert!(VARIABLES.iter().any(|(known, _)| *known == variable), "{variable} is not in VARIABLES");
        self.environment.get(variable).or_else(|| self.file.get(&file_key(variable))).map(String::as_str)
    }

    /// A value, when it is set. A wrong one is noted.
    pub fn optional<T: FromStr>(&self, variable: &str) -> Option<T> {
        let parsed = self.text(variable)?.trim().parse().ok();
        if parsed.is_none() {
            self.refuse(variable);
        }
        parsed
    }

    /// A value, or `default` when it is not set. A wrong one is noted.
    pub fn value<T: FromStr>(&self, variable: &str, default: T) -> T {
        self.optional(variable).unwrap_or(default)
    }

    /// A list separated by commas; empty when it is not set. A wrong entry is noted.
    pub fn list<T: FromStr>(&self, variable: &str) -> Vec<T> {
        let entries =
            self.text(variable).unwrap_or_default().split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let parsed: Result<Vec<T>, T::Err> = entries.map(str::parse).collect();
        parsed.unwrap_or_else(|_| {
            self.refuse(variable);
            Vec::new()
        })
    }

    /// A secret from the variable, or from the file that `<variable>_FILE` names, without white space at its ends.
    pub fn secret(&self, variable: &str) -> Option<SecretString> {
        if let Some(text) = self.text(variable) {
            return Some(SecretString::from(text.trim()));
        }
        let file_variable = format!("{variable}_FILE");
        self.file_text(&file_variable).map(|text| SecretString::from(text.trim()))
    }

    /// The contents of the file that the variable names, when it is set. A file that cannot be read is noted.
    pub fn file_text(&self, variable: &str) -> Option<String> {
        let path = self.text(variable)?;
        match std::fs::read_to_string(path) {
            Ok(text) => Some(text),
            Err(error) => {
                self.note(variable, format!("{path} cannot be read: {error}"));
                None
            }
        }
    }

    /// Notes that a variable is needed and not set.
    pub fn missing(&self, variable: &str) {
        self.note(variable, format!("is not set; it takes {}", takes(variable)));
    }

    /// Notes that a variable has a wrong value.
    pub fn refuse(&self, variable: &str) {
        self.note(variable, format!("has a wrong value; it takes {}", takes(variable)));
    }

    /// Notes anything else that is wrong. `message` must not hold the value of a secret.
    pub fn note(&self, name: impl fmt::Display, message: impl Into<String>) {
        let problem = Problem { name: name.to_string(), message: message.into() };
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// Everything that was noted, as one error.
    pub fn finish(&self) -> Result<(), Problems> {
        let problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems.clone())) }
    }
}

fn file_key(variable: &str) -> String {
    variable.strip_prefix("GATEHOUSE_").unwrap_or(variable).to_ascii_lowercase()
}

fn takes(variable: &str) -> &'static str {
    VARIABLES.iter().find(|(known, _)| *known == variable).map_or("another value", |(_, takes)| takes)
}

#[cfg(test)]
mod tests;
