//! Following cards.

use gatehouse_proto::interaction::v1::{
    CreateInteractionRequest, Decision, FollowInteractionsRequest, FollowInteractionsResponse, Interaction,
    InteractionState,
};
use gatehouse_testkit::wait::DEADLINE;
use gatehouse_types::{InteractionId, SessionId};
use tokio::time::timeout;
use tonic::{Code, Status, codec::Streaming};

use crate::harness::{Role, Service, World};

async fn follow(service: &Service, session: &str) -> Streaming<FollowInteractionsResponse> {
    let request = FollowInteractionsRequest { session_id: session.to_owned() };
    service.client(Role::Sessions).follow_interactions(request).await.unwrap().into_inner()
}

async fn next(stream: &mut Streaming<FollowInteractionsResponse>) -> Result<Interaction, Status> {
    let message = timeout(DEADLINE, stream.message()).await.unwrap()?;
    Ok(message.unwrap().interaction.unwrap())
}

/// The next message that is about this card and not open.
async fn end_of(stream: &mut Streaming<FollowInteractionsResponse>, id: &str) -> Interaction {
    loop {
        let card = next(stream).await.unwrap();
        if card.id == id && card.state() != InteractionState::Open {
            return card;
        }
    }
}

#[tokio::test]
async fn who_follows_gets_what_is_open_then_new_cards_and_changes_of_its_session() {
    let world = World::new().await;
    let service = world.serve().await;
    let other = SessionId::new();
    world.add_session(other).await;
    let before = service.create(world.card()).await;
    let closed = service.create(world.card()).await;
    service.close(&closed.id, InteractionState::Cancelled).await;
    service.create(CreateInteractionRequest { session_id: other.to_string(), ..world.card() }).await;

    let mut stream = follow(&service, &world.session.to_string()).await;
    assert_eq!(next(&mut stream).await.unwrap(), before);
    let new = service.create(world.card()).await;
    // A card may come twice; what must not come is another session's, or one that was closed before.
    let mut seen = next(&mut stream).await.unwrap();
    while seen == before {
        seen = next(&mut stream).await.unwrap();
    }
    assert_eq!(seen, new);
    let answered = service.answer(&new.id, Decision::Approve).await.interaction.unwrap();
    assert_eq!(end_of(&mut stream, &new.id).await, answered);
    let superseded = service.close(&new.id, InteractionState::Superseded).await;
    assert_eq!(end_of(&mut stream, &new.id).await, superseded);

    let mut all = follow(&service, "").await;
    let open = [next(&mut all).await.unwrap().session_id, next(&mut all).await.unwrap().session_id];
    assert_eq!(open, [world.session.to_string(), other.to_string()]);
}

#[tokio::test]
async fn all_open_cards_come_first_however_many_they_are() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut made = Vec::new();
    for _ in 0..205 {
        made.push(service.create(world.card()).await.id);
    }
    let mut stream = follow(&service, "").await;
    let mut seen = Vec::new();
    while seen.len() < made.len() {
        let id = next(&mut stream).await.unwrap().id;
        if !seen.contains(&id) {
            seen.push(id);
        }
    }
    seen.sort_unstable();
    made.sort_unstable();
    assert_eq!(seen, made);
}

#[tokio::test]
async fn a_change_that_commits_after_a_later_one_is_not_missed() {
    let world = World::new().await;
    let service = world.serve().await;
    let (early, late) = (service.create(world.card()).await, service.create(world.card()).await);
    let mut stream = follow(&service, "").await;
    let mut held = gatehouse_store::begin(&world.database.pool()).await.unwrap();
    let id: InteractionId = early.id.parse().unwrap();
    sqlx::query(
        "UPDATE interactions SET state = 'cancelled', closed_at = clock_timestamp(), version = 2 WHERE id = $1",
    )
    .bind(id.uuid())
    .execute(&mut *held)
    .await
    .unwrap();
    service.answer(&late.id, Decision::Deny).await;
    assert_eq!(end_of(&mut stream, &late.id).await.state(), InteractionState::Answered);
    held.commit().await.unwrap();
    assert_eq!(end_of(&mut stream, &early.id).await.state(), InteractionState::Cancelled);
}

#[tokio::test]
async fn a_card_that_opens_and_closes_between_two_readings_is_told() {
    let world = World::new().await;
    let service = world.serve().await;
    let first = service.create(world.card()).await;
    let mut stream = follow(&service, "").await;
    next(&mut stream).await.unwrap();
    let id: InteractionId = first.id.parse().unwrap();
    let copied = world.sql(
        "INSERT INTO interactions (id, kind, state, session_id, call_id, replica_id, server, tool, card, created_at,
                                   expires_at, closed_at, version)
         SELECT gen_random_uuid(), kind, 'timed_out', session_id, call_id, replica_id, server, 'brief', card, created_at,
                expires_at, clock_timestamp(), 2 FROM interactions WHERE id = $1",
        id.uuid(),
    );
    assert_eq!(copied.await, 1);
    let mut seen = next(&mut stream).await.unwrap();
    while seen.id == first.id {
        seen = next(&mut stream).await.unwrap();
    }
    assert_eq!((seen.tool.as_str(), seen.state()), ("brief", InteractionState::TimedOut));
}

#[tokio::test]
async fn following_goes_on_after_a_restart_where_it_was() {
    let world = World::new().await;
    let (service, other) = (world.serve().await, world.serve().await);
    let card = service.create(world.card()).await;
    let mut stream = follow(&service, "").await;
    next(&mut stream).await.unwrap();
    let address = service.address.clone();
    let (ended, ()) = tokio::join!(
        async {
            loop {
                if let Err(status) = next(&mut stream).await {
                    break status;
                }
            }
        },
        service.stop()
    );
    assert_eq!(ended.code(), Code::Unavailable);
    let new = other.create(world.card()).await;
    let again = Service::start(&world, &address, None).await;
    let mut stream = follow(&again, "").await;
    let open = [next(&mut stream).await.unwrap().id, next(&mut stream).await.unwrap().id];
    assert_eq!(open, [card.id, new.id]);
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_told_to_begin_anew() {
    let world = World::new().await;
    let service = world.serve().await;
    let first = service.create(world.card()).await;
    let mut stream = follow(&service, "").await;
    next(&mut stream).await.unwrap();
    let id: InteractionId = first.id.parse().unwrap();
    // 20 MB of cards that are not read: more than any buffer on the way takes.
    let made = world.sql(
        "INSERT INTO interactions (id, kind, state, session_id, call_id, replica_id, server, tool, card, created_at,
                                     expires_at, closed_at, version)
           SELECT gen_random_uuid(), kind, 'cancelled', session_id, call_id, replica_id, server, tool,
                  jsonb_set(card::jsonb, '{arguments}', to_jsonb(repeat('x', 20000)))::text, created_at,
                  expires_at, clock_timestamp(), 2 FROM interactions, generate_series(1, 1000) WHERE id = $1",
        id.uuid(),
    );
    assert_eq!(made.await, 1_000);
    // Another follower shows when all of them have been told.
    let mut other = follow(&service, "").await;
    let last = service.create(world.card()).await;
    while next(&mut other).await.unwrap().id != last.id {}
    let mut read = 0;
    let status = loop {
        match next(&mut stream).await {
            Ok(_) => read += 1,
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(read < 1_000, "{read}");
}
