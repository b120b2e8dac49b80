//! `FileService`.

use std::sync::Arc;

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use gatehouse_platform::error::to_status;
use gatehouse_proto::gateway::v1::{self, file_service_server::FileService, get_file_response::Part};
use tonic::{Request, Response, Status};

use super::{answer, methods, paged};
use crate::{
    convert::{ListFiles, file_key},
    error::Error,
    files::Opened,
    registry::State,
    store,
};

/// A file: its metadata, then its bytes.
pub(super) type FileStream = BoxStream<'static, Result<v1::GetFileResponse, Status>>;

/// Files of results.
#[derive(Debug)]
pub(super) struct Files(pub(super) Arc<State>);

impl Files {
    async fn list(&self, request: v1::ListFilesRequest) -> Result<v1::ListFilesResponse, Error> {
        let list = ListFiles::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let session = store::sessions::get(&mut connection, &list.session).await?.id;
        let rows = store::files::list(&mut connection, session, list.after.as_ref(), list.size).await?;
        let (files, next_page_token) = paged(rows, list.size, |last| list.token(last));
        Ok(v1::ListFilesResponse { files, next_page_token })
    }

    async fn get(&self, request: v1::GetFileRequest) -> Result<FileStream, Error> {
        let (session, path) = file_key(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let session = store::sessions::get(&mut connection, &session).await?;
        drop(connection);
        let opened = self.0.files.open(session.id, &session.workspace, &path).await?;
        let first = message(Part::File(opened.file.clone().into()));
        Ok(stream::iter([Ok(first)]).chain(stream::try_unfold(opened, next)).boxed())
    }
}

/// The next message; it ends when the caller stops to ask for one.
async fn next(mut opened: Opened) -> Result<Option<(v1::GetFileResponse, Opened)>, Status> {
    let chunk = opened.next().await.map_err(to_status)?;
    Ok(chunk.map(|chunk| (message(Part::Chunk(chunk.to_vec())), opened)))
}

const fn message(part: Part) -> v1::GetFileResponse {
    v1::GetFileResponse { part: Some(part) }
}

#[tonic::async_trait]
impl FileService for Files {
    type GetFileStream = FileStream;

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        answer(&methods::LIST_FILES, request, |request, _| self.list(request)).await
    }

    async fn get_file(&self, request: Request<v1::GetFileRequest>) -> Result<Response<Self::GetFileStream>, Status> {
        answer(&methods::GET_FILE, request, |request, _| self.get(request)).await
    }
}
