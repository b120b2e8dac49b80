//! `SessionService`.

use std::sync::Arc;

use gatehouse_proto::gateway::v1::{self, session_service_server::SessionService};
use secrecy::ExposeSecret as _;
use tonic::{Request, Response, Status};

use super::{answer, methods, paged, upstream};
use crate::{
    convert::{
        BeginRun, Change, ListSessions, TokenOf, grants_to_revoke, lookup, mcp_session, run_to_end, token_to_revoke,
    },
    error::Error,
    registry::{
        State,
        session::{NewSession, SessionChange},
        workspace,
    },
    store,
};

/// Sessions, their tokens and runs.
#[derive(Debug)]
pub(super) struct Sessions(pub(super) Arc<State>);

impl Sessions {
    async fn create(&self, request: v1::CreateSessionRequest) -> Result<v1::CreateSessionResponse, Error> {
        let new = NewSession::try_from(request)?;
        workspace::check(self.0.files.workspaces(), &new.workspace).await?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let (made, token) = store::sessions::create(&mut transaction, &new, self.0.now()).await?;
        store::commit(transaction).await?;
        let session = made.into_inner();
        tracing::info!(session.id = %session.id, "session made");
        Ok(mcp_session(session, &token, &self.0.mcp_url))
    }

    async fn get(&self, request: v1::GetSessionRequest) -> Result<v1::GetSessionResponse, Error> {
        let key = lookup("session", &request.session)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let session = store::sessions::get(&mut connection, &key).await?;
        let runs = store::runs::open(&mut connection, session.id).await?;
        Ok(v1::GetSessionResponse {
            session: Some(session.into()),
            mcp_url: self.0.mcp_url.clone(),
            open_runs: runs.into_iter().map(v1::Run::from).collect(),
        })
    }

    async fn list(&self, request: v1::ListSessionsRequest) -> Result<v1::ListSessionsResponse, Error> {
        let list = ListSessions::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let profile = match &list.profile {
            Some(key) => Some(store::profiles::get(&mut connection, key).await?.id),
            None => None,
        };
        let rows = store::sessions::list(&mut connection, profile, list.after, list.size).await?;
        let (sessions, next_page_token) = paged(rows, list.size, |last| list.token(last));
        Ok(v1::ListSessionsResponse { sessions, next_page_token })
    }

    async fn update(&self, request: v1::UpdateSessionRequest) -> Result<v1::UpdateSessionResponse, Error> {
        let Change { key, change } = Change::<SessionChange>::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let session = store::sessions::update(&mut transaction, &key, &change, self.0.now()).await?;
        store::commit(transaction).await?;
        Ok(v1::UpdateSessionResponse { session: Some(session.into()) })
    }

    async fn delete(&self, request: v1::DeleteSessionRequest) -> Result<v1::DeleteSessionResponse, Error> {
        let key = lookup("session", &request.session)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let deleted = store::sessions::delete(&mut transaction, &key, self.0.now()).await?;
        store::commit(transaction).await?;
        if let Some(id) = deleted {
            tracing::info!(session.id = %id, "session deleted");
            self.0.upstream.session_ended(id);
        }
        Ok(v1::DeleteSessionResponse {})
    }

    async fn issue(&self, request: v1::IssueTokenRequest) -> Result<v1::IssueTokenResponse, Error> {
        let TokenOf { session, actor } = TokenOf::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let (token, secret) = store::tokens::issue(&mut transaction, &session, &actor, self.0.now()).await?;
        store::commit(transaction).await?;
        let secret = secret.expose_secret().to_owned();
        Ok(v1::IssueTokenResponse { session_token: Some(token.into()), token: secret })
    }

    async fn rotate(&self, request: v1::RotateTokenRequest) -> Result<v1::RotateTokenResponse, Error> {
        let TokenOf { session, actor } = TokenOf::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let (token, secret) = store::tokens::rotate(&mut transaction, &session, &actor, self.0.now()).await?;
        store::commit(transaction).await?;
        let secret = secret.expose_secret().to_owned();
        Ok(v1::RotateTokenResponse { session_token: Some(token.into()), token: secret })
    }

