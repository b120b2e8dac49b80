//! Servers.

use gatehouse_proto::gateway::v1;

use super::{Change, duration, length, page, stdio, timestamp};
use crate::{
    audit::mask::{MOST_RULES, MaskRule},
    error::Error,
    registry::{
        check::Fields,
        header::{self, Headers},
        page::List,
        server::{self, NewServer, Server, ServerChange, ServerState, Status},
        text,
    },
};

/// A checked `ListServersRequest`.
#[derive(Debug)]
pub struct ListServers {
    /// Size of the page.
    pub size: usize,
    /// Name of the last server of the page before.
    pub after: Option<String>,
}

impl ListServers {
    const LIST: List<'static> = List(&["servers"]);

    /// The token of the page after this server.
    pub fn token(last: &Server) -> String {
        Self::LIST.token(&[&last.name])
    }
}

impl TryFrom<v1::ListServersRequest> for ListServers {
    type Error = Error;

    fn try_from(request: v1::ListServersRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let (size, key) = page::<1>(&mut fields, request.page_size, &request.page_token, &Self::LIST);
        fields.finish(Self { size, after: key.map(|[name]| name) })
    }
}

impl TryFrom<v1::CreateServerRequest> for NewServer {
    type Error = Error;

    fn try_from(request: v1::CreateServerRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let connect = fields.take_some("connect_timeout", request.connect_timeout, |given| {
            length(given).and_then(server::connect_timeout)
        });
        let wait = fields.take_some("request_timeout", request.request_timeout, |given| {
            length(given).and_then(server::request_timeout)
        });
        let concurrency = fields.take_some("max_concurrency", request.max_concurrency, server::concurrency);
        let (url, stdio, headers) = match request.stdio {
            None => {
                let url = fields.take("url", server::url(&request.url));
                (url, None, Headers::checked(&mut fields, "headers", request.headers))
            }
            Some(command) => {
                if !request.url.is_empty() || !request.headers.is_empty() {
                    fields.wrong("stdio", "is a program, which has no `url` and no `headers`");
                }
                let (stdio, env) = stdio::command(&mut fields, command);
                (String::new(), Some(stdio), env)
            }
        };
        let new = Self {
            request_id: fields.take("request_id", text::request_id(&request.request_id)),
            name: fields.take("name", server::name(&request.name)),
            description: fields.take("description", text::description(&request.description)),
            url,
            stdio,
            headers,
            connect_timeout: connect.unwrap_or(server::DEFAULT_CONNECT_TIMEOUT),
            request_timeout: wait.unwrap_or(server::DEFAULT_REQUEST_TIMEOUT),
            max_concurrency: concurrency.unwrap_or(server::DEFAULT_CONCURRENCY),
            enabled: !request.disabled,
            mask_rules: mask_rules(&mut fields, "mask_rules", request.mask_rules),
        };
        fields.finish(new)
    }
}

impl TryFrom<v1::UpdateServerRequest> for Change<ServerChange> {
    type Error = Error;

    fn try_from(request: v1::UpdateServerRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let key = fields.take("server", text::lookup(&request.server));
        let variables = !request.set_env.is_empty() || !request.remove_env.is_empty();
        let (set_headers, remove_headers) = if variables {
            if !request.set_headers.is_empty() || !request.remove_headers.is_empty() {
                fields.wrong("set_env", "is for programs, which have no headers");
            }
            let set = Headers::checked_variables(&mut fields, "set_env", request.set_env);
            removed(&mut fields, "remove_env", &request.remove_env, &set, crate::registry::stdio::check_variable);
            (set, request.remove_env)
        } else {
            let set = Headers::checked(&mut fields, "set_headers", request.set_headers);
            removed(&mut fields, "remove_headers", &request.remove_headers, &set, header::check_name);
            (set, request.remove_headers)
        };
        let change = ServerChange {
            name: fields.take_some("name", request.name, |name| server::name(&name)),
            description: fields.take_some("description", request.description, |words| text::description(&words)),
            url: fields.take_some("url", request.url, |url| server::url(&url)),
            stdio: request.stdio.map(|given| stdio::program(&mut fields, "stdio", given)),
            variables,
            set_headers,
            remove_headers,
            connect_timeout: fields.take_some("connect_timeout", request.connect_timeout, |given| {
                length(given).and_then(server::connect_timeout)
            }),
            request_timeout: fields.take_some("request_timeout", request.request_timeout, |given| {
                length(given).and_then(server::request_timeout)
            }),
            max_concurrency: fields.take_some("max_concurrency", request.max_concurrency, server::concurrency),
            enabled: request.enabled,
            add_mask_rules: mask_rules(&mut fields, "add_mask_rules", request.add_mask_rules),
            remove_mask_rules: rules_to_remove(&mut fields, request.remove_mask_rules),
        };
        fields.finish(Self { key, change })
    }
}

