//! Files of results.

use gatehouse_platform::error::Reason;
use gatehouse_proto::gateway::v1::{self as pb, get_file_response::Part};
use tonic::{Request, Response, Status};

use super::grpc_fake::{Answer, Fake, HOSTILE, at, refuse, reply};

/// What every file holds.
pub(crate) const CONTENT: &[u8] = b"one\x1b[2J\ntwo\n";

fn file(path: &str, location: pb::FileLocation) -> pb::File {
    pb::File {
        path: path.to_owned(),
        size_bytes: i64::try_from(CONTENT.len()).unwrap(),
        media_type: format!("text/plain{HOSTILE}"),
        uri: HOSTILE.to_owned(),
        call_id: "c-1".to_owned(),
        server: "orders".to_owned(),
        tool: "export".to_owned(),
        created_at: at(0),
        location: location.into(),
        sha256: "ab".to_owned(),
    }
}

fn part(part: Part) -> Result<pb::GetFileResponse, Status> {
    Ok(pb::GetFileResponse { part: Some(part) })
}

#[tonic::async_trait]
impl pb::file_service_server::FileService for Fake {
    type GetFileStream = tokio_stream::Iter<std::vec::IntoIter<Result<pb::GetFileResponse, Status>>>;

    async fn list_files(&self, request: Request<pb::ListFilesRequest>) -> Answer<pb::ListFilesResponse> {
        self.note(request);
        let files = vec![
            file(".agent/mcp/c-1/a.txt", pb::FileLocation::Workspace),
            file(".agent/mcp/c-1/b.txt", pb::FileLocation::Platform),
        ];
        reply(pb::ListFilesResponse { files, next_page_token: String::new() })
    }

    /// A path that ends in `cut` loses its last bytes, one that ends in `broken` its connection.
    async fn get_file(&self, request: Request<pb::GetFileRequest>) -> Answer<Self::GetFileStream> {
        let request = self.note(request);
        if request.path.ends_with("gone") {
            return refuse(Reason::NotFound, "there is no file of this session `gone`");
        }
        let (first, second) = CONTENT.split_at(3);
        let mut parts = vec![part(Part::File(file(&request.path, pb::FileLocation::Workspace)))];
        parts.push(part(Part::Chunk(first.to_vec())));
        if request.path.ends_with("broken") {
            parts.push(refuse(Reason::Unavailable, "the file changed while it was read"));
        } else if !request.path.ends_with("cut") {
            parts.push(part(Part::Chunk(second.to_vec())));
        }
        Ok(Response::new(tokio_stream::iter(parts)))
    }
}
