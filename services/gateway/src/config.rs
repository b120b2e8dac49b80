//! What the service is told.

use std::{net::SocketAddr, path::PathBuf};

use gatehouse_outbound::Guard;
use gatehouse_platform::{
    config::Source,
    grpc::{self, peer},
};
use gatehouse_stdio::Allowed;
use gatehouse_workspace::Location;
use url::Url;

const DEFAULT_EDGE_PORT: u16 = 7300;
const DEFAULT_GRPC_PORT: u16 = 7301;
const DEFAULT_INTERACTION_PORT: u16 = 7303;

/// The configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where engines connect: `GATEHOUSE_EDGE_LISTEN`, default 127.0.0.1:7300.
    pub edge_listen: SocketAddr,
    /// Where gRPC listens: `GATEHOUSE_GRPC_LISTEN`, default 127.0.0.1:7301.
    pub grpc: grpc::Config,
    /// The interaction service: `GATEHOUSE_INTERACTION_URL`, default `http://127.0.0.1:7303`.
    pub interaction: peer::Config,
    /// Base URL that engines are shown: `GATEHOUSE_PUBLIC_URL`, default the edge's address.
    pub public_url: Option<Url>,
    /// Where workspaces are, a folder or `s3://bucket/prefix`: `GATEHOUSE_WORKSPACE_ROOT`.
    pub workspace_root: Option<Location>,
    /// Which addresses servers may be at: `GATEHOUSE_UPSTREAM_ALLOW` opens networks and hosts besides the public ones.
    pub guard: Guard,
    /// Certificate authorities for servers besides the system's, as PEM: the file at `GATEHOUSE_UPSTREAM_CA`.
    pub upstream_ca: Option<String>,
    /// Where programs that are servers have their homes: the folder `GATEHOUSE_STDIO_HOME`. Without it no program is run.
    pub stdio_home: Option<PathBuf>,
    /// Which sandboxes are good enough for programs: `GATEHOUSE_STDIO_SANDBOX`, default `bubblewrap`.
    pub stdio_sandbox: Allowed,
    /// Host names that the edge answers to: `GATEHOUSE_EDGE_ALLOWED_HOSTS`, besides loopback and the public URL's.
    pub allowed_hosts: Vec<String>,
    /// Origins that browsers may call the edge from: `GATEHOUSE_EDGE_ALLOWED_ORIGINS`.
    pub allowed_origins: Vec<String>,
}

impl Config {
    /// From the source; whatever is wrong is noted there.
    pub fn load(source: &Source) -> Self {
        let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let allow: Vec<String> = source.list("GATEHOUSE_UPSTREAM_ALLOW");
        let guard = Guard::new(allow.iter().map(String::as_str)).unwrap_or_else(|wrong| {
            source.note("GATEHOUSE_UPSTREAM_ALLOW", wrong.to_string());
            Guard::default()
        });
        let public_url: Option<Url> = source.optional("GATEHOUSE_PUBLIC_URL");
        if public_url.as_ref().is_some_and(|url| !matches!(url.scheme(), "http" | "https") || url.host_str().is_none())
        {
            source.note("GATEHOUSE_PUBLIC_URL", "takes an http or https URL");
        }
        Self {
            edge_listen: source.value("GATEHOUSE_EDGE_LISTEN", loopback(DEFAULT_EDGE_PORT)),
            grpc: grpc::Config::load(source, "GATEHOUSE_GRPC_LISTEN", loopback(DEFAULT_GRPC_PORT)),
            interaction: peer::Config::load(source, "GATEHOUSE_INTERACTION_URL", loopback(DEFAULT_INTERACTION_PORT)),
            public_url,
            workspace_root: source.optional("GATEHOUSE_WORKSPACE_ROOT"),
            guard,
            stdio_home: source.optional("GATEHOUSE_STDIO_HOME"),
            stdio_sandbox: source.value("GATEHOUSE_STDIO_SANDBOX", Allowed::default()),
            upstream_ca: source.file_text("GATEHOUSE_UPSTREAM_CA"),
            allowed_hosts: source.list("GATEHOUSE_EDGE_ALLOWED_HOSTS"),
            allowed_origins: source.list("GATEHOUSE_EDGE_ALLOWED_ORIGINS"),
        }
    }
}
