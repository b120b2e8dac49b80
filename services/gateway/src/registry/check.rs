//! Pure. Collects every wrong field of a request, so that a caller mends them all at once.

use gatehouse_platform::error::FieldViolation;

use crate::error::Error;

/// The wrong fields found so far.
#[derive(Debug, Default)]
pub struct Fields(Vec<FieldViolation>);

impl Fields {
    /// Nothing wrong yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Notes that `field` is wrong and what it takes. The words must not repeat a value that may be secret.
    pub fn wrong(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(FieldViolation::new(field, description));
    }

    /// The value, or `T::default()` with the field noted as wrong.
    pub fn take<T: Default>(&mut self, field: &str, checked: Result<T, String>) -> T {
        checked.unwrap_or_else(|words| {
            self.wrong(field, words);
            T::default()
        })
    }

    /// Like [`Fields::take`] for a field that may be unset.
    pub fn take_some<V, T: Default>(
        &mut self,
        field: &str,
        value: Option<V>,
        check: impl FnOnce(V) -> Result<T, String>,
    ) -> Option<T> {
        value.map(|value| self.take(field, check(value)))
    }

    /// The built value when nothing was wrong, else [`Error::Invalid`] with every wrong field.
    pub fn finish<T>(self, value: T) -> Result<T, Error> {
        if self.0.is_empty() { Ok(value) } else { Err(Error::Invalid(self.0)) }
    }
}
