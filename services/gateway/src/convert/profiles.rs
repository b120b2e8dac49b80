//! Profiles.

use gatehouse_proto::gateway::v1;

use super::{Change, page, timestamp};
use crate::{
    error::Error,
    registry::{
        check::Fields,
        page::List,
        profile::{self, MOST_SERVERS, Member, MemberRef, NewProfile, Profile, ProfileChange},
        text,
    },
};

/// A checked `ListProfilesRequest`.
#[derive(Debug)]
pub struct ListProfiles {
    /// Size of the page.
    pub size: usize,
    /// Name of the last profile of the page before.
    pub after: Option<String>,
}

impl ListProfiles {
    const LIST: List<'static> = List(&["profiles"]);

    /// The token of the page after this profile.
    pub fn token(last: &Profile) -> String {
        Self::LIST.token(&[&last.name])
    }
}

impl TryFrom<v1::ListProfilesRequest> for ListProfiles {
    type Error = Error;

    fn try_from(request: v1::ListProfilesRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let (size, key) = page::<1>(&mut fields, request.page_size, &request.page_token, &Self::LIST);
        fields.finish(Self { size, after: key.map(|[name]| name) })
    }
}

fn members(fields: &mut Fields, field: &str, given: Vec<v1::ProfileServer>) -> Vec<MemberRef> {
    let given = given.into_iter().map(|member| (member.server, member.only_tools, member.tools)).collect();
    profile::members(fields, field, given)
}

impl TryFrom<v1::CreateProfileRequest> for NewProfile {
    type Error = Error;

    fn try_from(request: v1::CreateProfileRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let new = Self {
            request_id: fields.take("request_id", text::request_id(&request.request_id)),
            name: fields.take("name", profile::name(&request.name)),
            description: fields.take("description", text::description(&request.description)),
            servers: members(&mut fields, "servers", request.servers),
        };
        fields.finish(new)
    }
}

impl TryFrom<v1::UpdateProfileRequest> for Change<ProfileChange> {
    type Error = Error;

    fn try_from(request: v1::UpdateProfileRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let key = fields.take("profile", text::lookup(&request.profile));
        if request.remove_servers.len() > MOST_SERVERS {
            fields.wrong("remove_servers", format!("takes at most {MOST_SERVERS} servers"));
        }
        let mut remove_servers = Vec::new();
        for (place, server) in request.remove_servers.iter().take(MOST_SERVERS).enumerate() {
            remove_servers.push(fields.take(&format!("remove_servers[{place}]"), text::lookup(server)));
        }
        let change = ProfileChange {
            name: fields.take_some("name", request.name, |name| profile::name(&name)),
            description: fields.take_some("description", request.description, |words| text::description(&words)),
            set_servers: members(&mut fields, "set_servers", request.set_servers),
            remove_servers,
        };
        fields.finish(Self { key, change })
    }
}

impl From<Profile> for v1::Profile {
    fn from(profile: Profile) -> Self {
        Self {
            id: profile.id.to_string(),
            name: profile.name,
            description: profile.description,
            servers: profile.servers.into_iter().map(v1::ProfileServer::from).collect(),
            created_at: Some(timestamp(profile.created_at)),
            updated_at: Some(timestamp(profile.updated_at)),
        }
    }
}

impl From<Member> for v1::ProfileServer {
    fn from(member: Member) -> Self {
        let only_tools = member.tools.is_some();
        Self { server: member.server, tools: member.tools.unwrap_or_default(), only_tools }
    }
}
