//! What can go wrong in a request.

use gatehouse_platform::error::{Failure, FieldViolation, Reason};

use crate::store::{self, DbError};

/// Everything that a request can fail with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request are wrong; all of them are listed.
    #[error("{} wrong fields", .0.len())]
    Invalid(Vec<FieldViolation>),
    /// There is no such card.
    #[error("no such card")]
    NotFound(String),
    /// The RPC took longer than its deadline.
    #[error("deadline exceeded")]
    DeadlineExceeded,
    /// The reader of a stream does not keep up with it.
    #[error("a reader is too slow")]
    TooSlow,
    /// The server ends, and with it what waits at it.
    #[error("the server ends")]
    Ending,
    /// Postgres refused, or did not answer.
    #[error("database")]
    Database(#[from] DbError),
    /// A stored row is not what it must be. The words are for the log.
    #[error("broken: {0}")]
    Broken(String),
}

impl Error {
    /// A single wrong field.
    pub fn field(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldViolation::new(field, description)])
    }
}

impl Failure for Error {
    fn reason(&self) -> Reason {
        match self {
            Self::Invalid(_) => Reason::InvalidArgument,
            Self::NotFound(_) => Reason::NotFound,
            Self::DeadlineExceeded => Reason::DeadlineExceeded,
            Self::TooSlow => Reason::ResourceExhausted,
            Self::Ending => Reason::Unavailable,
            Self::Database(error) if store::is_unavailable(error) => Reason::Unavailable,
            Self::Database(_) | Self::Broken(_) => Reason::Internal,
        }
    }

    fn external(&self) -> String {
        match self {
            Self::Invalid(fields) => {
                let words: Vec<String> =
                    fields.iter().map(|wrong| format!("`{}` {}", wrong.field, wrong.description)).collect();
                words.join("; ")
            }
            Self::NotFound(id) => format!("there is no card `{id}`"),
            Self::DeadlineExceeded => "the request took too long; try again".to_owned(),
            Self::TooSlow => "the stream was read too slowly and has lost messages; follow again".to_owned(),
            Self::Ending => "this server is going away; connect again".to_owned(),
            Self::Database(error) if store::is_unavailable(error) => {
                "the database does not answer now; try again in a moment".to_owned()
            }
            Self::Database(_) | Self::Broken(_) => {
                "something is wrong inside the interaction service; its log has the reason".to_owned()
            }
        }
    }

    fn fields(&self) -> Vec<FieldViolation> {
        match self {
            Self::Invalid(fields) => fields.clone(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_words_of_a_defect_stay_inside() {
        let error = Error::Broken("column `state` holds `odd`".to_owned());
        assert!(!error.external().contains("state"));
        assert_eq!(error.reason(), Reason::Internal);
        assert_eq!(Error::Database(DbError::RowNotFound).reason(), Reason::Internal);
        assert_eq!(Error::Database(DbError::PoolTimedOut).reason(), Reason::Unavailable);
    }

    #[test]
    fn every_wrong_field_is_in_the_words_and_in_the_details() {
        let error = Error::Invalid(vec![FieldViolation::new("id", "is empty"), FieldViolation::new("tool", "is long")]);
        assert_eq!(error.external(), "`id` is empty; `tool` is long");
        assert_eq!(error.fields().len(), 2);
    }
}
