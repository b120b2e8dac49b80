//! Who may call what; and that nothing is forgotten.

use std::collections::BTreeMap;

use gatehouse_gateway::grpc::methods::{METHODS, Method};
use gatehouse_platform::auth::Scope;
use gatehouse_proto::DESCRIPTORS;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::{
    Code, Request, client::Grpc, codec::Streaming, codegen::http::uri::PathAndQuery,
    service::interceptor::InterceptedService,
};
use tonic_prost::ProstCodec;

use crate::harness::{Gateway, Role};

/// Sends an empty message, which every RPC can read. `Ok` when a handler answered with success.
async fn call(gateway: &Gateway, method: &Method, role: Role) -> Code {
    let mut grpc = Grpc::new(InterceptedService::new(gateway.channel.clone(), role));
    grpc.ready().await.unwrap();
    let path = PathAndQuery::from_static(method.path);
    let codec = ProstCodec::<(), ()>::default();
    let answer = if method.streaming {
        grpc.server_streaming(Request::new(()), path, codec)
            .await
            .map(|answer: tonic::Response<Streaming<()>>| drop(answer))
    } else {
        grpc.unary(Request::new(()), path, codec).await.map(drop)
    };
    answer.err().map_or(Code::Ok, |status| status.code())
}

#[tokio::test]
async fn every_rpc_refuses_a_caller_without_a_credential() {
    let gateway = Gateway::start().await;
    for method in METHODS {
        assert_eq!(call(&gateway, method, Role::Nobody).await, Code::Unauthenticated, "{}", method.path);
    }
}

#[tokio::test]
async fn every_rpc_takes_just_the_scopes_that_the_table_says() {
    let gateway = Gateway::start().await;
    let refusals = [Code::Unauthenticated, Code::PermissionDenied];
    for method in METHODS {
        for role in [Role::Admin, Role::Service] {
            assert!(!refusals.contains(&call(&gateway, method, role).await), "{} {role:?}", method.path);
        }
        let code = call(&gateway, method, Role::Sessions).await;
        if method.scope == Scope::Admin {
            assert_eq!(code, Code::PermissionDenied, "{}", method.path);
        } else {
            assert!(!refusals.contains(&code), "{}", method.path);
        }
    }
}

#[tokio::test]
async fn no_rpc_answers_an_empty_request_with_an_inner_error() {
    let gateway = Gateway::start().await;
    for method in METHODS {
        let code = call(&gateway, method, Role::Admin).await;
        assert!(!matches!(code, Code::Internal | Code::Unknown | Code::Unimplemented), "{} {code:?}", method.path);
    }
}

/// Every RPC of the gateway's package in the proto files, and whether it answers with a stream.
fn described() -> BTreeMap<String, bool> {
    let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let mut found = BTreeMap::new();
    for file in files.file.iter().filter(|file| file.package() == "gatehouse.gateway.v1") {
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
        // Only a call is bounded by settings instead.
        assert_eq!(method.deadline.is_none(), method.path.ends_with("/CallTool"), "{}", method.path);
    }
}

/// The tests of this binary, by file.
const SOURCES: &[&str] = &[
    include_str!("audit.rs"),
    include_str!("files.rs"),
    include_str!("grants.rs"),
    include_str!("keys.rs"),
    include_str!("profiles.rs"),
    include_str!("risks.rs"),
    include_str!("runs.rs"),
    include_str!("servers.rs"),
    include_str!("sessions.rs"),
    include_str!("settings.rs"),
    include_str!("tokens.rs"),
    include_str!("tools.rs"),
    include_str!("upstream.rs"),
];

