//! Who may call what; and that nothing is forgotten.

use std::collections::BTreeMap;

use gatehouse_interaction::grpc::methods::{Access, METHODS, Method};
use gatehouse_proto::DESCRIPTORS;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::{
    Code, Request, client::Grpc, codec::Streaming, codegen::http::uri::PathAndQuery,
    service::interceptor::InterceptedService,
};
use tonic_prost::ProstCodec;

use crate::harness::{Role, Service, World};

/// Sends an empty message, which every RPC can read. `Ok` when a handler answered with success.
async fn call(service: &Service, method: &Method, role: Role) -> Code {
    let mut grpc = Grpc::new(InterceptedService::new(service.channel.clone(), role));
    grpc.ready().await.unwrap();
    let path = PathAndQuery::from_static(method.path);
    let codec = ProstCodec::<(), ()>::default();
    let answer = if method.streaming {
        let stream = grpc.server_streaming(Request::new(()), path, codec).await;
        stream.map(|answer: tonic::Response<Streaming<()>>| drop(answer))
    } else {
        grpc.unary(Request::new(()), path, codec).await.map(drop)
    };
    answer.err().map_or(Code::Ok, |status| status.code())
}

#[tokio::test]
async fn every_rpc_takes_just_the_callers_that_the_table_says() {
    let world = World::new().await;
    let service = world.serve().await;
    for method in METHODS {
        assert_eq!(call(&service, method, Role::Nobody).await, Code::Unauthenticated, "{}", method.path);
        // An empty request is refused for its fields, or is a good one.
        let passed = |code| matches!(code, Code::Ok | Code::InvalidArgument);
        assert!(passed(call(&service, method, Role::Service).await), "{}", method.path);
        for role in [Role::Sessions, Role::Admin] {
            let code = call(&service, method, role).await;
            match method.access {
                Access::Service => assert_eq!(code, Code::PermissionDenied, "{} {role:?}", method.path),
                Access::Scope(_) => assert!(passed(code), "{} {role:?} {code:?}", method.path),
            }
        }
    }
}

#[tokio::test]
async fn an_api_key_that_may_not_make_cards_is_told_who_may() {
    let world = World::new().await;
    let service = world.serve().await;
    let status = service.client(Role::Admin).create_interaction(world.card()).await.unwrap_err();
    assert!(status.message().contains("service token"), "{status:?}");
}

fn described() -> BTreeMap<String, bool> {
    let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let mut found = BTreeMap::new();
    for file in files.file.iter().filter(|file| file.package() == "gatehouse.interaction.v1") {
        for service in &file.service {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                assert!(!method.client_streaming(), "{path}: no entry can say this yet");
                found.insert(path, method.server_streaming());
            }
        }
    }
    found
}

#[test]
fn every_rpc_in_the_proto_files_is_in_the_table_and_nothing_else_is() {
    let table: BTreeMap<String, bool> =
        METHODS.iter().map(|method| (method.path.to_owned(), method.streaming)).collect();
    assert_eq!(table, described());
    assert_eq!(table.len(), METHODS.len(), "an RPC is there twice");
    for method in METHODS {
        // What waits for people is bounded by the card's own time.
        assert_eq!(method.deadline.is_none(), method.streaming, "{}", method.path);
    }
}

/// The tests of this binary, by file.
const SOURCES: &[&str] = &[
    include_str!("answers.rs"),
    include_str!("cards.rs"),
    include_str!("follow.rs"),
    include_str!("sweep.rs"),
    include_str!("wait.rs"),
];

/// A test for each RPC that shows what it is for.
const TESTED: &[(&str, &str)] = &[
    ("CreateInteraction", "a_new_card_is_open_and_the_same_id_again_returns_the_first_one"),
    ("GetInteraction", "a_new_card_is_open_and_the_same_id_again_returns_the_first_one"),
    ("ListInteractions", "cards_are_listed_newest_first_in_pages_that_stay_stable_under_inserts"),
    ("WaitInteraction", "who_waits_gets_the_card_now_and_once_more_when_it_is_closed"),
    ("FollowInteractions", "who_follows_gets_what_is_open_then_new_cards_and_changes_of_its_session"),
    ("AnswerInteraction", "of_twenty_answers_at_once_one_counts_and_the_others_get_it_back"),
    ("CloseInteraction", "any_word_closes_a_card_once_and_an_answer_that_was_not_used_is_kept"),
];

#[test]
fn every_rpc_in_the_proto_files_has_a_test() {
    for path in described().into_keys() {
        let tested = TESTED.iter().find(|(rpc, _)| path.ends_with(&format!("/{rpc}")));
        let Some((_, test)) = tested else { panic!("{path} has no test") };
        let marker = format!("async fn {test}()");
        assert!(SOURCES.iter().any(|source| source.contains(&marker)), "{path}: there is no test `{test}`");
    }
}
