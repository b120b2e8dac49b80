//! Making, reading and listing cards.

use gatehouse_proto::interaction::v1::{
    CloseInteractionRequest, CreateInteractionRequest, FollowInteractionsRequest, GetInteractionRequest, Interaction,
    InteractionState, ListInteractionsRequest, WaitInteractionRequest, interaction,
};
use gatehouse_types::{InteractionId, SessionId};
use tonic::Code;

use crate::harness::{Role, Service, World, approval, refused, wrong_fields};

fn shown(card: &Interaction) -> &gatehouse_proto::interaction::v1::ApprovalCard {
    match &card.card {
        Some(interaction::Card::Approval(shown)) => shown,
        None => panic!("nothing is asked"),
    }
}

#[tokio::test]
async fn a_new_card_is_open_and_the_same_id_again_returns_the_first_one() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut request = world.card();
    request.actor = "bot.1".to_owned();
    request.run_id = InteractionId::new().to_string();
    let made = service.create(request.clone()).await;
    assert_eq!((made.state(), made.version, made.closed_at), (InteractionState::Open, 1, None));
    assert_eq!((&made.id, &made.session_id, &made.call_id), (&request.id, &request.session_id, &request.call_id));
    assert_eq!((&made.run_id, made.actor.as_str()), (&request.run_id, "bot.1"));
    assert_eq!((made.server.as_str(), made.tool.as_str()), ("orders", "refund_order"));
    assert_eq!(shown(&made), approval(&mut request));
    let (created, expires) = (made.created_at.unwrap(), made.expires_at.unwrap());
    assert_eq!((expires.seconds - created.seconds, expires.nanos), (600, created.nanos));

    assert_eq!(service.get(&made.id).await, made);
    approval(&mut request).title = "Another".to_owned();
    assert_eq!(service.create(request).await, made);
    let unknown = GetInteractionRequest { id: InteractionId::new().to_string() };
    assert_eq!(refused(service.client(Role::Sessions).get_interaction(unknown).await), Code::NotFound);
}

#[tokio::test]
async fn what_a_server_calls_its_tool_hides_nothing_on_the_card() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut request = world.card();
    request.tool = format!("a\u{1b}[2J{}", "x".repeat(500));
    approval(&mut request).title = "pay\u{202e}gpj.exe\nApproved".to_owned();
    approval(&mut request).arguments_json = "{\"to\":\"\u{202e}x\u{9b}\u{feff}\"}".to_owned();
    let made = service.create(request).await;
    assert!(made.tool.starts_with("a\u{fffd}[2Jx") && made.tool.ends_with('…'));
    assert_eq!(made.tool.chars().count(), 256);
    assert_eq!(shown(&made).title, "pay\u{fffd}gpj.exe\u{fffd}Approved");
    assert_eq!(shown(&made).arguments_json, "{\"to\":\"\\u202ex\\u009b\\ufeff\"}");
    let mut untitled = world.card();
    approval(&mut untitled).title = String::new();
    assert_eq!(shown(&service.create(untitled).await).title, "refund_order");
}

