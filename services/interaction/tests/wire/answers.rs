//! Answering and closing cards.

use futures_util::future::join_all;
use gatehouse_proto::interaction::v1::{
    AnswerInteractionRequest, ApprovalReply, CloseInteractionRequest, Decision, InteractionState,
    answer_interaction_request::Answer,
};
use gatehouse_types::InteractionId;
use tonic::Code;

use crate::harness::{Role, World, approval, refused, reply, wrong_fields};

#[tokio::test]
async fn of_twenty_answers_at_once_one_counts_and_the_others_get_it_back() {
    let world = World::new().await;
    let services = [world.serve().await, world.serve().await];
    let id = services[0].create(world.card()).await.id;
    let answers = join_all((0..20).map(|number| {
        let mut client = services[number % 2].client(Role::Sessions);
        let decision = if number % 3 == 0 { Decision::Deny } else { Decision::Approve };
        let mut request = reply(&id, decision);
        request.answered_by = format!("person {number}");
        async move { client.answer_interaction(request).await.unwrap().into_inner() }
    }))
    .await;
    assert_eq!(answers.iter().filter(|answer| answer.counted).count(), 1);
    let first = answers.iter().find(|answer| answer.counted).unwrap().interaction.clone().unwrap();
    assert_eq!((first.state(), first.version), (InteractionState::Answered, 2));
    assert!(answers.iter().all(|answer| answer.interaction.as_ref() == Some(&first)));
    assert_eq!(services[1].get(&id).await, first);
    let given = first.approval_answer.unwrap();
    assert_eq!((given.answered_at, first.closed_at), (first.closed_at, given.answered_at));
}

#[tokio::test]
async fn an_answer_is_kept_with_who_gave_it_and_why() {
    let world = World::new().await;
    let service = world.serve().await;
    let id = service.create(world.card()).await.id;
    let reason = "not\u{202e} this one\nask\u{0} again".to_owned();
    let request = AnswerInteractionRequest {
        id: id.clone(),
        answer: Some(Answer::Approval(ApprovalReply { decision: Decision::Deny.into(), reason })),
        answered_by: " Ada Lovelace ".to_owned(),
    };
    let answered = service.client(Role::Sessions).answer_interaction(request).await.unwrap().into_inner();
    let answer = answered.interaction.unwrap().approval_answer.unwrap();
    assert_eq!((answer.decision(), answer.answered_by.as_str()), (Decision::Deny, "Ada Lovelace"));
    assert_eq!(answer.reason, "not\u{fffd} this one\nask\u{fffd} again");

    let id = service.create(world.card()).await.id;
    let answer = service.answer(&id, Decision::ApproveForSession).await.interaction.unwrap().approval_answer.unwrap();
    assert_eq!((answer.decision(), answer.answered_by.as_str()), (Decision::ApproveForSession, "console"));
}

#[tokio::test]
async fn a_card_that_asks_each_time_refuses_an_answer_for_the_session_and_stays_open() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut request = world.card();
    approval(&mut request).policy = "confirm".to_owned();
    approval(&mut request).may_remember = false;
    let made = service.create(request).await;
    let refusal = service.client(Role::Sessions).answer_interaction(reply(&made.id, Decision::ApproveForSession)).await;
    assert_eq!(wrong_fields(refusal), ["approval.decision"]);
    assert_eq!(service.get(&made.id).await, made);
    assert!(service.answer(&made.id, Decision::Approve).await.counted);
    // Once it is closed, what comes back is what was answered.
    assert!(!service.answer(&made.id, Decision::ApproveForSession).await.counted);
}

