//! Waiting for one card.

use std::sync::Arc;

use futures_util::future::join_all;
use gatehouse_interaction::{
    store::{CHANNEL, listen::Listener},
    watch::Watcher,
};
use gatehouse_proto::interaction::v1::{Decision, InteractionState, WaitInteractionRequest, WaitInteractionResponse};
use gatehouse_testkit::{eventually, wait::DEADLINE};
use gatehouse_types::InteractionId;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, codec::Streaming};

use crate::harness::{Role, Service, World};

/// An address at which no database listens.
const NOWHERE: &str = "postgres://nobody@127.0.0.1:1/nothing";

async fn wait(service: &Service, id: &str) -> Streaming<WaitInteractionResponse> {
    let request = WaitInteractionRequest { id: id.to_owned() };
    service.client(Role::Service).wait_interaction(request).await.unwrap().into_inner()
}

async fn next<T>(stream: &mut Streaming<T>) -> Result<Option<T>, Status> {
    timeout(DEADLINE, stream.message()).await.unwrap()
}

async fn state(stream: &mut Streaming<WaitInteractionResponse>) -> InteractionState {
    next(stream).await.unwrap().unwrap().interaction.unwrap().state()
}

/// Ends the connections of this database that listen; how many there were.
async fn cut(world: &World) -> usize {
    let pids = sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    pids.fetch_all(&world.database.pool()).await.unwrap().len()
}

#[tokio::test]
async fn who_waits_gets_the_card_now_and_once_more_when_it_is_closed() {
    let world = World::new().await;
    let (service, other) = (world.serve().await, world.serve().await);
    let id = service.create(world.card()).await.id;
    let mut stream = wait(&service, &id).await;
    let first = next(&mut stream).await.unwrap().unwrap();
    assert_eq!((first.arguments_sha256, first.terms_sha256), (vec![1; 32], vec![2; 32]));
    assert_eq!(first.interaction.unwrap().state(), InteractionState::Open);
    let answered = other.answer(&id, Decision::Approve).await.interaction;
    let second = next(&mut stream).await.unwrap().unwrap();
    assert_eq!(second.interaction, answered);
    assert_eq!((second.arguments_sha256, second.terms_sha256), (vec![1; 32], vec![2; 32]));
    assert!(next(&mut stream).await.unwrap().is_none());

    // Who comes later gets the end alone.
    let mut late = wait(&service, &id).await;
    assert_eq!(state(&mut late).await, InteractionState::Answered);
    assert!(next(&mut late).await.unwrap().is_none());
}

