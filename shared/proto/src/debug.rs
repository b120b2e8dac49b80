//! `Debug` of the messages that hold secrets. The generated one would print them; these print the name alone.

use std::fmt;

use crate::gateway::v1::{
    CreateApiKeyResponse, CreateServerRequest, CreateSessionResponse, IssueTokenResponse, RotateTokenResponse,
    TestServerRequest, UpdateServerRequest,
};

fn name_alone(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    f.debug_struct(name).finish_non_exhaustive()
}

impl fmt::Debug for CreateServerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_alone(f, "CreateServerRequest")
    }
}

impl fmt::Debug for UpdateServerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_alone(f, "UpdateServerRequest")
    }
}

impl fmt::Debug for TestServerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_alone(f, "TestServerRequest")
    }
}

impl fmt::Debug for CreateSessionResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_alone(f, "CreateSessionResponse")
    }
}

impl fmt::Debug for IssueTokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_alone(f, "IssueTokenResponse")
    }
}

impl fmt::Debug for RotateTokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_alone(f, "RotateTokenResponse")
    }
}

impl fmt::Debug for CreateApiKeyResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name_alone(f, "CreateApiKeyResponse")
    }
}