#[tokio::test]
async fn every_wrong_field_of_a_new_card_is_named_at_once_and_nothing_is_made() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut request = CreateInteractionRequest {
        id: "x".to_owned(),
        session_id: "x".to_owned(),
        actor: "a b".to_owned(),
        run_id: "x".to_owned(),
        server: "No".to_owned(),
        arguments_sha256: vec![0; 31],
        card: world.card().card,
        ..CreateInteractionRequest::default()
    };
    let card = approval(&mut request);
    card.title = "x".repeat(2_001);
    card.arguments_json = "x".repeat(20_481);
    card.arguments_bytes = -1;
    card.policy = "allow".to_owned();
    let fields = wrong_fields(service.client(Role::Service).create_interaction(request.clone()).await);
    assert_eq!(
        fields,
        [
            "id",
            "session_id",
            "actor",
            "run_id",
            "call_id",
            "replica_id",
            "server",
            "tool",
            "approval.title",
            "approval.arguments_json",
            "approval.arguments_bytes",
            "approval.policy",
            "arguments_sha256",
            "terms_sha256",
            "timeout_sec"
        ]
    );
    let mut confirm = world.card();
    approval(&mut confirm).policy = "confirm".to_owned();
    let fields = wrong_fields(service.client(Role::Service).create_interaction(confirm.clone()).await);
    assert_eq!(fields, ["approval.may_remember"]);
    confirm.card = None;
    assert_eq!(wrong_fields(service.client(Role::Service).create_interaction(confirm).await), ["approval"]);
    let all = ListInteractionsRequest::default();
    assert!(service.client(Role::Sessions).list_interactions(all).await.unwrap().into_inner().interactions.is_empty());
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_by_field() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut client = service.client(Role::Service);
    let list =
        ListInteractionsRequest { session_id: "x".to_owned(), state: 99, page_size: 501, page_token: String::new() };
    assert_eq!(wrong_fields(client.list_interactions(list).await), ["session_id", "state", "page_size"]);
    let list = ListInteractionsRequest { page_token: "x".to_owned(), ..Default::default() };
    assert_eq!(wrong_fields(client.list_interactions(list).await), ["page_token"]);
    assert_eq!(wrong_fields(client.get_interaction(GetInteractionRequest::default()).await), ["id"]);
    assert_eq!(wrong_fields(client.wait_interaction(WaitInteractionRequest::default()).await), ["id"]);
    let follow = FollowInteractionsRequest { session_id: "x".to_owned() };
    assert_eq!(wrong_fields(client.follow_interactions(follow).await), ["session_id"]);
    for state in [InteractionState::Unspecified, InteractionState::Open, InteractionState::Answered] {
        let close = CloseInteractionRequest { id: "x".to_owned(), state: state.into() };
        assert_eq!(wrong_fields(client.close_interaction(close).await), ["id", "state"]);
    }
    let close = |id: String| CloseInteractionRequest { id, state: InteractionState::Cancelled.into() };
    let unknown = InteractionId::new().to_string();
    assert_eq!(refused(client.close_interaction(close(unknown.clone())).await), Code::NotFound);
    assert_eq!(refused(client.wait_interaction(WaitInteractionRequest { id: unknown }).await), Code::NotFound);
}

async fn page(service: &Service, request: &ListInteractionsRequest) -> (Vec<String>, String) {
    let page = service.client(Role::Sessions).list_interactions(request.clone()).await.unwrap().into_inner();
    (page.interactions.into_iter().map(|card| card.id).collect(), page.next_page_token)
}

#[tokio::test]
async fn cards_are_listed_newest_first_in_pages_that_stay_stable_under_inserts() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(service.create(world.card()).await.id);
    }
    ids.reverse();
    let mut request = ListInteractionsRequest { page_size: 2, ..Default::default() };
    let (first, token) = page(&service, &request).await;
    service.create(world.card()).await;
    request.page_token = token;
    let (second, token) = page(&service, &request).await;
    request.page_token = token;
    let (third, token) = page(&service, &request).await;
    assert_eq!([first, second, third].concat(), ids);
    assert_eq!(token, "");
}

#[tokio::test]
async fn a_list_is_narrowed_by_session_and_state_and_a_token_is_bound_to_both() {
    let world = World::new().await;
    let service = world.serve().await;
    let other = SessionId::new();
    world.add_session(other).await;
    let own = [service.create(world.card()).await.id, service.create(world.card()).await.id];
    let others = service.create(CreateInteractionRequest { session_id: other.to_string(), ..world.card() }).await.id;
    service.close(&own[0], InteractionState::Cancelled).await;
    let list = |session_id: String, state: InteractionState| ListInteractionsRequest {
        session_id,
        state: state.into(),
        page_size: 1,
        page_token: String::new(),
    };
    let open = list(String::new(), InteractionState::Open);
    let (first, token) = page(&service, &open).await;
    assert_eq!(first, std::slice::from_ref(&others));
    assert_eq!(page(&service, &list(other.to_string(), InteractionState::Unspecified)).await.0, [others]);
    assert_eq!(page(&service, &list(String::new(), InteractionState::Cancelled)).await.0, [own[0].clone()]);
    let mut all = list(String::new(), InteractionState::Unspecified);
    all.page_token.clone_from(&token);
    assert_eq!(wrong_fields(service.client(Role::Sessions).list_interactions(all).await), ["page_token"]);
    assert_eq!(page(&service, &ListInteractionsRequest { page_token: token, ..open }).await.0, [own[1].clone()]);
}

#[tokio::test]
async fn debug_of_a_card_leaves_the_arguments_out() {
    let world = World::new().await;
    let service = world.serve().await;
    let id = service.create(world.card()).await.id;
    let mut connection = world.database.pool().acquire().await.unwrap();
    let card = gatehouse_interaction::store::cards::get(&mut connection, id.parse().unwrap()).await.unwrap();
    assert!(card.approval.arguments.contains("A-1") && !format!("{card:?}").contains("A-1"));
    let new = gatehouse_interaction::card::NewCard::try_from(world.card()).unwrap();
    assert!(!format!("{new:?}").contains("A-1"));
}
