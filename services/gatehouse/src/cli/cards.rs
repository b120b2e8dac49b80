//! `gatehouse cards`: questions that wait for a person.

use std::{collections::BTreeMap, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use gatehouse_proto::{
    gateway::v1::GetSessionRequest,
    interaction::v1::{
        FollowInteractionsRequest, GetInteractionRequest, Interaction, InteractionState, ListInteractionsRequest,
    },
};
use gatehouse_types::SessionId;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    Context, cards_view, convert,
    discover::{self, Surroundings, Target},
    failure::{Code, Failure},
    globals::Globals,
    grpc::{Client, pages},
    output::Answer,
};

/// Full name of a card's message.
pub(crate) const CARD: &str = "gatehouse.interaction.v1.Interaction";
/// Pause before following is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// How often on end it is tried.
const TRIES: u32 = 60;

/// Arguments of `cards`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  gatehouse cards\n  gatehouse cards --session SESSION --follow\n  \
                  gatehouse cards --state all --json\n  gatehouse cards show CARD"
)]
pub(crate) struct Cards {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// Subcommands of `cards`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show one card with everything that must be known before it is answered
    Show {
        /// Id of the card
        card: String,
    },
}

/// Arguments of the list.
#[derive(Debug, Args)]
struct List {
    /// Id or external id of a session; else all
    #[arg(long, default_value = "", hide_default_value = true)]
    session: String,
    /// Only cards in this state
    #[arg(long, value_enum, default_value_t = State::Open)]
    state: State,
    /// At most this many, the newest first
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Show the open cards, then each change, until Ctrl-C; with --json a document on each line
    #[arg(long, conflicts_with_all = ["state", "limit"])]
    follow: bool,
}

/// Where a card stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    /// Waits for a person.
    Open,
    /// A person answered.
    Answered,
    /// Nobody answered in time.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// The session was deleted.
    SessionDeleted,
    /// The gateway that waited ended.
    Interrupted,
    /// What would have been carried out changed.
    Superseded,
    /// Any of them.
    All,
}

impl State {
    fn proto(self) -> InteractionState {
        match self {
            Self::Open => InteractionState::Open,
            Self::Answered => InteractionState::Answered,
            Self::TimedOut => InteractionState::TimedOut,
            Self::Cancelled => InteractionState::Cancelled,
            Self::SessionDeleted => InteractionState::SessionDeleted,
            Self::Interrupted => InteractionState::Interrupted,
            Self::Superseded => InteractionState::Superseded,
            Self::All => InteractionState::Unspecified,
        }
    }
}

/// What leads from interaction to its gateway, where sessions are looked up.
pub(crate) struct Places<'a> {
    /// Interaction.
    pub(crate) target: Target,
    /// The options.
    pub(crate) globals: &'a Globals,
    /// What is around this process.
    pub(crate) here: Surroundings,
}

impl Cards {
    /// Lists, follows, or shows one.
    pub(crate) async fn run(self, context: &Context, places: &Places<'_>) -> Result<Answer, Failure> {
        if let Some(Command::Show { card }) = self.command {
            let card = get(&card, context).await?;
            let document = json!({ "interaction": convert::json(CARD, &card)? });
            return Ok(Answer::new(cards_view::one(&card, &context.out), &document));
        }
        let session_id = session(&self.list.session, places).await?;
        if self.list.follow { follow(session_id, context).await } else { list(&self.list, session_id, context).await }
    }
}

/// One card.
pub(crate) async fn get(id: &str, context: &Context) -> Result<Interaction, Failure> {
    let request = GetInteractionRequest { id: id.to_owned() };
    let got = context.client.answer(context.client.interactions().get_interaction(request)).await;
    let card = got.map_err(not_found)?.interaction;
    card.ok_or_else(|| Failure::new(Code::Internal, "the server answered without the card"))
}

/// Adds to a `NOT_FOUND` how to see which cards there are.
pub(crate) fn not_found(failure: Failure) -> Failure {
    match failure.code {
        Code::NotFound => failure.next("`gatehouse cards` shows those that are open, `--state all` the others too"),
        _ => failure,
    }
}