#[tokio::test]
async fn an_answer_after_the_cards_time_does_not_count_and_the_card_is_timed_out() {
    let world = World::new().await;
    let service = world.serve().await;
    let id: InteractionId = service.create(world.card()).await.id.parse().unwrap();
    // In one transaction with a lock that the sweeper leaves alone, so that the answer is the one that finds it expired.
    let mut held = gatehouse_store::begin(&world.database.pool()).await.unwrap();
    sqlx::query("UPDATE interactions SET expires_at = now() WHERE id = $1")
        .bind(id.uuid())
        .execute(&mut *held)
        .await
        .unwrap();
    let text = id.to_string();
    let (answered, committed) = tokio::join!(service.answer(&text, Decision::Approve), held.commit());
    committed.unwrap();
    let card = answered.interaction.unwrap();
    assert!(!answered.counted);
    assert_eq!((card.state(), card.approval_answer), (InteractionState::TimedOut, None));
}

#[tokio::test]
async fn every_wrong_field_of_an_answer_is_named_and_the_card_stays_open() {
    let world = World::new().await;
    let service = world.serve().await;
    let mut client = service.client(Role::Sessions);
    let id = service.create(world.card()).await.id;
    let answer = |id: &str, decision: i32, reason: String, by: String| AnswerInteractionRequest {
        id: id.to_owned(),
        answer: Some(Answer::Approval(ApprovalReply { decision, reason })),
        answered_by: by,
    };
    let long = |most: usize| "订".repeat(most + 1);
    let all = ["id", "answered_by", "approval.decision", "approval.reason"];
    assert_eq!(wrong_fields(client.answer_interaction(answer("x", 0, long(2_000), long(256))).await), all);
    let hidden = answer(&id, 99, String::new(), "Ada\u{202e}".to_owned());
    assert_eq!(wrong_fields(client.answer_interaction(hidden).await), ["answered_by", "approval.decision"]);
    let nothing = AnswerInteractionRequest { id: id.clone(), ..Default::default() };
    assert_eq!(wrong_fields(client.answer_interaction(nothing).await), ["approval"]);
    let unknown = InteractionId::new().to_string();
    assert_eq!(refused(client.answer_interaction(reply(&unknown, Decision::Deny)).await), Code::NotFound);
    assert_eq!(service.get(&id).await.state(), InteractionState::Open);
}

#[tokio::test]
async fn any_word_closes_a_card_once_and_an_answer_that_was_not_used_is_kept() {
    let world = World::new().await;
    let service = world.serve().await;
    let words = [
        InteractionState::TimedOut,
        InteractionState::Cancelled,
        InteractionState::SessionDeleted,
        InteractionState::Interrupted,
        InteractionState::Superseded,
    ];
    for word in words {
        let id = service.create(world.card()).await.id;
        let closed = service.close(&id, word).await;
        assert_eq!((closed.state(), closed.version), (word, 2));
        assert!(closed.closed_at.is_some());
        // Closed is closed: neither another word nor an answer changes anything.
        assert_eq!(service.close(&id, InteractionState::Superseded).await, closed);
        let late = service.answer(&id, Decision::Approve).await;
        assert_eq!((late.counted, late.interaction), (false, Some(closed)));

        let id = service.create(world.card()).await.id;
        let answered = service.answer(&id, Decision::Approve).await.interaction.unwrap();
        let closed = service.close(&id, word).await;
        assert_eq!((closed.state(), closed.version), (word, 3));
        assert_eq!(closed.approval_answer, answered.approval_answer);
        assert!(closed.approval_answer.is_some());
        assert_eq!(service.close(&id, InteractionState::Superseded).await, closed);
    }
}

#[tokio::test]
async fn after_an_answer_and_a_close_at_once_the_card_is_closed_and_shows_the_answer_that_counted() {
    let world = World::new().await;
    let service = world.serve().await;
    for _ in 0..10 {
        let id = service.create(world.card()).await.id;
        let close = CloseInteractionRequest { id: id.clone(), state: InteractionState::Cancelled.into() };
        let mut client = service.client(Role::Service);
        let (answered, closed) = tokio::join!(service.answer(&id, Decision::Approve), client.close_interaction(close));
        let closed = closed.unwrap().into_inner().interaction.unwrap();
        assert_eq!(closed.state(), InteractionState::Cancelled);
        assert_eq!(answered.counted, closed.approval_answer.is_some());
        assert_eq!(closed.version, if answered.counted { 3 } else { 2 });
    }
}
