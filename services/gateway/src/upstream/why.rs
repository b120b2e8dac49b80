//! Pure: why a server could not be used, in words for an admin.

use gatehouse_mcp::{
    client::{OpenError, RequestError},
    lists::ListError,
};

/// A connection that could not be opened, in words for an admin and the model.
pub(crate) fn open_error_words(error: &OpenError) -> String {
    match error {
        OpenError::Request(error) => request_error_words(error),
        other => other.to_string(),
    }
}

/// A list that could not be read, in words for an admin.
pub(crate) fn list_error_words(error: &ListError) -> String {
    match error {
        ListError::Request(error) => request_error_words(error),
        other => format!("its list cannot be used: {other}"),
    }
}

/// A request that failed, in words for an admin.
pub(crate) fn request_error_words(error: &RequestError) -> String {
    match error {
        RequestError::Unauthorized { .. } => {
            "it does not accept the credentials (401): check the server's headers".to_owned()
        }
        RequestError::Forbidden { .. } => "it refuses access (403): check what the credentials allow".to_owned(),
        RequestError::Http { status: 404, .. } => "there is nothing at this path (404): check the URL".to_owned(),
        other => gatehouse_types::shown::line(&other.to_string(), 500),
    }
}