/// A test for each RPC that shows what it is for.
const TESTED: &[(&str, &str)] = &[
    ("ServerService/CreateServer", "a_new_server_has_its_defaults_and_an_unknown_state"),
    ("ServerService/GetServer", "a_server_is_found_by_id_and_by_name"),
    ("ServerService/ListServers", "servers_are_listed_by_name_and_pages_stay_stable_under_inserts"),
    ("ServerService/UpdateServer", "a_change_of_a_server_touches_only_what_is_set"),
    ("ServerService/DeleteServer", "a_removed_server_leaves_its_profiles_and_frees_its_name"),
    ("ServerService/TestServer", "a_test_takes_a_registered_server_or_a_url_and_not_both"),
    ("ServerService/RefreshServer", "a_server_that_answers_is_tested_listed_offered_and_called"),
    ("ToolService/ListTools", "tools_are_listed_by_server_and_name_with_what_their_definitions_say"),
    ("ToolService/UpdateTool", "an_override_decides_the_effective_hint_until_it_is_cleared"),
    ("ToolService/AcknowledgeTools", "what_moved_since_it_was_looked_at_is_not_acknowledged"),
    ("ProfileService/CreateProfile", "a_profile_holds_servers_with_all_or_some_of_their_tools"),
    ("ProfileService/GetProfile", "a_profile_is_found_by_id_and_by_name"),
    ("ProfileService/ListProfiles", "profiles_are_listed_by_name_in_pages"),
    ("ProfileService/UpdateProfile", "a_change_of_a_profile_adds_replaces_and_takes_out_servers"),
    ("ProfileService/DeleteProfile", "a_profile_in_use_cannot_be_removed_until_its_sessions_are_gone"),
    ("SettingsService/ListSettings", "every_setting_is_listed_with_default_and_bounds"),
    ("SettingsService/UpdateSettings", "settings_change_all_or_none"),
    ("ApiKeyService/CreateApiKey", "a_key_is_shown_once_and_stored_as_a_hash"),
    ("ApiKeyService/ListApiKeys", "keys_are_listed_newest_first_with_the_revoked_ones"),
    ("ApiKeyService/RevokeApiKey", "the_last_admin_key_cannot_be_revoked"),
    ("SessionService/CreateSession", "a_new_session_has_a_token_a_url_and_its_defaults"),
    ("SessionService/GetSession", "a_session_is_found_by_id_and_by_external_id"),
    ("SessionService/ListSessions", "sessions_are_listed_newest_first_and_pages_stay_stable_under_inserts"),
    ("SessionService/UpdateSession", "a_change_of_a_session_counts_at_once"),
    ("SessionService/DeleteSession", "a_deleted_session_is_gone_with_its_tokens_and_runs"),
    ("SessionService/IssueToken", "an_issued_token_is_good_beside_the_others"),
    ("SessionService/RotateToken", "rotation_revokes_the_other_tokens_of_the_actor_and_only_those"),
    ("SessionService/RevokeToken", "one_token_or_all_of_an_actor_can_be_revoked"),
    ("SessionService/ListTokens", "tokens_are_listed_newest_first_without_their_secrets"),
    ("SessionService/BeginRun", "an_actor_has_at_most_one_open_run"),
    ("SessionService/EndRun", "a_run_is_closed_once_and_closing_it_again_changes_nothing"),
    ("SessionService/ListGrants", "grants_are_listed_and_taken_back"),
    ("SessionService/RevokeGrants", "grants_are_listed_and_taken_back"),
    ("SessionService/GetToolsVersion", "a_server_that_answers_is_tested_listed_offered_and_called"),
    ("CallService/ListOfferedTools", "a_server_that_answers_is_tested_listed_offered_and_called"),
    ("CallService/CallTool", "a_server_that_answers_is_tested_listed_offered_and_called"),
    ("FileService/ListFiles", "files_are_listed_newest_first_with_their_call_in_pages"),
    ("FileService/GetFile", "a_file_is_read_back_from_wherever_it_is"),
    ("AuditService/ListCalls", "calls_are_listed_newest_first_and_each_filter_holds"),
    ("AuditService/GetCall", "one_call_comes_with_its_arguments_and_result"),
];

#[test]
fn every_rpc_in_the_proto_files_has_a_test() {
    for path in described().into_keys() {
        let tested = TESTED.iter().find(|(rpc, _)| path.ends_with(&format!(".{rpc}")));
        let Some((_, test)) = tested else { panic!("{path} has no test") };
        let marker = format!("async fn {test}()");
        assert!(SOURCES.iter().any(|source| source.contains(&marker)), "{path}: there is no test `{test}`");
    }
}
