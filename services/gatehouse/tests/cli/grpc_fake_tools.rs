//! The fake's tools.

use gatehouse_proto::gateway::v1 as pb;
use tonic::Request;

use super::grpc_fake::{Answer, Fake, HOSTILE, at, reply};

fn risk(kind: pb::RiskKind, place: &str, excerpt: &str, before: &str) -> pb::Risk {
    let (excerpt, before) = (excerpt.to_owned(), before.to_owned());
    pb::Risk { kind: kind.into(), r#where: place.to_owned(), excerpt, before }
}

fn tool() -> pb::Tool {
    pb::Tool {
        server: "orders".to_owned(),
        name: "get_order".to_owned(),
        exposed_name: "orders__get_order".to_owned(),
        description: format!("Reads an order {HOSTILE}"),
        effective: Some(pb::ToolHints { read_only: Some(true), open_world: Some(true), ..pb::ToolHints::default() }),
        overrides: Some(pb::ToolHints { read_only: Some(true), ..pb::ToolHints::default() }),
        input_schema_json: "{\"type\":\"object\"}".to_owned(),
        policy: pb::Policy::Confirm.into(),
        default_policy: pb::Policy::Allow.into(),
        effective_policy: pb::Policy::Confirm.into(),
        sources: Some(pb::HintSources {
            read_only: pb::HintSource::Admin.into(),
            destructive: pb::HintSource::Default.into(),
            idempotent: pb::HintSource::Server.into(),
            open_world: pb::HintSource::Default.into(),
        }),
        risks: vec![
            risk(pb::RiskKind::LooserHint, "/annotations/readOnlyHint", "true", ""),
            risk(pb::RiskKind::InstructsModel, "/description", &format!("You must {HOSTILE}"), ""),
        ],
        fingerprint: "ab12".to_owned(),
        acknowledged_at: at(0),
        acknowledged_by: "ada".to_owned(),
        ..pb::Tool::default()
    }
}

#[tonic::async_trait]
impl pb::tool_service_server::ToolService for Fake {
    async fn list_tools(&self, request: Request<pb::ListToolsRequest>) -> Answer<pb::ListToolsResponse> {
        self.note(request);
        reply(pb::ListToolsResponse { tools: vec![tool()], next_page_token: String::new() })
    }

    async fn update_tool(&self, request: Request<pb::UpdateToolRequest>) -> Answer<pb::UpdateToolResponse> {
        self.note(request);
        reply(pb::UpdateToolResponse { tool: Some(tool()) })
    }

    async fn acknowledge_tools(
        &self,
        request: Request<pb::AcknowledgeToolsRequest>,
    ) -> Answer<pb::AcknowledgeToolsResponse> {
        let names = self.note(request).tools.into_iter().map(|tool| tool.name).collect();
        reply(pb::AcknowledgeToolsResponse { acknowledged: names, moved: Vec::new() })
    }
}
