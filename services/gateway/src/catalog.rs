//! Pure: what is registered, as the path of a call needs it, and what a session is offered of it.
//!
//! A [`Catalog`] is built from the tables when the configuration epoch has moved, and then only read: `tools/list` and the
//! way from an exposed name to server, tool and hints cost no query.

pub mod clean;
pub mod naming;
pub mod structure;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use gatehouse_types::{Hints, PermissionMode, Policy, ProfileId, ServerId, Settings, hints::DeclaredHints};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use self::{
    clean::{Bounds, Unusable},
    naming::{Names, exposed_names, plain_name},
};
use crate::{audit::mask::MaskRules, registry::stdio::Stdio, results::schema::OutputSchema};

/// A registered server.
#[derive(Clone)]
pub struct Server {
    /// Its id.
    pub id: ServerId,
    /// Its name.
    pub name: String,
    /// Whether it offers tools and gets calls.
    pub enabled: bool,
    /// The MCP endpoint; empty for a program.
    pub url: String,
    /// The program, when it is one.
    pub stdio: Option<Stdio>,
    /// Fixed headers, or the environment of a program; the values are secret.
    pub headers: Vec<(String, SecretString)>,
    /// Time for connecting and `initialize`.
    pub connect_timeout: Duration,
    /// Time for one request without progress.
    pub request_timeout: Duration,
    /// Requests in flight at once.
    pub max_concurrency: u32,
    /// When its tools were last listed; `None` when never.
    pub listed_at: Option<OffsetDateTime>,
    /// What is wrong with it, for people; empty when nothing is known to be.
    pub problem: String,
    /// What is masked in the audit and on cards.
    pub mask_rules: MaskRules,
    /// See [`Server::config_hash`].
    pub hash: OnceLock<[u8; 32]>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl Server {
    /// A hash of all that a connection depends on: a changed registration never meets an old connection or MCP session.
    pub fn config_hash(&self) -> [u8; 32] {
        *self.hash.get_or_init(|| self.hash_config())
    }

    /// A server that is only tried, with the defaults.
    pub fn unregistered(url: String, stdio: Option<Stdio>, headers: Vec<(String, SecretString)>) -> Self {
        Self {
            id: ServerId::new(),
            name: String::new(),
            enabled: true,
            url,
            stdio,
            headers,
            connect_timeout: Duration::from_secs(20),
            request_timeout: Duration::from_mins(1),
            max_concurrency: 1,
            listed_at: None,
            problem: String::new(),
            mask_rules: MaskRules::default(),
            hash: OnceLock::new(),
        }
    }

    fn hash_config(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.url.as_bytes());
        hash.update(self.stdio.as_ref().map(Stdio::to_stored).unwrap_or_default());
        for (name, value) in &self.headers {
            for part in [name.as_str(), value.expose_secret()] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part.as_bytes());
            }
        }
        hash.finalize().into()
    }
}

/// A cached tool as it is in the table.
#[derive(Debug, Clone)]
pub struct ToolRow {
    /// Its server.
    pub server: ServerId,
    /// Its name at the server.
    pub name: String,
    /// The definition as the server sent it.
    pub definition: Arc<str>,
    /// SHA-256 of the definition, in hexadecimal.
    pub fingerprint: String,
    /// Hints that an admin set.
    pub overrides: DeclaredHints,
    /// The policy that an admin chose.
    pub policy: Option<Policy>,
}

/// A profile.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its id.
    pub id: ProfileId,
    /// Its servers, in the order of their names; with the allowed tools, or `None` for all.
    pub servers: Vec<(ServerId, Option<HashSet<String>>)>,
}

/// A tool as engines may be offered it.
#[derive(Debug)]
pub struct Tool {
    /// Its server.
    pub server: Arc<Server>,
    /// Its name at the server.
    pub name: String,
    /// Its name for engines.
    pub exposed: String,
    /// Display name, as the server gave it; its name when it gave none.
    pub title: String,
    /// SHA-256 of the definition as the server sent it, in hexadecimal.
    pub fingerprint: String,
    /// The hints that count.
    pub hints: Hints,
    /// The policy that counts.
    pub policy: Policy,
    /// The definition for engines (a JSON object), or why engines are not offered it.
    pub definition: Result<String, Unusable>,
    /// What its structured results are checked against.
    pub output: Option<OutputSchema>,
}

/// What one profile offers in one mode.
#[derive(Debug)]
pub struct Offer {
    /// The tools, in the order of servers and of their lists.
    pub tools: Vec<Arc<Tool>>,
    /// `"tools":[…]`, ready to be sent.
    pub list: Bytes,
    /// Hash of the list, in hexadecimal: the tools version.
    pub version: String,
    /// Servers that offer nothing now, with the reason.
    pub unavailable: Vec<(String, String)>,
    names: Names<usize>,
}

/// Everything that is registered.
#[derive(Debug)]
pub struct Catalog {
    /// The configuration epoch that it was built at.
    pub epoch: i64,
    /// The settings.
    pub settings: Settings,
    /// The servers.
    pub servers: HashMap<ServerId, Arc<Server>>,
    all_mask_rules: MaskRules,
    profiles: HashMap<ProfileId, Profile>,
    tools: HashMap<ServerId, Vec<Arc<Tool>>>,
    offers: HashMap<(ProfileId, bool), OnceLock<Arc<Offer>>>,
}

