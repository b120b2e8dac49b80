//! Files of results.

use gatehouse_proto::gateway::v1;
use time::OffsetDateTime;

use super::{page, timestamp};
use crate::{
    catalog::hex,
    error::Error,
    files::File,
    registry::{
        check::Fields,
        page::{List, TimeKey},
        text,
    },
};

/// Longest path of a file in bytes.
const PATH_BYTES: usize = 4_096;

/// A checked `ListFilesRequest`.
#[derive(Debug)]
pub struct ListFiles {
    /// Id or external id of the session.
    pub session: String,
    /// Size of the page.
    pub size: usize,
    /// Last file of the page before.
    pub after: Option<(OffsetDateTime, String)>,
}

impl ListFiles {
    /// The token of the page after this file.
    pub fn token(&self, last: &File) -> String {
        let [at, path] = TimeKey { at: last.created_at, id: last.path.clone() }.parts();
        List(&["files", &self.session]).token(&[&at, &path])
    }
}

impl TryFrom<v1::ListFilesRequest> for ListFiles {
    type Error = Error;

    fn try_from(request: v1::ListFilesRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let session = fields.take("session", text::lookup(&request.session));
        let list = List(&["files", &request.session]);
        let (size, key) = page::<2>(&mut fields, request.page_size, &request.page_token, &list);
        let after = key.and_then(|parts| fields.take("page_token", TimeKey::from_parts(&parts).map(Some)));
        let after = after.map(|key: TimeKey<String>| (key.at, key.id));
        fields.finish(Self { session, size, after })
    }
}

/// The file of a request: the session's id or external id, and the path.
pub fn file_key(request: v1::GetFileRequest) -> Result<(String, String), Error> {
    let mut fields = Fields::new();
    let session = fields.take("session", text::lookup(&request.session));
    let is_path = !request.path.is_empty() && request.path.len() <= PATH_BYTES && !request.path.contains('\0');
    if !is_path {
        fields.wrong("path", "takes the path of a file, as ListFiles gives it");
    }
    fields.finish((session, request.path))
}

impl From<File> for v1::File {
    fn from(file: File) -> Self {
        let location = if file.in_platform { v1::FileLocation::Platform } else { v1::FileLocation::Workspace };
        Self {
            path: file.path,
            size_bytes: i64::try_from(file.size).unwrap_or(i64::MAX),
            media_type: file.media_type,
            uri: file.uri,
            call_id: file.call.to_string(),
            server: file.server,
            tool: file.tool,
            created_at: Some(timestamp(file.created_at)),
            location: location.into(),
            sha256: hex(&file.sha256),
        }
    }
}
