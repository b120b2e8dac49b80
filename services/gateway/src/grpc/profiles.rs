//! `ProfileService`.

use std::sync::Arc;

use gatehouse_proto::gateway::v1::{self, profile_service_server::ProfileService};
use tonic::{Request, Response, Status};

use super::{answer, methods, paged};
use crate::{
    convert::{Change, ListProfiles, lookup},
    error::Error,
    registry::{
        State,
        profile::{NewProfile, ProfileChange},
    },
    store,
};

/// The profiles.
#[derive(Debug)]
pub(super) struct Profiles(pub(super) Arc<State>);

impl Profiles {
    async fn create(&self, request: v1::CreateProfileRequest) -> Result<v1::CreateProfileResponse, Error> {
        let new = NewProfile::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let made = store::profiles::create(&mut transaction, &new, self.0.now()).await?;
        store::commit(transaction).await?;
        Ok(v1::CreateProfileResponse { profile: Some(made.into_inner().into()) })
    }

    async fn get(&self, request: v1::GetProfileRequest) -> Result<v1::GetProfileResponse, Error> {
        let key = lookup("profile", &request.profile)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let profile = store::profiles::get(&mut connection, &key).await?;
        Ok(v1::GetProfileResponse { profile: Some(profile.into()) })
    }

    async fn list(&self, request: v1::ListProfilesRequest) -> Result<v1::ListProfilesResponse, Error> {
        let list = ListProfiles::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let rows = store::profiles::list(&mut connection, list.after.as_deref(), list.size).await?;
        let (profiles, next_page_token) = paged(rows, list.size, ListProfiles::token);
        Ok(v1::ListProfilesResponse { profiles, next_page_token })
    }

    async fn update(&self, request: v1::UpdateProfileRequest) -> Result<v1::UpdateProfileResponse, Error> {
        let Change { key, change } = Change::<ProfileChange>::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let profile = store::profiles::update(&mut transaction, &key, &change, self.0.now()).await?;
        store::commit(transaction).await?;
        Ok(v1::UpdateProfileResponse { profile: Some(profile.into()) })
    }

    async fn delete(&self, request: v1::DeleteProfileRequest) -> Result<v1::DeleteProfileResponse, Error> {
        let key = lookup("profile", &request.profile)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        store::profiles::delete(&mut transaction, &key).await?;
        store::commit(transaction).await?;
        Ok(v1::DeleteProfileResponse {})
    }
}

#[tonic::async_trait]
impl ProfileService for Profiles {
    async fn create_profile(
        &self,
        request: Request<v1::CreateProfileRequest>,
    ) -> Result<Response<v1::CreateProfileResponse>, Status> {
        answer(&methods::CREATE_PROFILE, request, |request, _| self.create(request)).await
    }

    async fn get_profile(
        &self,
        request: Request<v1::GetProfileRequest>,
    ) -> Result<Response<v1::GetProfileResponse>, Status> {
        answer(&methods::GET_PROFILE, request, |request, _| self.get(request)).await
    }

    async fn list_profiles(
        &self,
        request: Request<v1::ListProfilesRequest>,
    ) -> Result<Response<v1::ListProfilesResponse>, Status> {
        answer(&methods::LIST_PROFILES, request, |request, _| self.list(request)).await
    }

    async fn update_profile(
        &self,
        request: Request<v1::UpdateProfileRequest>,
    ) -> Result<Response<v1::UpdateProfileResponse>, Status> {
        answer(&methods::UPDATE_PROFILE, request, |request, _| self.update(request)).await
    }

    async fn delete_profile(
        &self,
        request: Request<v1::DeleteProfileRequest>,
    ) -> Result<Response<v1::DeleteProfileResponse>, Status> {
        answer(&methods::DELETE_PROFILE, request, |request, _| self.delete(request)).await
    }
}
