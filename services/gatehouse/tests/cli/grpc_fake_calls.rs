//! The rest of the fake: calls, audit, settings, keys.

use std::{collections::HashMap, sync::Arc};

use gatehouse_platform::error::Reason;
use gatehouse_proto::gateway::v1::{self as pb, call_tool_response::Event};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status};

use super::grpc_fake::{Answer, Fake, HOSTILE, at, refuse, reply};

type Sent = Result<pb::CallToolResponse, Status>;

fn result(text: &str, is_error: bool) -> Sent {
    let image = serde_json::json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw==" });
    let content = serde_json::json!([{ "type": "text", "text": text }, image]).to_string();
    let result = pb::CallResult { call_id: "c-1".to_owned(), content_json: content, is_error };
    Ok(pb::CallToolResponse { event: Some(Event::Result(result)) })
}

fn progress() -> Sent {
    let progress = pb::Progress { progress: 1.0, total: Some(2.0), message: format!("half {HOSTILE}") };
    Ok(pb::CallToolResponse { event: Some(Event::Progress(progress)) })
}

#[tonic::async_trait]
impl pb::call_service_server::CallService for Fake {
    async fn list_offered_tools(
        &self,
        request: Request<pb::ListOfferedToolsRequest>,
    ) -> Answer<pb::ListOfferedToolsResponse> {
        self.note(request);
        let definition_json = serde_json::json!({ "name": "orders__get_order", "description": HOSTILE }).to_string();
        let (name, server) = ("orders__get_order".to_owned(), "orders".to_owned());
        let unavailable = pb::UnavailableServer { server: "crm".to_owned(), message: HOSTILE.to_owned() };
        reply(pb::ListOfferedToolsResponse {
            tools: vec![pb::OfferedTool { name, server, definition_json }],
            unavailable: vec![unavailable],
        })
    }

    type CallToolStream = ReceiverStream<Sent>;

    async fn call_tool(&self, request: Request<pb::CallToolRequest>) -> Answer<Self::CallToolStream> {
        let request = self.note(request);
        let (events, stream) = mpsc::channel(4);
        let told = match request.tool.as_str() {
            "orders__get_order" => [Some(progress()), Some(result(&format!("order A-1 {HOSTILE}"), false))],
            "orders__fails" => [None, Some(result("Error: no such order", true))],
            "slow" => [Some(progress()), None],
            _ => return refuse(Reason::NotFound, "this session is not offered such a tool"),
        };
        for event in told.into_iter().flatten() {
            events.send(event).await.map_err(|_| Status::cancelled("gone"))?;
        }
        if request.tool == "slow" {
            let cancelled = Arc::clone(&self.cancelled);
            tokio::spawn(async move {
                events.closed().await;
                cancelled.notify_one();
            });
        }
        reply(ReceiverStream::new(stream))
    }
}

fn call() -> pb::Call {
    pb::Call {
        id: "c-1".to_owned(),
        session_id: "s-1".to_owned(),
        server: "orders".to_owned(),
        tool: "get_order".to_owned(),
        outcome: pb::CallOutcome::ToolError.into(),
        started_at: at(0),
        duration: Some(prost_types::Duration { seconds: 0, nanos: 12_300_000 }),
        result_bytes: 1_500,
        error: HOSTILE.to_owned(),
        hints: HashMap::from([("readOnly".to_owned(), true)]),
        ..pb::Call::default()
    }
}

#[tonic::async_trait]
impl pb::audit_service_server::AuditService for Fake {
    async fn list_calls(&self, request: Request<pb::ListCallsRequest>) -> Answer<pb::ListCallsResponse> {
        self.note(request);
        reply(pb::ListCallsResponse { calls: vec![call(), call()], next_page_token: "more".to_owned() })
    }

    async fn get_call(&self, request: Request<pb::GetCallRequest>) -> Answer<pb::GetCallResponse> {
        self.note(request);
        reply(pb::GetCallResponse { call: Some(call()) })
    }
}

fn setting() -> pb::Setting {
    pb::Setting {
        key: "tools.maxNameChars".to_owned(),
        value_json: "60".to_owned(),
        default_json: "64".to_owned(),
        description: "Longest tool name".to_owned(),
        updated_at: at(0),
        updated_by: HOSTILE.to_owned(),
    }
}

#[tonic::async_trait]
impl pb::settings_service_server::SettingsService for Fake {
    async fn list_settings(&self, request: Request<pb::ListSettingsRequest>) -> Answer<pb::ListSettingsResponse> {
        self.note(request);
        reply(pb::ListSettingsResponse { settings: vec![setting()] })
    }

    async fn update_settings(&self, request: Request<pb::UpdateSettingsRequest>) -> Answer<pb::UpdateSettingsResponse> {
        let request = self.note(request);
        if request.set.keys().chain(&request.reset).any(|key| key != "tools.maxNameChars") {
            return refuse(Reason::InvalidArgument, "there is no such setting");
        }
        reply(pb::UpdateSettingsResponse { settings: vec![setting()] })
    }
}

fn key() -> Option<pb::ApiKey> {
    let (id, prefix) = ("k-1".to_owned(), "ghk_a".to_owned());
    let scope = pb::ApiKeyScope::Sessions.into();
    Some(pb::ApiKey { id, name: format!("chat {HOSTILE}"), scope, prefix, created_at: at(0), ..pb::ApiKey::default() })
}

#[tonic::async_trait]
impl pb::api_key_service_server::ApiKeyService for Fake {
    async fn create_api_key(&self, request: Request<pb::CreateApiKeyRequest>) -> Answer<pb::CreateApiKeyResponse> {
        self.note(request);
        reply(pb::CreateApiKeyResponse { api_key: key(), secret: "ghk_fresh".to_owned() })
    }

    async fn list_api_keys(&self, request: Request<pb::ListApiKeysRequest>) -> Answer<pb::ListApiKeysResponse> {
        self.note(request);
        reply(pb::ListApiKeysResponse { api_keys: key().into_iter().collect(), next_page_token: String::new() })
    }

    async fn revoke_api_key(&self, request: Request<pb::RevokeApiKeyRequest>) -> Answer<pb::RevokeApiKeyResponse> {
        self.note(request);
        reply(pb::RevokeApiKeyResponse { api_key: key() })
    }
}
