//! What can go wrong in the gateway.

use gatehouse_platform::error::{Failure, FieldViolation, Reason};

use crate::store::DbError;

/// Everything that a request to the gateway can fail with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request are wrong; all of them are listed.
    #[error("{} wrong fields", .0.len())]
    Invalid(Vec<FieldViolation>),
    /// There is no such thing.
    #[error("no such {kind}")]
    NotFound {
        /// What was looked for: `server`, `profile`, `session`, ….
        kind: &'static str,
        /// The id or name in the request.
        name: String,
    },
    /// A name or id is taken; the words say which and what to do.
    #[error("already exists: {0}")]
    AlreadyExists(String),
    /// Not possible in the present state; the words say why and what to do.
    #[error("failed precondition: {0}")]
    Precondition(String),
    /// A bound was reached; the words say which.
    #[error("resource exhausted: {0}")]
    Exhausted(String),
    /// Something that is needed does not answer; the words say what.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The RPC took longer than its deadline.
    #[error("deadline exceeded")]
    DeadlineExceeded,
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// Postgres refused, or did not answer.
    #[error("database")]
    Database(#[from] DbError),
    /// A stored row, or an answer of our own, is not what it must be. The words are for the log.
    #[error("broken: {0}")]
    Broken(String),
    /// The system gave no random bytes.
    #[error("random bytes")]
    Randomness(#[from] gatehouse_types::secret::NoRandomness),
}

impl Error {
    /// A single wrong field.
    pub fn field(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldViolation::new(field, description)])
    }

    /// There is no `kind` called `name`.
    pub fn not_found(kind: &'static str, name: impl Into<String>) -> Self {
        Self::NotFound { kind, name: name.into() }
    }
}

impl Failure for Error {
    fn reason(&self) -> Reason {
        match self {
            Self::Invalid(_) => Reason::InvalidArgument,
            Self::NotFound { .. } => Reason::NotFound,
            Self::AlreadyExists(_) => Reason::AlreadyExists,
            Self::Precondition(_) => Reason::FailedPrecondition,
            Self::Exhausted(_) => Reason::ResourceExhausted,
            Self::Unavailable(_) => Reason::Unavailable,
            Self::DeadlineExceeded => Reason::DeadlineExceeded,
            Self::Cancelled => Reason::Cancelled,
            Self::Database(error) if crate::store::is_unavailable(error) => Reason::Unavailable,
            Self::Database(_) | Self::Broken(_) | Self::Randomness(_) => Reason::Internal,
        }
    }

    fn external(&self) -> String {
        match self {
            Self::Invalid(fields) => {
                let words: Vec<String> =
                    fields.iter().map(|wrong| format!("`{}` {}", wrong.field, wrong.description)).collect();
                words.join("; ")
            }
            Self::NotFound { kind, name } => format!("there is no {kind} `{name}`"),
            Self::AlreadyExists(words)
            | Self::Precondition(words)
            | Self::Exhausted(words)
            | Self::Unavailable(words) => words.clone(),
            Self::DeadlineExceeded => "the request took too long; try again".to_owned(),
            Self::Cancelled => "the request was cancelled".to_owned(),
            Self::Database(error) if crate::store::is_unavailable(error) => {
                "the database does not answer now; try again in a moment".to_owned()
            }
            Self::Database(_) | Self::Broken(_) | Self::Randomness(_) => {
                "something is wrong inside the gateway; its log has the reason".to_owned()
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
        let error = Error::Database(DbError::RowNotFound);
        assert_eq!(error.reason(), Reason::Internal);
        assert_eq!(Error::Database(DbError::PoolTimedOut).reason(), Reason::Unavailable);
    }

    #[test]
    fn every_wrong_field_is_in_the_words_and_in_the_details() {
        let error =
            Error::Invalid(vec![FieldViolation::new("name", "is empty"), FieldViolation::new("url", "is long")]);
        assert_eq!(error.external(), "`name` is empty; `url` is long");
        assert_eq!(error.fields().len(), 2);
    }
}
