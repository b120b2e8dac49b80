//! The one error table: what went wrong, as gRPC status, HTTP status and JSON-RPC code, and whether trying again can help.
//!
//! A service has one error enum of its own and implements [`Failure`] for it. Handlers end in `.map_err(to_status)`; nobody
//! else builds a [`tonic::Status`]. The internal message (`Display` and sources) is logged once, here; the external one is
//! sent. `docs/errors.md` has a heading for each [`Reason`].

use std::{collections::HashMap, error::Error, fmt::Write as _};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// Domain of `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "gatehouse";

/// Why something failed, for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A field has a value that it cannot have.
    InvalidArgument,
    /// No credential, or none that is known.
    Unauthenticated,
    /// The credential does not allow this.
    PermissionDenied,
    /// There is no such thing.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// Not possible in the present state.
    FailedPrecondition,
    /// A bound was reached.
    ResourceExhausted,
    /// Something that is needed does not answer.
    Unavailable,
    /// It took too long.
    DeadlineExceeded,
    /// The caller gave up.
    Cancelled,
    /// Not built in this version.
    Unimplemented,
    /// A defect, or a broken database.
    Internal,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The reason.
    pub reason: Reason,
    /// `google.rpc.ErrorInfo.reason`.
    pub name: &'static str,
    /// gRPC status.
    pub grpc: Code,
    /// HTTP status.
    pub http: u16,
    /// JSON-RPC code (MCP 2025-11-25, basic).
    pub json_rpc: i32,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

/// The table.
pub const TABLE: &[Row] = &[
    row(Reason::InvalidArgument, "INVALID_ARGUMENT", Code::InvalidArgument, 400, -32602, false),
    row(Reason::Unauthenticated, "UNAUTHENTICATED", Code::Unauthenticated, 401, -32600, false),
    row(Reason::PermissionDenied, "PERMISSION_DENIED", Code::PermissionDenied, 403, -32600, false),
    row(Reason::NotFound, "NOT_FOUND", Code::NotFound, 404, -32602, false),
    row(Reason::AlreadyExists, "ALREADY_EXISTS", Code::AlreadyExists, 409, -32602, false),
    row(Reason::FailedPrecondition, "FAILED_PRECONDITION", Code::FailedPrecondition, 409, -32600, false),
    row(Reason::ResourceExhausted, "RESOURCE_EXHAUSTED", Code::ResourceExhausted, 429, -32603, true),
    row(Reason::Unavailable, "UNAVAILABLE", Code::Unavailable, 503, -32603, true),
    row(Reason::DeadlineExceeded, "DEADLINE_EXCEEDED", Code::DeadlineExceeded, 504, -32603, true),
    row(Reason::Cancelled, "CANCELLED", Code::Cancelled, 499, -32603, false),
    row(Reason::Unimplemented, "UNIMPLEMENTED", Code::Unimplemented, 501, -32601, false),
    row(Reason::Internal, "INTERNAL", Code::Internal, 500, -32603, false),
];

const fn row(reason: Reason, name: &'static str, grpc: Code, http: u16, json_rpc: i32, retryable: bool) -> Row {
    Row { reason, name, grpc, http, json_rpc, retryable }
}

impl Reason {
    /// This reason's row. The table has one for each, in the order of the enum; a test holds it to that.
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

/// A field with a wrong value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// Path of the field as in the request, such as `servers[2].tools`.
    pub field: String,
    /// What it takes, for people.
    pub description: String,
}

impl FieldViolation {
    /// A violation of `field`.
    pub fn new(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self { field: field.into(), description: description.into() }
    }
}

/// What a service's error enum says to the outside. `Display` and `source` are for the log.
pub trait Failure: Error + Send + Sync + 'static {
    /// The row of the table.
    fn reason(&self) -> Reason;

    /// What the caller reads: what happened and what to do next. No SQL, no inner addresses, no secrets.
    fn external(&self) -> String;

    /// The fields that are wrong; for [`Reason::InvalidArgument`].
    fn fields(&self) -> Vec<FieldViolation> {
        Vec::new()
    }
}

/// An error and its sources in one line, for the log.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        // Writing to a String does not fail.
        let _ = write!(text, ": {inner}");
        source = inner.source();
    }
    text
}

/// The gRPC status of an error, with `ErrorInfo` and `BadRequest` details. Logs the internal message once.
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub fn to_status<F: Failure>(failure: F) -> Status {
    let row = failure.reason().row();
    let internal = chain(&failure);
    match failure.reason() {
        Reason::Internal => tracing::error!(error.reason = row.name, error.message = internal, "request failed"),
        Reason::Unavailable => tracing::warn!(error.reason = row.name, error.message = internal, "request failed"),
        _ => tracing::debug!(error.reason = row.name, error.message = internal, "request refused"),
    }
    let mut details = ErrorDetails::new();
    details.set_error_info(row.name, DOMAIN, HashMap::new());
    for violation in failure.fields() {
        details.add_bad_request_violation(violation.field, violation.description);
    }
    Status::with_error_details(row.grpc, failure.external(), details)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("inner words")]
    struct Wrong;

    impl Failure for Wrong {
        fn reason(&self) -> Reason {
            Reason::InvalidArgument
        }

        fn external(&self) -> String {
            "`name` is wrong".to_owned()
        }

        fn fields(&self) -> Vec<FieldViolation> {
            vec![FieldViolation::new("name", "takes a to z")]
        }
    }

    #[test]
    fn the_table_has_one_row_for_each_reason_in_the_order_of_the_enum() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(row.reason as usize, place);
            assert_eq!(row.reason.row(), row);
        }
        assert_eq!(TABLE.len(), Reason::Internal as usize + 1);
    }

    #[test]
    fn a_status_names_the_reason_and_each_wrong_field_and_keeps_inner_words_inside() {
        let status = to_status(Wrong);
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "`name` is wrong"));
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "INVALID_ARGUMENT");
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "name");
        assert!(!format!("{status:?}").contains("inner words"));
    }
}
