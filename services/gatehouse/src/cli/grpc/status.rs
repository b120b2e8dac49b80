//! gRPC statuses and broken connections in words that say what to do next.

use std::error::Error;

use tonic::{Code as Grpc, Status, transport};
use tonic_types::StatusExt as _;

use super::super::{
    discover::Target,
    failure::{Code, Failure},
};

/// An error and its sources in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let words = inner.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = inner.source();
    }
    text
}

/// Nothing answers at the endpoint.
pub(super) fn unreachable(target: &Target, error: &transport::Error) -> Failure {
    let endpoint = &target.endpoint;
    let cause = chain(error);
    let failure = Failure::new(Code::Unavailable, format!("the server at {endpoint} cannot be reached: {cause}"));
    let is_tls = endpoint.starts_with("https://") && !cause.contains("refused") && !cause.contains("dns");
    if is_tls {
        return failure
            .next("give --ca with the PEM file of the certificate authority that signed the server's certificate")
            .next("check that the server has TLS switched on (GATEHOUSE_GRPC_TLS_CERT)");
    }
    failure.next(format!("start it with `gatehouse up`, or give {}", target.service.option()))
}

/// What the server refused.
pub(super) fn failure(status: &Status, looked: &str, has_key: bool) -> Failure {
    let code = code(status.code());
    let message = if status.message().is_empty() { code.word().to_owned() } else { status.message().to_owned() };
    let mut failure = Failure::new(code, message);
    if let Some(bad) = status.get_details_bad_request() {
        failure.fields = bad.field_violations.into_iter().map(|found| (found.field, found.description)).collect();
    }
    match code {
        Code::Unauthenticated if has_key => failure
            .next(format!("the API key from {looked} is not known there, or it was revoked; give another one"))
            .next("with `gatehouse up` the key is in the file admin.key of its data folder (--data)"),
        Code::Unauthenticated => failure
            .next(format!("no API key was found; it was looked for in: {looked}"))
            .next("with `gatehouse up` the key is in the file admin.key of its data folder (--data)"),
        Code::PermissionDenied => {
            failure.next("use a key of scope `admin`; with `gatehouse up` it is admin.key in its data folder (--data)")
        }
        Code::DeadlineExceeded => failure.next("give a longer --timeout, such as `--timeout 2m`"),
        Code::Unavailable => failure.next("try again; when it stays, look into the server's log"),
        Code::Unimplemented => {
            failure.next("the server is of another version than this command; use the same for both")
        }
        Code::Internal => failure.next("look into the server's log"),
        _ => failure,
    }
}

fn code(code: Grpc) -> Code {
    match code {
        Grpc::InvalidArgument | Grpc::OutOfRange => Code::InvalidArgument,
        Grpc::Unauthenticated => Code::Unauthenticated,
        Grpc::PermissionDenied => Code::PermissionDenied,
        Grpc::NotFound => Code::NotFound,
        Grpc::AlreadyExists => Code::AlreadyExists,
        Grpc::FailedPrecondition | Grpc::Aborted => Code::FailedPrecondition,
        Grpc::ResourceExhausted => Code::ResourceExhausted,
        Grpc::Unavailable => Code::Unavailable,
        Grpc::DeadlineExceeded => Code::DeadlineExceeded,
        Grpc::Cancelled => Code::Cancelled,
        Grpc::Unimplemented => Code::Unimplemented,
        Grpc::Ok | Grpc::Unknown | Grpc::Internal | Grpc::DataLoss => Code::Internal,
    }
}
