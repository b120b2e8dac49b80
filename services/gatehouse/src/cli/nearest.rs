//! Names that come near to one that does not exist.

use gatehouse_proto::gateway::v1 as pb;

use super::{
    Context,
    failure::{Code, Failure},
    safe, server,
};

/// What a name names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noun<'a> {
    /// A registered server.
    Server,
    /// A tool of this server.
    Tool(&'a str),
    /// A profile.
    Profile,
    /// A session.
    Session,
    /// A tool as offered to this session.
    Offered(&'a str),
    /// An API key.
    Key,
}

/// Longest list that is searched for a near name; of servers all are.
const PAGE: i32 = 500;
/// Most names that are suggested.
const MAX_SUGGESTIONS: usize = 3;

/// Waits for an answer to a request that named things; when one does not exist, says what comes near to it.
pub(crate) async fn named<T>(
    context: &Context,
    answer: impl Future<Output = Result<T, Failure>>,
    used: &[(Noun<'_>, &str)],
) -> Result<T, Failure> {
    match answer.await {
        Err(failure) => Err(suggest(context, failure, used).await),
        done => done,
    }
}

/// Adds to a `NOT_FOUND` which of the `used` names does not exist, what comes near to it, and how to list them all.
async fn suggest(context: &Context, mut failure: Failure, used: &[(Noun<'_>, &str)]) -> Failure {
    if failure.code != Code::NotFound {
        return failure;
    }
    for (noun, name) in used {
        // The failure is told anyway; without a list there is only less to suggest.
        let names = names(context, *noun).await.unwrap_or_default();
        if names.iter().any(|other| other == name) {
            continue;
        }
        let near = near(name, &names);
        if !near.is_empty() {
            let near: Vec<String> = near.iter().map(|near| format!("`{}`", safe::line(near))).collect();
            failure = failure.next(format!("did you mean {}?", near.join(" or ")));
        }
        failure = failure.next(format!("`{}` shows what there is", list_command(*noun)));
    }
    failure
}

fn list_command(noun: Noun<'_>) -> String {
    match noun {
        Noun::Server => "gatehouse server list".to_owned(),
        Noun::Tool(server) => format!("gatehouse tools list {server}"),
        Noun::Profile => "gatehouse profile list".to_owned(),
        Noun::Session => "gatehouse session list".to_owned(),
        Noun::Offered(session) => format!("gatehouse tools list --session {session}"),
        Noun::Key => "gatehouse keys list".to_owned(),
    }
}

/// Names and ids: both are taken wherever one is asked for.
async fn names(context: &Context, noun: Noun<'_>) -> Result<Vec<String>, Failure> {
    let client = &context.client;
    let page_token = String::new();
    Ok(match noun {
        Noun::Server => server::all(context).await?.into_iter().flat_map(|server| [server.name, server.id]).collect(),
        Noun::Tool(server) => {
            let request =
                pb::ListToolsRequest { server: server.to_owned(), page_size: PAGE, page_token, risky_only: false };
            let tools = client.answer(client.tools().list_tools(request)).await?.tools;
            tools.into_iter().map(|tool| tool.name).collect()
        }
        Noun::Profile => {
            let request = pb::ListProfilesRequest { page_size: PAGE, page_token };
            let profiles = client.answer(client.profiles().list_profiles(request)).await?.profiles;
            profiles.into_iter().flat_map(|profile| [profile.name, profile.id]).collect()
        }
        Noun::Session => {
            let request = pb::ListSessionsRequest { page_size: PAGE, page_token, profile: String::new() };
            let sessions = client.answer(client.sessions().list_sessions(request)).await?.sessions;
            sessions.into_iter().flat_map(|session| [session.id, session.external_id]).collect()
        }
        Noun::Offered(session) => {
            let request = pb::ListOfferedToolsRequest { session: session.to_owned() };
            let tools = client.answer(client.calls().list_offered_tools(request)).await?.tools;
            tools.into_iter().map(|tool| tool.name).collect()
        }
        Noun::Key => {
            let request = pb::ListApiKeysRequest { page_size: PAGE, page_token };
            let keys = client.answer(client.keys().list_api_keys(request)).await?.api_keys;
            keys.into_iter().flat_map(|key| [key.name, key.id]).collect()
        }
    })
}

/// The names that are likely meant, the likeliest first.
pub(crate) fn near<'a>(name: &str, names: &'a [String]) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let score = |other: &String| {
        let lower = other.to_lowercase();
        let holds = wanted.chars().count() >= 3 && lower.contains(&wanted);
        if holds { 0.95 } else { strsim::jaro_winkler(&wanted, &lower) }
    };
    let mut scored: Vec<(f64, &str)> =
        names.iter().filter(|other| !other.is_empty()).map(|other| (score(other), other.as_str())).collect();
    scored.retain(|(score, _)| *score >= 0.8);
    scored.sort_by(|(one, left), (other, right)| other.total_cmp(one).then_with(|| left.cmp(right)));
    scored.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_the_misspelt_and_the_shortened_ones() {
        let names = ["orders", "order-archive", "crm", "orders__get_order"].map(str::to_owned);
        assert_eq!(near("orderz", &names)[0], "orders");
        assert_eq!(near("get_order", &names), ["orders__get_order"]);
        assert!(near("weather", &names).is_empty());
    }
}
