//! Servers that are programs: what they are, and what they may use.

use std::{collections::HashMap, path::Path};

use clap::Args;
use gatehouse_proto::gateway::v1 as pb;
use secrecy::{ExposeSecret as _, SecretString};

use super::failure::Failure;

/// Options of a program.
#[derive(Debug, Default, Args)]
pub(crate) struct Program {
    /// The server is a program, which stands after `--`; Gatehouse runs it in a sandbox
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Variable of its environment; other users of this machine can see a value given here: prefer the next two for secrets
    #[arg(long = "env", value_name = "NAME=VALUE")]
    env_plain: Vec<SecretString>,
    /// Variable of its environment whose value is in a variable of this shell, of the same name unless another is given
    #[arg(long = "env-env", value_name = "NAME[=VARIABLE]")]
    env_variables: Vec<String>,
    /// Variable of its environment whose value is in a file; a line feed at its end is not part of it
    #[arg(long = "env-file", value_name = "NAME=FILE")]
    env_files: Vec<String>,
    /// File or folder that it may read
    #[arg(long, value_name = "PATH")]
    open: Vec<String>,
    /// File or folder that it may read and write
    #[arg(long, value_name = "PATH")]
    open_write: Vec<String>,
    /// It may use the network: all of it, this machine's own services among it
    #[arg(long)]
    network: bool,
    /// Run it WITHOUT a sandbox: it may do whatever Gatehouse's own user may
    #[arg(long)]
    trusted: bool,
    /// Memory that it may use, such as 512M or 2G [server's default: 2G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<i64>,
    /// CPU that it may use, in percent of one core [server's default: 200]
    #[arg(long, value_name = "PERCENT")]
    cpu: Option<i32>,
    /// Processes and threads that it may have [server's default: 512]
    #[arg(long, value_name = "NUMBER")]
    processes: Option<i32>,
    /// What its home may hold, such as 4G [server's default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    home: Option<i64>,
    /// The program and its arguments, after `--`; they are no place for secrets
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

impl Program {
    /// Whether anything here was given.
    pub(crate) fn is_given(&self) -> bool {
        self.stdio || !self.command.is_empty()
    }

    /// Fails when options of a program were given for a server that is none.
    pub(crate) fn refuse_stray(&self) -> Result<(), Failure> {
        let options = !self.open.is_empty() || !self.open_write.is_empty() || self.network || self.trusted;
        let limits = self.memory.is_some() || self.cpu.is_some() || self.processes.is_some() || self.home.is_some();
        let env = !self.env_plain.is_empty() || !self.env_variables.is_empty() || !self.env_files.is_empty();
        if options || limits || env {
            return Err(
                Failure::usage("the program is missing").next("it stands at the end: `… --stdio -- PROGRAM ARGUMENTS`")
            );
        }
        Ok(())
    }

    /// The program.
    pub(crate) fn stdio(&self) -> Result<pb::Stdio, Failure> {
        let Some((program, args)) = self.command.split_first() else {
            return Err(Failure::usage("--stdio takes a program")
                .next("it stands at the end: `… --stdio -- PROGRAM ARGUMENTS`"));
        };
        let open = |paths: &[String], write| -> Vec<pb::OpenedPath> {
            paths.iter().map(|path| pb::OpenedPath { path: path.clone(), write }).collect()
        };
        Ok(pb::Stdio {
            program: program.clone(),
            args: args.to_vec(),
            env_names: Vec::new(),
            open: [open(&self.open, false), open(&self.open_write, true)].concat(),
            network: self.network,
            trusted: self.trusted,
            limits: Some(pb::StdioLimits {
                memory_bytes: self.memory,
                cpu_percent: self.cpu,
                processes: self.processes,
                home_bytes: self.home,
                ..pb::StdioLimits::default()
            }),
        })
    }

    /// Its environment, read from where it is. A failure never shows a value.
    pub(crate) fn env(&self) -> Result<HashMap<String, String>, Failure> {
        let mut env = HashMap::new();
        for text in &self.env_plain {
            let (name, value) =
                text.expose_secret().split_once('=').ok_or_else(|| Failure::usage("--env takes `NAME=VALUE`"))?;
            add(&mut env, name, value)?;
        }
        for text in &self.env_variables {
            let (name, variable) = text.split_once('=').unwrap_or((text, text));
            let value = std::env::var(variable)
                .map_err(|_| Failure::usage(&format!("the variable {variable} for `{name}` is not set")))?;
            add(&mut env, name, &value)?;
        }
        for text in &self.env_files {
            let (name, file) = text.split_once('=').ok_or_else(|| Failure::usage("--env-file takes `NAME=FILE`"))?;
            let file = Path::new(file);
            let value = std::fs::read_to_string(file).map_err(|error| Failure::file("read", file, &error))?;
            add(&mut env, name, value.strip_suffix('\n').unwrap_or(&value))?;
        }
        Ok(env)
    }
}

fn add(env: &mut HashMap<String, String>, name: &str, value: &str) -> Result<(), Failure> {
    if env.insert(name.to_owned(), value.to_owned()).is_some() {
        return Err(Failure::usage(&format!("the variable `{name}` is given twice")));
    }
    Ok(())
}

/// A size in bytes, with K, M, G or T for powers of 1,024.
fn size(text: &str) -> Result<i64, String> {
    let words = || "takes a size such as 512M or 2G".to_owned();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(words()),
    };
    let number: i64 = digits.parse().map_err(|_| words())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_is_in_bytes() {
        for (text, bytes) in [("1", 1), ("512M", 512 << 20), ("2g", 2 << 30), ("1KiB", 1024)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "G", "1X", "-1", "0", "1.5G", "9999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_variable_is_given_once_and_no_failure_shows_a_value() {
        let plain = |texts: &[&str]| Program {
            env_plain: texts.iter().map(|text| SecretString::from(*text)).collect(),
            ..Program::default()
        };
        assert_eq!(
            plain(&["A=b=c", "E="]).env().unwrap(),
            HashMap::from([("A".into(), "b=c".into()), ("E".into(), String::new())])
        );
        for wrong in [plain(&["hidden"]), plain(&["A=hidden", "A=hidden"])] {
            assert!(!wrong.env().unwrap_err().text(false).contains("hidden"));
        }
    }
}
