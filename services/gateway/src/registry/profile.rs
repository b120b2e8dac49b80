//! Pure. Profiles: which servers, and which of their tools, a session may use.

use gatehouse_types::{ProfileId, ServerId};
use time::OffsetDateTime;

use super::{check::Fields, digest::Digest, text};

/// Most characters of a name.
pub const NAME_CHARS: usize = 64;
/// Most servers of a profile.
pub const MOST_SERVERS: usize = 200;
/// Most tools of a server that a profile names.
pub const MOST_TOOLS: usize = 1_000;

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its id.
    pub id: ProfileId,
    /// Its name.
    pub name: String,
    /// Text for people.
    pub description: String,
    /// Its servers, in the order of their names.
    pub servers: Vec<Member>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it last changed.
    pub updated_at: OffsetDateTime,
}

/// A server in a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The server.
    pub id: ServerId,
    /// Its name.
    pub server: String,
    /// Tools that are allowed; `None` is all.
    pub tools: Option<Vec<String>>,
}

/// A server in a request, by id or name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRef {
    /// Id or name.
    pub server: String,
    /// Tools that are allowed; `None` is all.
    pub tools: Option<Vec<String>>,
}

/// A profile to make. Every field is checked, except that the servers exist.
#[derive(Debug, Clone)]
pub struct NewProfile {
    /// Makes the request idempotent.
    pub request_id: Option<String>,
    /// See [`name`].
    pub name: String,
    /// Text for people.
    pub description: String,
    /// Its servers.
    pub servers: Vec<MemberRef>,
}

impl NewProfile {
    /// What the request asks for.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Digest::new("profile").text(&self.name).text(&self.description);
        for member in &self.servers {
            digest = digest.text(&member.server);
            digest = match &member.tools {
                None => digest.number(0),
                Some(tools) => {
                    let counted = digest.number(1).number(tools.len() as u128);
                    tools.iter().fold(counted, |digest, tool| digest.text(tool))
                }
            };
        }
        digest.finish()
    }
}

/// A change to a profile. `None` leaves what is there.
#[derive(Debug, Clone, Default)]
pub struct ProfileChange {
    /// See [`name`].
    pub name: Option<String>,
    /// Text for people.
    pub description: Option<String>,
    /// Servers to add or to replace.
    pub set_servers: Vec<MemberRef>,
    /// Servers to take out, by id or name.
    pub remove_servers: Vec<String>,
}

impl ProfileChange {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.description.is_none()
            && self.set_servers.is_empty()
            && self.remove_servers.is_empty()
    }
}

/// A profile's name: `^[a-z0-9_-]{1,64}$`.
pub fn name(given: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    if !(1..=NAME_CHARS).contains(&given.len()) || !given.bytes().all(allowed) {
        return Err(format!("takes 1 to {NAME_CHARS} characters of `a-z 0-9 _ -`"));
    }
    Ok(given.to_owned())
}

/// Checks the servers of a request: each an id or name, whether all of its tools are meant, and the tools.
pub fn members(fields: &mut Fields, field: &str, given: Vec<(String, bool, Vec<String>)>) -> Vec<MemberRef> {
    if given.len() > MOST_SERVERS {
        fields.wrong(field, format!("takes at most {MOST_SERVERS} servers"));
        return Vec::new();
    }
    let mut checked = Vec::with_capacity(given.len());
    for (place, (server, only_tools, tools)) in given.into_iter().enumerate() {
        let server = fields.take(&format!("{field}[{place}].server"), text::lookup(&server));
        let tools = only_tools.then(|| tool_names(fields, &format!("{field}[{place}].tools"), tools));
        checked.push(MemberRef { server, tools });
    }
    checked
}

fn tool_names(fields: &mut Fields, field: &str, given: Vec<String>) -> Vec<String> {
    if given.len() > MOST_TOOLS {
        fields.wrong(field, format!("takes at most {MOST_TOOLS} tools"));
        return Vec::new();
    }
    let mut checked: Vec<String> = Vec::with_capacity(given.len());
    let mut seen = std::collections::HashSet::new();
    for (place, tool) in given.into_iter().enumerate() {
        let tool = fields.take(&format!("{field}[{place}]"), text::tool_name(&tool));
        if !tool.is_empty() && seen.insert(tool.clone()) {
            checked.push(tool);
        }
    }
    checked
}

/// The members after a change, or what is wrong with it. `set` and `remove` are resolved already.
pub fn merged(now: Vec<Member>, set: Vec<Member>, remove: &[ServerId]) -> Result<Vec<Member>, String> {
    let replaced = |id: ServerId| remove.contains(&id) || set.iter().any(|member| member.id == id);
    let mut members: Vec<Member> = now.into_iter().filter(|member| !replaced(member.id)).collect();
    members.extend(set);
    members.sort_by(|one, other| one.server.cmp(&other.server));
    if members.len() > MOST_SERVERS {
        return Err(format!("would give the profile {} servers; it takes at most {MOST_SERVERS}", members.len()));
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn member(server: &str, tools: Option<&[&str]>) -> Member {
        let tools = tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        Member { id: ServerId::new(), server: server.to_owned(), tools }
    }

    #[test]
    fn every_wrong_server_and_tool_is_named_by_its_place() {
        let mut fields = Fields::new();
        let given = vec![
            ("good".to_owned(), false, vec!["ignored\n".to_owned()]),
            (String::new(), false, Vec::new()),
            ("x".to_owned(), true, vec!["a".to_owned(), String::new(), "b\0".to_owned(), "a".to_owned()]),
        ];
        let checked = members(&mut fields, "servers", given);
        let Err(Error::Invalid(wrong)) = fields.finish(checked) else { panic!("passed") };
        let named: Vec<&str> = wrong.iter().map(|wrong| wrong.field.as_str()).collect();
        assert_eq!(named, ["servers[1].server", "servers[2].tools[1]", "servers[2].tools[2]"]);
    }

    #[test]
    fn no_tools_at_all_differs_from_all_tools() {
        let digest = |tools| {
            let servers = vec![MemberRef { server: "a".to_owned(), tools }];
            let name = "p".to_owned();
            NewProfile { request_id: None, name, description: String::new(), servers }.digest()
        };
        assert_ne!(digest(None), digest(Some(Vec::new())));
    }

    #[test]
    fn a_change_replaces_adds_and_takes_out() {
        let (keep, replace, gone) = (member("keep", None), member("replace", None), member("gone", None));
        let replacement = Member { tools: Some(Vec::new()), ..replace.clone() };
        let added = member("added", Some(&["t"]));
        let now = vec![keep.clone(), replace, gone.clone()];
        let after = merged(now, vec![replacement.clone(), added.clone()], &[gone.id]).unwrap();
        assert_eq!(after, [added, keep, replacement]);
    }

    #[test]
    fn a_profile_never_grows_beyond_its_bound() {
        let many: Vec<Member> = (0..MOST_SERVERS).map(|place| member(&place.to_string(), None)).collect();
        assert!(merged(many.clone(), Vec::new(), &[]).is_ok());
        assert!(merged(many, vec![member("one-more", None)], &[]).is_err());
    }
}