impl Catalog {
    /// Builds the catalog. Tools come in the order of their servers' lists.
    pub fn new(
        epoch: i64,
        settings: Settings,
        servers: Vec<Server>,
        tools: Vec<ToolRow>,
        profiles: Vec<Profile>,
    ) -> Self {
        let servers: HashMap<ServerId, Arc<Server>> =
            servers.into_iter().map(|server| (server.id, Arc::new(server))).collect();
        let known: Vec<(&Arc<Server>, ToolRow)> =
            tools.into_iter().filter_map(|tool| servers.get(&tool.server).map(|server| (server, tool))).collect();
        let pairs: Vec<(&str, &str)> =
            known.iter().map(|(server, tool)| (server.name.as_str(), tool.name.as_str())).collect();
        let names = exposed_names(&pairs, settings.tool_name_chars as usize);
        let bounds = Bounds::of(&settings);
        let mut by_server: HashMap<ServerId, Vec<Arc<Tool>>> = HashMap::new();
        for ((server, row), exposed) in known.into_iter().zip(names) {
            let tool = build_tool(Arc::clone(server), row, exposed, &bounds);
            by_server.entry(server.id).or_default().push(Arc::new(tool));
        }
        let offers = profiles.iter().flat_map(|profile| [(profile.id, false), (profile.id, true)]);
        Self {
            epoch,
            settings,
            offers: offers.map(|key| (key, OnceLock::new())).collect(),
            profiles: profiles.into_iter().map(|profile| (profile.id, profile)).collect(),
            all_mask_rules: MaskRules::of_all(servers.values().map(|server| &server.mask_rules)),
            servers,
            tools: by_server,
        }
    }

    /// What a profile offers in a mode: never tools with [`Policy::Deny`]; in [`PermissionMode::ReadOnly`], only tools that are
    /// effectively read-only. Nothing for an unknown profile.
    pub fn offer(&self, profile: ProfileId, mode: PermissionMode) -> Option<&Arc<Offer>> {
        let read_only = mode == PermissionMode::ReadOnly;
        let offer = self.offers.get(&(profile, read_only))?;
        Some(offer.get_or_init(|| Arc::new(self.build_offer(profile, read_only))))
    }

    /// The servers of a profile that are switched on.
    pub fn servers_of(&self, profile: ProfileId) -> impl Iterator<Item = &Arc<Server>> {
        let servers = self.profiles.get(&profile).map(|profile| profile.servers.as_slice()).unwrap_or_default();
        servers.iter().filter_map(|(id, _)| self.servers.get(id)).filter(|server| server.enabled)
    }

    /// What is masked in a call: the rules of the tool's server; of a tool that is not known, those of all servers.
    pub fn mask_rules<'a>(&'a self, tool: Option<&'a Arc<Tool>>) -> &'a MaskRules {
        tool.map_or(&self.all_mask_rules, |tool| &tool.server.mask_rules)
    }

    /// A tool of a server, by its name there.
    pub fn tool(&self, server: ServerId, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(&server)?.iter().find(|tool| tool.name == name)
    }

    fn build_offer(&self, profile: ProfileId, read_only: bool) -> Offer {
        let mut tools = Vec::new();
        let mut unavailable = Vec::new();
        let most = self.settings.tool_name_chars as usize;
        let servers = self.profiles.get(&profile).map(|profile| profile.servers.as_slice()).unwrap_or_default();
        for (id, allowed) in servers {
            let Some(server) = self.servers.get(id) else { continue };
            if !server.enabled {
                unavailable.push((server.name.clone(), "it is switched off".to_owned()));
                continue;
            }
            if !server.problem.is_empty() {
                unavailable.push((server.name.clone(), server.problem.clone()));
            }
            let own = self.tools.get(id).map(Vec::as_slice).unwrap_or_default();
            let allowed = |tool: &&Arc<Tool>| allowed.as_ref().is_none_or(|names| names.contains(&tool.name));
            let usable = own.iter().filter(allowed).filter(|tool| tool.definition.is_ok());
            let usable = usable.filter(|tool| tool.policy != Policy::Deny);
            tools.extend(usable.filter(|tool| tool.hints.read_only || !read_only).cloned());
        }
        let mut names = Names::default();
        for (place, tool) in tools.iter().enumerate() {
            names.insert(tool.exposed.clone(), plain_name(&tool.server.name, &tool.name, most), place);
        }
        let list = render(&tools);
        let version = hex(&Sha256::digest(&list));
        Offer { tools, list, version, unavailable, names }
    }
}

impl Offer {
    /// The tool that a name stands for.
    pub fn find(&self, exposed: &str) -> Option<&Arc<Tool>> {
        self.names.get(exposed).and_then(|place| self.tools.get(*place))
    }
}

fn build_tool(server: Arc<Server>, row: ToolRow, exposed: String, bounds: &Bounds) -> Tool {
    let facts = clean::facts(&row.definition);
    let hints = Hints::effective(facts.declared, row.overrides);
    let policy = row.policy.unwrap_or_else(|| Policy::default_for(hints));
    let definition = clean::clean(&row.definition, &exposed, hints, bounds);
    let output = OutputSchema::of(&row.definition);
    let title = if facts.title.is_empty() { row.name.clone() } else { facts.title };
    Tool { server, name: row.name, exposed, title, fingerprint: row.fingerprint, hints, policy, definition, output }
}

fn render(tools: &[Arc<Tool>]) -> Bytes {
    let mut list = String::from("\"tools\":[");
    let definitions = tools.iter().filter_map(|tool| tool.definition.as_ref().ok());
    for (place, definition) in definitions.enumerate() {
        if place > 0 {
            list.push(',');
        }
        list.push_str(definition);
    }
    list.push(']');
    Bytes::from(list)
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests;
