//! `ApiKeyService`.

use std::sync::Arc;

use gatehouse_platform::auth::Caller;
use gatehouse_proto::gateway::v1::{self, api_key_service_server::ApiKeyService};
use secrecy::ExposeSecret as _;
use tonic::{Request, Response, Status};

use super::{answer, methods, paged};
use crate::{
    convert::{CreateKey, ListKeys, key_to_revoke},
    error::Error,
    registry::State,
    store,
};

/// The API keys.
#[derive(Debug)]
pub(super) struct Keys(pub(super) Arc<State>);

impl Keys {
    async fn create(
        &self,
        request: v1::CreateApiKeyRequest,
        caller: Caller,
    ) -> Result<v1::CreateApiKeyResponse, Error> {
        let CreateKey { name, scope } = CreateKey::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let (key, secret) = store::api_keys::create(&mut transaction, &name, scope, self.0.now()).await?;
        store::commit(transaction).await?;
        tracing::info!(key.id = %key.id, key.scope = ?scope, caller.name = caller.name(), "API key made");
        // This is where the secret leaves; it is shown once.
        let secret = secret.expose_secret().to_owned();
        Ok(v1::CreateApiKeyResponse { api_key: Some(key.into()), secret })
    }

    async fn list(&self, request: v1::ListApiKeysRequest) -> Result<v1::ListApiKeysResponse, Error> {
        let list = ListKeys::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let rows = store::api_keys::list(&mut connection, list.after, list.size).await?;
        let (api_keys, next_page_token) = paged(rows, list.size, ListKeys::token);
        Ok(v1::ListApiKeysResponse { api_keys, next_page_token })
    }

    async fn revoke(
        &self,
        request: v1::RevokeApiKeyRequest,
        caller: Caller,
    ) -> Result<v1::RevokeApiKeyResponse, Error> {
        let key = key_to_revoke(&request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let key = store::api_keys::revoke(&mut transaction, &key, self.0.now()).await?;
        store::commit(transaction).await?;
        tracing::info!(key.id = %key.id, caller.name = caller.name(), "API key revoked");
        Ok(v1::RevokeApiKeyResponse { api_key: Some(key.into()) })
    }
}

#[tonic::async_trait]
impl ApiKeyService for Keys {
    async fn create_api_key(
        &self,
        request: Request<v1::CreateApiKeyRequest>,
    ) -> Result<Response<v1::CreateApiKeyResponse>, Status> {
        answer(&methods::CREATE_API_KEY, request, |request, caller| self.create(request, caller)).await
    }

    async fn list_api_keys(
        &self,
        request: Request<v1::ListApiKeysRequest>,
    ) -> Result<Response<v1::ListApiKeysResponse>, Status> {
        answer(&methods::LIST_API_KEYS, request, |request, _| self.list(request)).await
    }

    async fn revoke_api_key(
        &self,
        request: Request<v1::RevokeApiKeyRequest>,
    ) -> Result<Response<v1::RevokeApiKeyResponse>, Status> {
        answer(&methods::REVOKE_API_KEY, request, |request, caller| self.revoke(request, caller)).await
    }
}
