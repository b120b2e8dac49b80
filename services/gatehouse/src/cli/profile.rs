//! `gatehouse profile`: which servers and tools sessions may use.

use clap::{Args, Subcommand};
use gatehouse_proto::gateway::v1 as pb;
use serde_json::json;

use super::{
    Context, convert,
    failure::{Code, Failure},
    grpc::pages,
    nearest::{Noun, named},
    output::{Answer, Out},
    safe,
    server_view::time,
    table::{Fields, Table},
};

/// Subcommands of `profile`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a profile
    #[command(
        after_help = "Example:\n  gatehouse profile add shop --server orders --server crm:find_customer,get_customer"
    )]
    Add(Add),
    /// List the profiles
    List,
    /// Show one profile
    Show(One),
    /// Change a profile
    #[command(after_help = "Example:\n  gatehouse profile update shop --server docs --remove-server crm")]
    Update(Update),
    /// Remove a profile that no session uses
    Remove(One),
}

/// One profile.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// Name or id of the profile
    profile: String,
}

/// Arguments of `profile add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name: 1 to 64 of a-z, 0-9, `_` and `-`
    name: String,
    /// Server with all its tools, or only with those after the colon
    #[arg(long = "server", value_name = "NAME[:TOOL,TOOL…]", value_parser = server)]
    servers: Vec<pb::ProfileServer>,
    /// Words for people
    #[arg(long, default_value = "", hide_default_value = true)]
    description: String,
}

/// Arguments of `profile update`.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Name or id of the profile
    profile: String,
    /// New name
    #[arg(long)]
    name: Option<String>,
    /// Words for people
    #[arg(long)]
    description: Option<String>,
    /// Server to add or to replace, with all its tools, or only with those after the colon
    #[arg(long = "server", value_name = "NAME[:TOOL,TOOL…]", value_parser = server)]
    servers: Vec<pb::ProfileServer>,
    /// Server to take out
    #[arg(long = "remove-server", value_name = "NAME")]
    remove: Vec<String>,
}

/// Reads `NAME` (all tools) or `NAME:tool1,tool2` (only those).
fn server(text: &str) -> Result<pb::ProfileServer, String> {
    let (name, tools) = text.split_once(':').map_or((text, None), |(name, tools)| (name, Some(tools)));
    if name.trim().is_empty() {
        return Err("takes the name of a server".to_owned());
    }
    let listed = tools.unwrap_or_default().split(',').map(str::trim).filter(|tool| !tool.is_empty());
    let listed: Vec<String> = listed.map(str::to_owned).collect();
    if tools.is_some() && listed.is_empty() {
        return Err("takes names of tools after the colon; without the colon all tools are meant".to_owned());
    }
    Ok(pb::ProfileServer { server: name.trim().to_owned(), tools: listed, only_tools: tools.is_some() })
}

/// Runs one of them.
pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer, Failure> {
    match command {
        Command::Add(add) => self::add(add, context).await,
        Command::List => list(context).await,
        Command::Show(one) => show(&one.profile, context).await,
        Command::Update(update) => self::update(update, context).await,
        Command::Remove(one) => remove(&one.profile, context).await,
    }
}

async fn add(add: Add, context: &Context) -> Result<Answer, Failure> {
    let used: Vec<String> = add.servers.iter().map(|server| server.server.clone()).collect();
    let used: Vec<(Noun, &str)> = used.iter().map(|server| (Noun::Server, server.as_str())).collect();
    let request = pb::CreateProfileRequest {
        request_id: String::new(),
        name: add.name,
        description: add.description,
        servers: add.servers,
    };
    let mut profiles = context.client.profiles();
    let response = named(context, context.client.answer(profiles.create_profile(request)), &used).await?;
    let text = response.profile.as_ref().map(|profile| one(profile, &context.out)).unwrap_or_default();
    Ok(Answer::new(text, &convert::json("CreateProfileResponse", &response)?))
}

