//! Options of every administrator's command.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use secrecy::SecretString;

use super::when;

/// Where the server is, how to sign in, and how to answer.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection and output")]
pub(crate) struct Globals {
    /// gRPC endpoint of the gateway, such as `http://127.0.0.1:7301`; else that of the data folder
    #[arg(long, global = true, env = "GATEHOUSE_ENDPOINT", value_name = "URL", hide_env_values = true)]
    pub(crate) endpoint: Option<String>,
    /// gRPC endpoint of interaction, for `cards` and `answer`; else that of the data folder
    #[arg(long, global = true, env = "GATEHOUSE_INTERACTION_ENDPOINT", value_name = "URL", hide_env_values = true)]
    pub(crate) interaction_endpoint: Option<String>,
    /// API key; other users of this machine can see one given here: prefer `GATEHOUSE_API_KEY` or --key-file
    // Its own id: a global argument shares the namespace of every subcommand's arguments.
    #[arg(
        id = "api_key",
        long = "key",
        global = true,
        env = "GATEHOUSE_API_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    pub(crate) key: Option<SecretString>,
    /// File that holds the API key
    #[arg(long, global = true, env = "GATEHOUSE_API_KEY_FILE", value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Data folder of `gatehouse up`; else ./.gatehouse, else `$XDG_DATA_HOME/gatehouse`
    #[arg(long, global = true, env = "GATEHOUSE_DATA", value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// PEM file with the certificate authority of an https endpoint; else those of the system
    #[arg(long, global = true, env = "GATEHOUSE_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Longest wait for an answer, such as `30s`; a call of a tool waits without end unless this is given
    #[arg(long, global = true, value_name = "TIME", value_parser = when::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Print one JSON document instead of text; errors too, to standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The whole command line, for completions; set by `main`. Without it only the administrator's part is completed.
    #[arg(skip)]
    pub(crate) root: Option<fn() -> clap::Command>,
}
