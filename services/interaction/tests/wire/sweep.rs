//! Cards that nobody will answer.

use futures_util::future::join_all;
use gatehouse_interaction::retention::sweep;
use gatehouse_proto::interaction::v1::{CreateInteractionRequest, Decision, GetInteractionRequest, InteractionState};
use gatehouse_testkit::eventually;
use gatehouse_types::{InteractionId, ReplicaId, SessionId};

use crate::harness::{Role, Service, World};

async fn closed(service: &Service, id: &str) -> InteractionState {
    eventually("the card is closed", async || {
        let card = service.get(id).await;
        (card.state() != InteractionState::Open).then_some(card.state())
    })
    .await
}

fn uuid(id: &str) -> uuid::Uuid {
    id.parse::<InteractionId>().unwrap().uuid()
}

#[tokio::test]
async fn a_card_that_nobody_answers_in_time_is_timed_out() {
    let world = World::new().await;
    let service = world.serve().await;
    let left = service.create(world.card()).await.id;
    let id = service.create(CreateInteractionRequest { timeout_sec: 1, ..world.card() }).await.id;
    assert_eq!(closed(&service, &id).await, InteractionState::TimedOut);
    assert_eq!(service.get(&left).await.state(), InteractionState::Open);
}

#[tokio::test]
async fn cards_of_a_deleted_session_are_closed_by_that_word() {
    let world = World::new().await;
    let service = world.serve().await;
    let other = SessionId::new();
    world.add_session(other).await;
    let left = service.create(CreateInteractionRequest { session_id: other.to_string(), ..world.card() }).await.id;
    let id = service.create(world.card()).await.id;
    world.sql("UPDATE sessions SET deleted_at = now() WHERE id = $1", world.session.uuid()).await;
    assert_eq!(closed(&service, &id).await, InteractionState::SessionDeleted);
    assert_eq!(service.get(&left).await.state(), InteractionState::Open);
    let nowhere = CreateInteractionRequest { session_id: SessionId::new().to_string(), ..world.card() };
    assert_eq!(closed(&service, &service.create(nowhere).await.id).await, InteractionState::SessionDeleted);
}

#[tokio::test]
async fn cards_of_a_gateway_that_is_gone_are_interrupted_once_they_are_older_than_a_lease() {
    let world = World::new().await;
    let service = world.serve().await;
    let (dead, gone) = (ReplicaId::new(), ReplicaId::new());
    world.sql("INSERT INTO replicas VALUES ($1, '', now(), now() - interval '16 s')", dead.uuid()).await;
    let card = |replica: ReplicaId| CreateInteractionRequest { replica_id: replica.to_string(), ..world.card() };
    let [of_dead, of_gone, of_live] =
        [card(dead), card(gone), card(world.replica)].map(|request| service.create(request));
    let (of_dead, of_gone, of_live) = tokio::join!(of_dead, of_gone, of_live);
    let age = async |id: &str| {
        world.sql("UPDATE interactions SET created_at = now() - interval '1 min' WHERE id = $1", uuid(id)).await;
    };
    for old in [&of_dead, &of_gone, &of_live] {
        age(&old.id).await;
    }
    assert_eq!(closed(&service, &of_dead.id).await, InteractionState::Interrupted);
    assert_eq!(closed(&service, &of_gone.id).await, InteractionState::Interrupted);
    // The next sweep closes one that is old enough, and leaves a young one alone.
    let (young, next) = tokio::join!(service.create(card(gone)), service.create(card(gone)));
    age(&next.id).await;
    assert_eq!(closed(&service, &next.id).await, InteractionState::Interrupted);
    assert_eq!(service.get(&young.id).await.state(), InteractionState::Open);
    assert_eq!(service.get(&of_live.id).await.state(), InteractionState::Open);
}

