//! The sessions of the fake.

use gatehouse_platform::error::Reason;
use gatehouse_proto::gateway::v1 as pb;
use tonic::Request;

use super::grpc_fake::{Answer, Fake, HOSTILE, TOKEN, at, refuse, reply};

fn session() -> Option<pb::Session> {
    Some(pb::Session {
        id: "s-1".to_owned(),
        external_id: HOSTILE.to_owned(),
        profile: "shop".to_owned(),
        engine: pb::EngineKind::Codex.into(),
        created_at: at(0),
        ..pb::Session::default()
    })
}

fn token() -> Option<pb::SessionToken> {
    Some(pb::SessionToken { id: "t-1".to_owned(), prefix: "ghs_t".to_owned(), created_at: at(0), ..Default::default() })
}

fn run() -> Option<pb::Run> {
    Some(pb::Run { id: "r-1".to_owned(), began_at: at(0), ..pb::Run::default() })
}

const MCP_URL: &str = "http://127.0.0.1:7300/mcp";

#[tonic::async_trait]
impl pb::session_service_server::SessionService for Fake {
    async fn create_session(&self, request: Request<pb::CreateSessionRequest>) -> Answer<pb::CreateSessionResponse> {
        if self.note(request).profile != "shop" {
            return refuse(Reason::NotFound, "there is no such profile");
        }
        reply(pb::CreateSessionResponse { session: session(), token: TOKEN.to_owned(), mcp_url: MCP_URL.to_owned() })
    }

    async fn get_session(&self, request: Request<pb::GetSessionRequest>) -> Answer<pb::GetSessionResponse> {
        if self.note(request).session.starts_with("01") {
            return refuse(Reason::NotFound, "there is no such session");
        }
        let open_runs = run().into_iter().collect();
        reply(pb::GetSessionResponse { session: session(), mcp_url: MCP_URL.to_owned(), open_runs })
    }

    async fn list_sessions(&self, request: Request<pb::ListSessionsRequest>) -> Answer<pb::ListSessionsResponse> {
        self.note(request);
        reply(pb::ListSessionsResponse { sessions: session().into_iter().collect(), ..Default::default() })
    }

    async fn update_session(&self, request: Request<pb::UpdateSessionRequest>) -> Answer<pb::UpdateSessionResponse> {
        self.note(request);
        reply(pb::UpdateSessionResponse { session: session() })
    }

    async fn delete_session(&self, request: Request<pb::DeleteSessionRequest>) -> Answer<pb::DeleteSessionResponse> {
        self.note(request);
        reply(pb::DeleteSessionResponse {})
    }

    async fn issue_token(&self, request: Request<pb::IssueTokenRequest>) -> Answer<pb::IssueTokenResponse> {
        self.note(request);
        reply(pb::IssueTokenResponse { session_token: token(), token: TOKEN.to_owned() })
    }

    async fn rotate_token(&self, request: Request<pb::RotateTokenRequest>) -> Answer<pb::RotateTokenResponse> {
        self.note(request);
        reply(pb::RotateTokenResponse { session_token: token(), token: TOKEN.to_owned() })
    }

    async fn revoke_token(&self, request: Request<pb::RevokeTokenRequest>) -> Answer<pb::RevokeTokenResponse> {
        self.note(request);
        reply(pb::RevokeTokenResponse { revoked: 1 })
    }

    async fn list_tokens(&self, request: Request<pb::ListTokensRequest>) -> Answer<pb::ListTokensResponse> {
        self.note(request);
        reply(pb::ListTokensResponse { session_tokens: token().into_iter().collect() })
    }

    async fn begin_run(&self, request: Request<pb::BeginRunRequest>) -> Answer<pb::BeginRunResponse> {
        self.note(request);
        reply(pb::BeginRunResponse { run: run() })
    }

    async fn end_run(&self, request: Request<pb::EndRunRequest>) -> Answer<pb::EndRunResponse> {
        self.note(request);
        reply(pb::EndRunResponse { run: run() })
    }

    async fn list_grants(&self, request: Request<pb::ListGrantsRequest>) -> Answer<pb::ListGrantsResponse> {
        self.note(request);
        let grant = pb::Grant {
            id: "0190".to_owned(),
            server: "orders".to_owned(),
            tool: "add_note".to_owned(),
            granted_by: "ann\u{1b}[31m".to_owned(),
            ..pb::Grant::default()
        };
        reply(pb::ListGrantsResponse { grants: vec![grant] })
    }

    async fn revoke_grants(&self, request: Request<pb::RevokeGrantsRequest>) -> Answer<pb::RevokeGrantsResponse> {
        self.note(request);
        reply(pb::RevokeGrantsResponse { revoked: 1 })
    }

    async fn get_tools_version(
        &self,
        request: Request<pb::GetToolsVersionRequest>,
    ) -> Answer<pb::GetToolsVersionResponse> {
        self.note(request);
        reply(pb::GetToolsVersionResponse { version: "abc".to_owned(), tool_count: 1 })
    }
}