    async fn revoke(&self, request: v1::RevokeTokenRequest) -> Result<v1::RevokeTokenResponse, Error> {
        let (session, which) = token_to_revoke(&request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let revoked = store::tokens::revoke(&mut transaction, &session, &which, self.0.now()).await?;
        store::commit(transaction).await?;
        Ok(v1::RevokeTokenResponse { revoked: i32::try_from(revoked).unwrap_or(i32::MAX) })
    }

    async fn tokens(&self, request: v1::ListTokensRequest) -> Result<v1::ListTokensResponse, Error> {
        let key = lookup("session", &request.session)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let tokens = store::tokens::list(&mut connection, &key).await?;
        Ok(v1::ListTokensResponse { session_tokens: tokens.into_iter().map(v1::SessionToken::from).collect() })
    }

    async fn begin(&self, request: v1::BeginRunRequest) -> Result<v1::BeginRunResponse, Error> {
        let BeginRun { request_id, session, actor } = BeginRun::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let now = self.0.now();
        let run = store::runs::begin(&mut transaction, &session, &actor, request_id.as_deref(), now).await?;
        store::commit(transaction).await?;
        Ok(v1::BeginRunResponse { run: Some(run.into_inner().into()) })
    }

    async fn end(&self, request: v1::EndRunRequest) -> Result<v1::EndRunResponse, Error> {
        let run = run_to_end(&request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let run = store::runs::end(&mut transaction, run, self.0.now()).await?;
        store::commit(transaction).await?;
        Ok(v1::EndRunResponse { run: Some(run.into()) })
    }

    async fn grants(&self, request: v1::ListGrantsRequest) -> Result<v1::ListGrantsResponse, Error> {
        let key = lookup("session", &request.session)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let grants = store::grants::list(&mut connection, &key).await?;
        Ok(v1::ListGrantsResponse { grants: grants.into_iter().map(v1::Grant::from).collect() })
    }

    async fn revoke_grants(&self, request: v1::RevokeGrantsRequest) -> Result<v1::RevokeGrantsResponse, Error> {
        let (session, grant) = grants_to_revoke(&request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let revoked = store::grants::revoke(&mut transaction, &session, grant).await?;
        store::commit(transaction).await?;
        Ok(v1::RevokeGrantsResponse { revoked: i32::try_from(revoked).unwrap_or(i32::MAX) })
    }
}

#[tonic::async_trait]
impl SessionService for Sessions {
    async fn create_session(
        &self,
        request: Request<v1::CreateSessionRequest>,
    ) -> Result<Response<v1::CreateSessionResponse>, Status> {
        answer(&methods::CREATE_SESSION, request, |request, _| self.create(request)).await
    }

    async fn get_session(
        &self,
        request: Request<v1::GetSessionRequest>,
    ) -> Result<Response<v1::GetSessionResponse>, Status> {
        answer(&methods::GET_SESSION, request, |request, _| self.get(request)).await
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        answer(&methods::LIST_SESSIONS, request, |request, _| self.list(request)).await
    }

    async fn update_session(
        &self,
        request: Request<v1::UpdateSessionRequest>,
    ) -> Result<Response<v1::UpdateSessionResponse>, Status> {
        answer(&methods::UPDATE_SESSION, request, |request, _| self.update(request)).await
    }

    async fn delete_session(
        &self,
        request: Request<v1::DeleteSessionRequest>,
    ) -> Result<Response<v1::DeleteSessionResponse>, Status> {
        answer(&methods::DELETE_SESSION, request, |request, _| self.delete(request)).await
    }

    async fn issue_token(
        &self,
        request: Request<v1::IssueTokenRequest>,
    ) -> Result<Response<v1::IssueTokenResponse>, Status> {
        answer(&methods::ISSUE_TOKEN, request, |request, _| self.issue(request)).await
    }

    async fn rotate_token(
        &self,
        request: Request<v1::RotateTokenRequest>,
    ) -> Result<Response<v1::RotateTokenResponse>, Status> {
        answer(&methods::ROTATE_TOKEN, request, |request, _| self.rotate(request)).await
    }

    async fn revoke_token(
        &self,
        request: Request<v1::RevokeTokenRequest>,
    ) -> Result<Response<v1::RevokeTokenResponse>, Status> {
        answer(&methods::REVOKE_TOKEN, request, |request, _| self.revoke(request)).await
    }

    async fn list_tokens(
        &self,
        request: Request<v1::ListTokensRequest>,
    ) -> Result<Response<v1::ListTokensResponse>, Status> {
        answer(&methods::LIST_TOKENS, request, |request, _| self.tokens(request)).await
    }

    async fn begin_run(&self, request: Request<v1::BeginRunRequest>) -> Result<Response<v1::BeginRunResponse>, Status> {
        answer(&methods::BEGIN_RUN, request, |request, _| self.begin(request)).await
    }

    async fn end_run(&self, request: Request<v1::EndRunRequest>) -> Result<Response<v1::EndRunResponse>, Status> {
        answer(&methods::END_RUN, request, |request, _| self.end(request)).await
    }

    async fn list_grants(
        &self,
        request: Request<v1::ListGrantsRequest>,
    ) -> Result<Response<v1::ListGrantsResponse>, Status> {
        answer(&methods::LIST_GRANTS, request, |request, _| self.grants(request)).await
    }

    async fn revoke_grants(
        &self,
        request: Request<v1::RevokeGrantsRequest>,
    ) -> Result<Response<v1::RevokeGrantsResponse>, Status> {
        answer(&methods::REVOKE_GRANTS, request, |request, _| self.revoke_grants(request)).await
    }

    async fn get_tools_version(
        &self,
        request: Request<v1::GetToolsVersionRequest>,
    ) -> Result<Response<v1::GetToolsVersionResponse>, Status> {
        answer(&methods::GET_TOOLS_VERSION, request, |request, _| upstream::tools_version(&self.0, request)).await
    }
}
