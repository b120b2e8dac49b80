//! Profiles.

use gatehouse_platform::error::Reason;
use gatehouse_proto::gateway::v1 as pb;
use tonic::Request;

use super::grpc_fake::{Answer, Fake, HOSTILE, at, refuse, reply};

fn profile(name: &str) -> Option<pb::Profile> {
    let server = pb::ProfileServer { server: "orders".to_owned(), tools: vec![HOSTILE.to_owned()], only_tools: true };
    Some(pb::Profile { name: name.to_owned(), servers: vec![server], created_at: at(0), ..pb::Profile::default() })
}

#[tonic::async_trait]
impl pb::profile_service_server::ProfileService for Fake {
    async fn create_profile(&self, request: Request<pb::CreateProfileRequest>) -> Answer<pb::CreateProfileResponse> {
        reply(pb::CreateProfileResponse { profile: profile(&self.note(request).name) })
    }

    async fn get_profile(&self, request: Request<pb::GetProfileRequest>) -> Answer<pb::GetProfileResponse> {
        reply(pb::GetProfileResponse { profile: profile(&self.note(request).profile) })
    }

    async fn list_profiles(&self, request: Request<pb::ListProfilesRequest>) -> Answer<pb::ListProfilesResponse> {
        self.note(request);
        reply(pb::ListProfilesResponse { profiles: profile("shop").into_iter().collect(), ..Default::default() })
    }

    async fn update_profile(&self, request: Request<pb::UpdateProfileRequest>) -> Answer<pb::UpdateProfileResponse> {
        reply(pb::UpdateProfileResponse { profile: profile(&self.note(request).profile) })
    }

    async fn delete_profile(&self, request: Request<pb::DeleteProfileRequest>) -> Answer<pb::DeleteProfileResponse> {
        self.note(request);
        refuse(Reason::FailedPrecondition, "a session uses this profile")
    }
}