async fn list(context: &Context) -> Result<Answer, Failure> {
    let client = &context.client;
    let page = |page_token| async move {
        let request = pb::ListProfilesRequest { page_size: 500, page_token };
        let response = client.answer(client.profiles().list_profiles(request)).await?;
        Ok((response.profiles, response.next_page_token))
    };
    let (profiles, _) = pages(None, page).await?;
    let mut table = Table::new(&["NAME", "SERVERS", "DESCRIPTION"]);
    for profile in &profiles {
        let servers: Vec<&str> = profile.servers.iter().map(|server| server.server.as_str()).collect();
        table.row([profile.name.as_str().into(), servers.join(", ").into(), profile.description.as_str().into()]);
    }
    let text = if profiles.is_empty() {
        "There is no profile. `gatehouse profile add NAME --server SERVER` makes one.\n".to_owned()
    } else {
        table.render(context.out.colour)
    };
    Ok(Answer::new(text, &convert::json_list("profiles", "Profile", &profiles)?))
}

async fn show(profile: &str, context: &Context) -> Result<Answer, Failure> {
    let mut profiles = context.client.profiles();
    let answer = context.client.answer(profiles.get_profile(pb::GetProfileRequest { profile: profile.to_owned() }));
    let response = named(context, answer, &[(Noun::Profile, profile)]).await?;
    let text = response.profile.as_ref().map(|profile| one(profile, &context.out)).unwrap_or_default();
    Ok(Answer::new(text, &convert::json("GetProfileResponse", &response)?))
}

async fn update(update: Update, context: &Context) -> Result<Answer, Failure> {
    let named_servers: Vec<String> =
        update.servers.iter().map(|server| server.server.clone()).chain(update.remove.iter().cloned()).collect();
    let profile = update.profile.clone();
    let request = pb::UpdateProfileRequest {
        profile: update.profile,
        name: update.name,
        description: update.description,
        set_servers: update.servers,
        remove_servers: update.remove,
    };
    if request == (pb::UpdateProfileRequest { profile: profile.clone(), ..pb::UpdateProfileRequest::default() }) {
        let next = "`gatehouse profile update --help` shows what can be";
        return Err(Failure::usage("there is nothing to change").next(next));
    }
    let mut used = vec![(Noun::Profile, profile.as_str())];
    used.extend(named_servers.iter().map(|server| (Noun::Server, server.as_str())));
    let mut profiles = context.client.profiles();
    let response = named(context, context.client.answer(profiles.update_profile(request)), &used).await?;
    let text = response.profile.as_ref().map(|profile| one(profile, &context.out)).unwrap_or_default();
    Ok(Answer::new(text, &convert::json("UpdateProfileResponse", &response)?))
}

async fn remove(profile: &str, context: &Context) -> Result<Answer, Failure> {
    let mut profiles = context.client.profiles();
    let answer =
        context.client.answer(profiles.delete_profile(pb::DeleteProfileRequest { profile: profile.to_owned() }));
    let removed = named(context, answer, &[(Noun::Profile, profile)]).await;
    removed.map_err(|failure| match failure.code {
        Code::FailedPrecondition => {
            failure.next(format!("`gatehouse session list --profile {profile}` shows who uses it"))
        }
        _ => failure,
    })?;
    Ok(Answer::new(format!("Removed {}.\n", safe::line(profile)), &json!({ "removed": true })))
}

fn one(profile: &pb::Profile, out: &Out) -> String {
    let mut fields = Fields::default()
        .with("Name", profile.name.as_str())
        .with("Id", profile.id.as_str())
        .with("Description", profile.description.as_str())
        .with("Made", time(profile.created_at.as_ref(), out))
        .with("Changed", time(profile.updated_at.as_ref(), out));
    for server in &profile.servers {
        let tools = if server.only_tools { server.tools.join(", ") } else { "all tools".to_owned() };
        fields =
            fields.with("Server", format!("{}: {}", server.server, if tools.is_empty() { "no tools" } else { &tools }));
    }
    fields.render("", out.colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_comes_with_all_its_tools_or_with_those_after_the_colon() {
        let all = server("orders").unwrap();
        assert_eq!((all.server.as_str(), all.tools.len(), all.only_tools), ("orders", 0, false));
        let some = server("crm:find, get").unwrap();
        assert_eq!((some.tools, some.only_tools), (vec!["find".to_owned(), "get".to_owned()], true));
        assert!(server("crm:").is_err() && server(":a").is_err());
    }
}