#[tokio::test]
async fn a_thousand_wait_on_one_connection_and_keep_nobody_out() {
    let world = World::new().await;
    let service = world.serve().await;
    let ids = join_all((0..50).map(|_| service.create(world.card()))).await;
    let waiting = (0..1_000).map(|number| wait(&service, &ids[number % 50].id));
    let mut streams = join_all(waiting).await;
    for stream in &mut streams {
        assert_eq!(state(stream).await, InteractionState::Open);
    }
    // With all of them open, the same connection still takes requests.
    assert!(service.answer(&ids[0].id, Decision::Deny).await.counted);
    // Without a notice, all at once.
    let closed = world
        .sql(
            "UPDATE interactions SET state = 'cancelled', closed_at = now(), version = 2
             WHERE session_id = $1 AND state = 'open'",
            world.session.uuid(),
        )
        .await;
    assert_eq!(closed, 49);
    for (number, stream) in streams.iter_mut().enumerate() {
        let expected = if number % 50 == 0 { InteractionState::Answered } else { InteractionState::Cancelled };
        assert_eq!(state(stream).await, expected);
        assert!(next(stream).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_service_that_ends_tells_who_waits_to_come_again_and_nothing_is_lost() {
    let world = World::new().await;
    let (service, other) = (world.serve().await, world.serve().await);
    let id = service.create(world.card()).await.id;
    let mut stream = wait(&service, &id).await;
    assert_eq!(state(&mut stream).await, InteractionState::Open);
    let address = service.address.clone();
    let (ended, ()) = tokio::join!(next(&mut stream), service.stop());
    assert_eq!(ended.unwrap_err().code(), Code::Unavailable);
    other.answer(&id, Decision::Deny).await;
    let again = Service::start(&world, &address, None).await;
    assert_eq!(state(&mut wait(&again, &id).await).await, InteractionState::Answered);
}

#[tokio::test]
async fn without_notices_the_timer_sees_what_another_replica_has_changed() {
    let world = World::new().await;
    let (other, deaf) = (world.serve().await, Service::start(&world, "127.0.0.1:0", Some(NOWHERE)).await);
    let id = other.create(world.card()).await.id;
    let mut stream = wait(&deaf, &id).await;
    assert_eq!(state(&mut stream).await, InteractionState::Open);
    other.close(&id, InteractionState::Cancelled).await;
    assert_eq!(state(&mut stream).await, InteractionState::Cancelled);
}

#[tokio::test]
async fn a_listening_connection_that_is_cut_is_opened_again() {
    let world = World::new().await;
    let service = world.serve().await;
    eventually("the service listens", async || (cut(&world).await == 1).then_some(())).await;
    let id = service.create(world.card()).await.id;
    let mut stream = wait(&service, &id).await;
    assert_eq!(state(&mut stream).await, InteractionState::Open);
    eventually("the service listens again", async || (cut(&world).await == 1).then_some(())).await;
    service.answer(&id, Decision::Approve).await;
    assert_eq!(state(&mut stream).await, InteractionState::Answered);
}

#[tokio::test]
async fn a_notice_comes_with_each_answer_and_close_and_a_lost_connection_shows() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut listener = Listener::open(&world.database.pool(), None).await.unwrap();
    let heard = async |listener: &mut Listener| timeout(DEADLINE, listener.heard()).await.unwrap();
    let ids = [service.create(world.card()).await.id, service.create(world.card()).await.id];
    // Neither card was announced when it was made: what is heard first is this.
    sqlx::query("SELECT pg_notify($1, 'first')").bind(CHANNEL).execute(&world.database.pool()).await.unwrap();
    assert!(heard(&mut listener).await);
    service.answer(&ids[0], Decision::Approve).await;
    assert!(heard(&mut listener).await);
    service.close(&ids[1], InteractionState::Cancelled).await;
    assert!(heard(&mut listener).await);
    cut(&world).await;
    assert!(!heard(&mut listener).await);
}

#[tokio::test]
async fn who_goes_away_leaves_no_trace() {
    let world = World::new().await;
    let watcher = Arc::new(Watcher::new(world.database.pool()));
    let id = InteractionId::new();
    let (one, other) = (watcher.wait(id), watcher.wait(id));
    assert_eq!(watcher.waiters(), 2);
    drop(one);
    assert_eq!(watcher.waiters(), 1);
    drop(other);
    assert_eq!(watcher.waiters(), 0);
}

/// One that has just started: a gateway has waited, and a person has answered, before it has looked at the table once.
#[tokio::test]
async fn a_card_that_was_closed_before_the_first_reading_is_told_to_who_waits_for_it() {
    let world = World::new().await;
    let service = world.serve().await;
    let id = service.create(world.card()).await.id;
    let watcher = Arc::new(Watcher::new(world.database.pool()));
    let waiter = watcher.wait(id.parse().unwrap());
    service.close(&id, InteractionState::Cancelled).await;
    let shutdown = CancellationToken::new();
    let running = tokio::spawn({
        let (watcher, shutdown) = (Arc::clone(&watcher), shutdown.clone());
        async move { watcher.run(shutdown).await }
    });
    let card = timeout(DEADLINE, waiter.closed()).await.unwrap().unwrap();
    assert!(!card.state.is_open());
    shutdown.cancel();
    running.await.unwrap();
}