#[tokio::test]
async fn an_answer_that_came_when_the_gateway_was_gone_is_closed_as_interrupted_unless_it_was_used() {
    let world = World::new().await;
    let service = world.serve().await;
    let gone = ReplicaId::new();
    let card = |replica: ReplicaId| CreateInteractionRequest { replica_id: replica.to_string(), ..world.card() };
    let [unused, used, of_live] = [card(gone), card(gone), card(world.replica)].map(|request| service.create(request));
    let (unused, used, of_live) = tokio::join!(unused, used, of_live);
    for (card, decision) in [(&unused, "waiting"), (&used, "approved"), (&of_live, "waiting")] {
        let call = "INSERT INTO calls (id, session_id, server, tool, hints, replica_id, started_at, arguments, arguments_bytes,
                                       arguments_sha256, decision)
                    SELECT call_id, session_id, server, tool, 0, replica_id, now(), '', 0, '', $2 FROM interactions WHERE id = $1";
        let pool = world.database.pool();
        let made = sqlx::query(call).bind(uuid(&card.id)).bind(decision).execute(&pool);
        assert_eq!(made.await.unwrap().rows_affected(), 1);
        assert!(service.answer(&card.id, Decision::Approve).await.counted);
    }
    for card in [&unused, &used, &of_live] {
        world.sql("UPDATE interactions SET created_at = now() - interval '1 min' WHERE id = $1", uuid(&card.id)).await;
    }
    let interrupted = eventually("the answer is known to be of no use", async || {
        let card = service.get(&unused.id).await;
        (card.state() == InteractionState::Interrupted).then_some(card)
    })
    .await;
    assert!(interrupted.approval_answer.is_some(), "what the person said is kept: {interrupted:?}");
    for card in [&used, &of_live] {
        assert_eq!(service.get(&card.id).await.state(), InteractionState::Answered);
    }
}

#[tokio::test]
async fn replicas_that_sweep_side_by_side_close_each_card_once() {
    let world = World::new().await;
    let services = join_all((0..3).map(|_| world.serve())).await;
    let id = uuid(&services[0].create(world.card()).await.id);
    let made = world.sql(
        "INSERT INTO interactions (id, kind, state, session_id, call_id, replica_id, server, tool, card, created_at, expires_at)
         SELECT gen_random_uuid(), kind, state, session_id, call_id, replica_id, server, tool, card, created_at, now()
         FROM interactions, generate_series(1, 1500) WHERE id = $1",
        id,
    );
    assert_eq!(made.await, 1_500);
    eventually("all are closed", async || {
        let open = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM interactions WHERE state = 'open'");
        (open.fetch_one(&world.database.pool()).await.unwrap() == 1).then_some(())
    })
    .await;
    let wrong = "SELECT count(*) FROM interactions WHERE state <> 'open' AND (version <> 2 OR state <> 'timed_out')";
    assert_eq!(sqlx::query_scalar::<_, i64>(wrong).fetch_one(&world.database.pool()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_database_that_drops_every_connection_ends_nothing() {
    let world = World::new().await;
    let service = world.serve().await;
    let id = service.create(world.card()).await.id;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(cut).execute(&world.database.pool()).await.unwrap();
    eventually("the card's time is over", async || {
        let sql = "UPDATE interactions SET expires_at = now() WHERE id = $1";
        sqlx::query(sql).bind(uuid(&id)).execute(&world.database.pool()).await.ok()
    })
    .await;
    assert_eq!(closed(&service, &id).await, InteractionState::TimedOut);
}

#[tokio::test]
async fn closed_cards_leave_when_the_audit_forgets_their_calls_and_open_ones_stay() {
    let world = World::new().await;
    let service = world.serve().await;
    let [open, young, old] = [(); 3].map(|()| service.create(world.card()));
    let (open, young, old) = tokio::join!(open, young, old);
    let closed = "UPDATE interactions SET state = 'cancelled', created_at = now() - interval '40 days',
                  closed_at = now() - interval '20 days' WHERE id = $1";
    world.sql(closed, uuid(&young.id)).await;
    world.sql(closed, uuid(&old.id)).await;
    world.sql("UPDATE interactions SET closed_at = now() - interval '31 days' WHERE id = $1", uuid(&old.id)).await;
    let pool = world.database.pool();
    assert_eq!(sweep(&pool).await.unwrap(), 0, "90 days unless an admin says otherwise");
    let set =
        "INSERT INTO settings (key, value, updated_at, updated_by) VALUES ('audit.retentionDays', '30', now(), 'ann')";
    sqlx::raw_sql(set).execute(&pool).await.unwrap();
    assert_eq!(sweep(&pool).await.unwrap(), 1);
    assert_eq!(service.get(&open.id).await.state(), InteractionState::Open);
    assert_eq!(service.get(&young.id).await.state(), InteractionState::Cancelled);
    let gone = service.client(Role::Admin).get_interaction(GetInteractionRequest { id: old.id }).await.unwrap_err();
    assert_eq!(gone.code(), tonic::Code::NotFound);
}
