//! Where the operator keeps workspaces.

use std::{path::PathBuf, str::FromStr};

use url::Url;

/// The root of all workspaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A prefix of a bucket of an S3-compatible object store.
    S3 {
        /// `s3://bucket/prefix`.
        url: String,
        /// The prefix, decoded, without `/` at its ends; empty for the whole bucket.
        prefix: String,
    },
}

/// Text that says no location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("takes the path of a folder, or `s3://bucket/prefix`")]
pub struct BadLocation;

/// An object store that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the object store of the workspaces cannot be set up; its `AWS_…` variables are wrong or not complete")]
pub struct SetupError(#[from] pub(crate) object_store::Error);

impl FromStr for Location {
    type Err = BadLocation;

    fn from_str(text: &str) -> Result<Self, BadLocation> {
        if !text.contains("://") {
            return if text.is_empty() { Err(BadLocation) } else { Ok(Self::Folder(PathBuf::from(text))) };
        }
        let url = Url::parse(text).map_err(|_| BadLocation)?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.port().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let bucket = url.host_str().filter(|bucket| url.scheme() == "s3" && is_plain && !bucket.is_empty());
        let bucket = bucket.ok_or(BadLocation)?;
        let prefix = object_store::path::Path::from_url_path(url.path()).map_err(|_| BadLocation)?;
        Ok(Self::S3 { url: format!("s3://{bucket}"), prefix: prefix.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_path_or_an_s3_url() {
        assert_eq!("/srv/ws".parse(), Ok(Location::Folder("/srv/ws".into())));
        assert_eq!("ws".parse(), Ok(Location::Folder("ws".into())));
        let s3 = |prefix: &str| Ok(Location::S3 { url: "s3://bucket".to_owned(), prefix: prefix.to_owned() });
        assert_eq!("s3://bucket".parse(), s3(""));
        assert_eq!("s3://bucket/".parse(), s3(""));
        assert_eq!("s3://bucket/team/a%20b/".parse(), s3("team/a b"));
        for bad in ["", "gs://bucket", "s3://", "s3://key:secret@bucket", "s3://bucket?a=b", "https://x/y", "s3:///x"] {
            assert_eq!(bad.parse::<Location>(), Err(BadLocation), "{bad}");
        }
    }
}