/// The id of a session, which the gateway knows. An id also stands for itself: the cards of a deleted session are kept.
async fn session(session: &str, places: &Places<'_>) -> Result<String, Failure> {
    if session.is_empty() {
        return Ok(String::new());
    }
    let looked_up = async {
        let gateway = discover::find_beside(&places.target, places.globals, &places.here)?;
        let client = Client::connect(&gateway, places.globals).await?;
        let request = GetSessionRequest { session: session.to_owned() };
        client.answer(client.sessions().get_session(request)).await
    };
    match looked_up.await {
        Ok(found) => Ok(found.session.unwrap_or_default().id),
        Err(_) if session.parse::<SessionId>().is_ok() => Ok(session.to_owned()),
        Err(failure) if failure.code == Code::NotFound => {
            Err(failure.next("`gatehouse session list` shows what there is"))
        }
        Err(failure) => Err(failure),
    }
}

async fn list(list: &List, session_id: String, context: &Context) -> Result<Answer, Failure> {
    let request = ListInteractionsRequest {
        session_id,
        state: list.state.proto().into(),
        page_size: i32::try_from(list.limit.clamp(1, 500)).unwrap_or(500),
        page_token: String::new(),
    };
    let (client, request) = (&context.client, &request);
    let page = |page_token| async move {
        let request = ListInteractionsRequest { page_token, ..request.clone() };
        let response = client.answer(client.interactions().list_interactions(request)).await?;
        Ok((response.interactions, response.next_page_token))
    };
    let (mut cards, more) = pages(Some(list.limit), page).await?;
    let is_cut = !more.is_empty() || cards.len() > list.limit;
    cards.truncate(list.limit);
    let mut text = match (cards.is_empty(), list.state) {
        (true, State::Open) => "No card waits for an answer.\n".to_owned(),
        (true, _) => "No such cards.\n".to_owned(),
        (false, _) => cards_view::table(&cards, &context.out),
    };
    if is_cut {
        text.push_str("There are more; --limit shows them.\n");
    }
    let mut document = convert::json_list("interactions", CARD, &cards)?;
    document["more"] = is_cut.into();
    Ok(Answer::new(text, &document))
}

/// Cards that were shown: their versions, and whether they were open.
type Shown = BTreeMap<String, (i64, bool)>;

async fn follow(session_id: String, context: &Context) -> Result<Answer, Failure> {
    let (mut shown, mut failed) = (Shown::new(), 0);
    loop {
        let ended = follow_once(&session_id, context, &mut shown, &mut failed).await;
        let failure = ended.err().unwrap_or_else(|| Failure::new(Code::Unavailable, "the server ended the stream"));
        // A server that restarts, or that was read too slowly: whatever has changed meanwhile is caught up with.
        let may_pass = matches!(failure.code, Code::Unavailable | Code::ResourceExhausted);
        if !may_pass || failed >= TRIES {
            return Err(failure);
        }
        if failed == 0 {
            context.out.warn("the server does not answer; trying again");
        }
        failed += 1;
        sleep(PAUSE).await;
    }
}

/// Until the stream ends. Says nothing twice.
async fn follow_once(session_id: &str, context: &Context, shown: &mut Shown, failed: &mut u32) -> Result<(), Failure> {
    let client = context.client.endless();
    let request = FollowInteractionsRequest { session_id: session_id.to_owned() };
    let mut stream = client.answer(client.interactions().follow_interactions(request)).await?;
    // What was closed while nobody followed.
    let open: Vec<String> = shown.iter().filter(|(_, (_, open))| *open).map(|(id, _)| id.clone()).collect();
    for id in open {
        show(&get(&id, context).await?, context, shown)?;
    }
    *failed = 0;
    while let Some(message) = client.next(&mut stream).await? {
        if let Some(card) = &message.interaction {
            show(card, context, shown)?;
        }
    }
    Ok(())
}

fn show(card: &Interaction, context: &Context, shown: &mut Shown) -> Result<(), Failure> {
    let known = shown.get(&card.id).map_or(0, |(version, _)| *version);
    if card.version <= known {
        return Ok(());
    }
    shown.insert(card.id.clone(), (card.version, card.state() == InteractionState::Open));
    let document: Value = convert::json(CARD, card)?;
    context.out.line(&cards_view::line(card, &context.out), &document)
}