/// Notes names to remove that are wrong, or that the same request sets.
fn removed(fields: &mut Fields, field: &str, names: &[String], set: &Headers, check: fn(&str) -> Result<(), String>) {
    if names.len() > header::MOST {
        fields.wrong(field, format!("takes at most {} names", header::MOST));
    }
    for (place, name) in names.iter().enumerate().take(header::MOST) {
        let path = format!("{field}[{place}]");
        if let Err(words) = check(name) {
            fields.wrong(path, words);
        } else if set.names().any(|set| set.eq_ignore_ascii_case(name)) {
            fields.wrong(path, "is set by the same request");
        }
    }
}

fn mask_rules(fields: &mut Fields, field: &str, rules: Vec<String>) -> Vec<String> {
    if rules.len() > MOST_RULES {
        fields.wrong(field, format!("takes at most {MOST_RULES} rules"));
        return Vec::new();
    }
    let mut kept = Vec::with_capacity(rules.len());
    for (place, rule) in rules.into_iter().enumerate() {
        if let Err(words) = MaskRule::parse(&rule) {
            fields.wrong(format!("{field}[{place}]"), words);
        }
        if !kept.contains(&rule) {
            kept.push(rule);
        }
    }
    kept
}

/// A stored rule that is not valid any more must be removable: only the number is bounded.
fn rules_to_remove(fields: &mut Fields, rules: Vec<String>) -> Vec<String> {
    if rules.len() > MOST_RULES {
        fields.wrong("remove_mask_rules", format!("takes at most {MOST_RULES} rules"));
    }
    rules
}

impl From<Server> for v1::Server {
    fn from(server: Server) -> Self {
        let transport = match server.stdio {
            None => {
                let http = v1::StreamableHttp { url: server.url, header_names: server.header_names };
                v1::server::Transport::StreamableHttp(http)
            }
            Some(stdio) => v1::server::Transport::Stdio(super::stdio::shown(stdio, server.header_names)),
        };
        Self {
            id: server.id.to_string(),
            name: server.name,
            description: server.description,
            enabled: server.enabled,
            transport: Some(transport),
            connect_timeout: Some(duration(server.connect_timeout)),
            request_timeout: Some(duration(server.request_timeout)),
            // The rules hold both numbers far below the bound of the type.
            max_concurrency: i32::try_from(server.max_concurrency).unwrap_or(i32::MAX),
            tool_count: i32::try_from(server.tool_count).unwrap_or(i32::MAX),
            status: Some(server.status.into()),
            tools_updated_at: server.tools_updated_at.map(timestamp),
            created_at: Some(timestamp(server.created_at)),
            updated_at: Some(timestamp(server.updated_at)),
            mask_rules: server.mask_rules,
            // Added by who knows of processes.
            process: None,
        }
    }
}

impl From<Status> for v1::ServerStatus {
    fn from(status: Status) -> Self {
        let state = match status.state {
            ServerState::Unknown => v1::ServerState::Unknown,
            ServerState::Healthy => v1::ServerState::Healthy,
            ServerState::Failing => v1::ServerState::Failing,
        };
        Self {
            state: state.into(),
            message: status.message,
            since: status.since.map(timestamp),
            checked_at: status.checked_at.map(timestamp),
            protocol_version: status.protocol_version,
            server_name: status.server_name,
            server_version: status.server_version,
            capabilities_json: status.capabilities,
        }
    }
}
