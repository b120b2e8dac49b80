//! `FileService`, and the files of results behind it.

use std::{fs, os::unix::fs::symlink, path::PathBuf, sync::Arc};

use bytes::Bytes;
use gatehouse_gateway::files::{FileToSave, Files, Kind, Owner, Place, Saved};
use gatehouse_proto::gateway::v1::{self, FileLocation, get_file_response::Part};
use gatehouse_testkit::Database;
use gatehouse_types::{CallId, Locale, SessionId};
use gatehouse_workspace::Workspaces;
use tonic::{Code, Status};

use crate::{
    harness::{Gateway, refused, wrong_fields},
    store::closed_pool,
};

const QUOTA: u64 = 1 << 20;

fn file(place: u32, uri: &str, content: impl Into<Bytes>) -> FileToSave {
    let media_type = "text/plain".to_owned();
    FileToSave { place, kind: Kind::Resource, uri: uri.to_owned(), media_type, content: content.into() }
}

/// A session with its files, seen from the call path and from the wire.
struct Session {
    gateway: Gateway,
    id: SessionId,
    workspace: String,
}

impl Session {
    async fn start(workspace: &str) -> Self {
        let gateway = Gateway::start().await;
        gateway.profile("p", &[]).await;
        let request = v1::CreateSessionRequest {
            profile: "p".to_owned(),
            external_id: "e".to_owned(),
            workspace: workspace.to_owned(),
            ..Default::default()
        };
        let session = gateway.sessions().create_session(request).await.unwrap().into_inner().session.unwrap();
        Self { gateway, id: session.id.parse().unwrap(), workspace: session.workspace }
    }

    fn owner(&self) -> Owner<'_> {
        Owner { id: self.id, workspace: &self.workspace }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.gateway.folder().join(&self.workspace).join(path)
    }

    async fn save(&self, call: CallId, files: Vec<FileToSave>) -> Vec<Saved> {
        self.gateway.state.files.save(self.owner(), call, QUOTA, Locale::En, files).await
    }

    async fn list(&self) -> Vec<v1::File> {
        let request = v1::ListFilesRequest { session: "e".to_owned(), ..Default::default() };
        self.gateway.files().list_files(request).await.unwrap().into_inner().files
    }

    async fn get(&self, path: &str) -> Result<(v1::File, Vec<u8>), Status> {
        let request = v1::GetFileRequest { session: "e".to_owned(), path: path.to_owned() };
        let mut stream = self.gateway.files().get_file(request).await?.into_inner();
        let Some(Part::File(file)) = stream.message().await?.unwrap().part else { panic!("no metadata first") };
        let mut content = Vec::new();
        while let Some(message) = stream.message().await? {
            let Some(Part::Chunk(chunk)) = message.part else { panic!("no chunk") };
            assert!(!chunk.is_empty() && chunk.len() <= 64 << 10);
            content.extend_from_slice(&chunk);
        }
        Ok((file, content))
    }

    async fn refusal(&self, path: &str) -> Status {
        self.get(path).await.unwrap_err()
    }
}

#[tokio::test]
async fn files_are_listed_newest_first_with_their_call_in_pages() {
    let session = Session::start("team").await;
    let (one, two) = (CallId::new(), CallId::new());
    let gateway = &session.gateway;
    gateway
        .execute(&format!(
            "INSERT INTO calls (id, session_id, actor, server, tool, hints, outcome, started_at, arguments,
                                arguments_bytes, arguments_sha256, result_bytes, error, trace_id, replica_id)
             VALUES ('{one}', '{}', '', 'orders', 'export', 1, 'ok', now(), '{{}}', 2, '', 0, '', '', '{one}')",
            session.id
        ))
        .await;
    session.save(one, vec![file(0, "x/b.csv", "1"), file(1, "x/a.csv\0", "12")]).await;
    session.save(two, vec![file(0, "", "123")]).await;
    let listed = session.list().await;
    let paths: Vec<&str> = listed.iter().map(|file| file.path.as_str()).collect();
    let expected =
        [format!(".agent/mcp/{two}/file-1.txt"), format!(".agent/mcp/{one}/a.csv"), format!(".agent/mcp/{one}/b.csv")];
    assert_eq!(paths, expected);
    let first = &listed[1];
    assert_eq!((first.server.as_str(), first.tool.as_str(), first.size_bytes), ("orders", "export", 2));
    assert_eq!((first.uri.as_str(), first.media_type.as_str()), ("x/a.csv", "text/plain"));
    assert_eq!((first.call_id.clone(), first.location()), (one.to_string(), FileLocation::Workspace));
    assert_eq!(first.sha256.len(), 64);
    assert!(listed[0].server.is_empty(), "its call is not in the record");

    let page = async |page_token: String| {
        let request = v1::ListFilesRequest { session: "e".to_owned(), page_size: 1, page_token };
        gateway.files().list_files(request).await
    };
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let answer = page(token).await.unwrap().into_inner();
        seen.extend(answer.files.into_iter().map(|file| file.path));
        token = answer.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, expected);
    assert_eq!(wrong_fields(page("odd".to_owned()).await), ["page_token"]);
    let nobody = v1::ListFilesRequest { session: "nobody".to_owned(), ..Default::default() };
    assert_eq!(refused(gateway.files().list_files(nobody).await), Code::NotFound);
}

#[tokio::test]
async fn a_file_is_read_back_from_wherever_it_is() {
    for workspace in ["team/one", ""] {
        let session = Session::start(workspace).await;
        // Nothing, a chunk to the byte, and more than the database is asked for at a time.
        let contents = [0, 65_536, (5 << 20) + 1].map(|size| vec![b'x'; size]);
        for content in contents {
            let call = CallId::new();
            let files = vec![file(0, "a.txt", content.clone())];
            let saved = session.gateway.state.files.save(session.owner(), call, 1 << 30, Locale::En, files).await;
            let at = if workspace.is_empty() { Place::Platform } else { Place::Workspace };
            assert_eq!((saved[0].at, &saved[0].problem), (at, &None));
            let (file, read) = session.get(&saved[0].path).await.unwrap();
            assert_eq!((file.size_bytes, &file.path), (i64::try_from(content.len()).unwrap(), &saved[0].path));
            assert_eq!(file.call_id, call.to_string());
            assert!(read == content);
        }
    }
}

#[tokio::test]
async fn only_listed_files_of_the_session_are_read() {
    let session = Session::start("team").await;
    let call = CallId::new();
    session.save(call, vec![file(0, "a.txt", "result")]).await;
    fs::write(session.place("notes.txt"), "the agent's own").unwrap();
    fs::write(session.place(&format!(".agent/mcp/{call}/b.txt")), "planted").unwrap();
    let own = format!(".agent/mcp/{call}/a.txt");
    for path in ["notes.txt", "../x", "/etc/passwd", &format!(".agent/mcp/{call}/b.txt"), &format!("./{own}")] {
        assert_eq!(session.refusal(path).await.code(), Code::NotFound, "{path}");
    }
    for path in ["", "a\0b", &"x".repeat(5_000)] {
        let request = v1::GetFileRequest { session: "e".to_owned(), path: path.to_owned() };
        assert_eq!(wrong_fields(session.gateway.files().get_file(request).await), ["path"]);
    }
    let request =
        v1::CreateSessionRequest { profile: "p".to_owned(), workspace: "team".to_owned(), ..Default::default() };
    let other = session.gateway.sessions().create_session(request).await.unwrap().into_inner().session.unwrap().id;
    let request = v1::GetFileRequest { session: other, path: own };
    assert_eq!(refused(session.gateway.files().get_file(request).await), Code::NotFound);
}

#[tokio::test]
async fn a_file_is_read_as_the_agent_left_it_and_nothing_in_its_place() {
    let session = Session::start("team").await;
    let saved = session.save(CallId::new(), vec![file(0, "a.txt", "result")]).await;
    let (path, place) = (&saved[0].path, session.place(&saved[0].path));
    fs::write(&place, "longer than before").unwrap();
    let (file, content) = session.get(path).await.unwrap();
    assert_eq!((file.size_bytes, content.as_slice()), (18, b"longer than before".as_slice()));
    fs::remove_file(&place).unwrap();
    let gone = session.refusal(path).await;
    assert_eq!(gone.code(), Code::NotFound);
    assert!(gone.message().contains("in the workspace any more"), "{gone:?}");
    symlink("/etc/passwd", &place).unwrap();
    let link = session.refusal(path).await;
    assert_eq!(link.code(), Code::FailedPrecondition);
    assert!(link.message().contains("symbolic link"), "{link:?}");
}

#[tokio::test]
async fn the_same_result_again_has_the_same_paths_and_counts_once() {
    let session = Session::start("team").await;
    let call = CallId::new();
    let planted = session.place(&format!(".agent/mcp/{call}/a.txt"));
    fs::create_dir_all(planted.parent().unwrap()).unwrap();
    fs::write(&planted, "planted").unwrap();
    let files = || vec![file(0, "x/a.txt", "one"), file(1, "y/a.txt", "two"), file(2, "z/a.txt", "two")];
    let first = session.save(call, files()).await;
    let names: Vec<&str> = first.iter().map(|saved| saved.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["a-4.txt", "a-2.txt", "a-3.txt"]);
    assert!(first.iter().all(|saved| saved.at == Place::Workspace && saved.problem.is_none()));
    let listed = session.list().await;
    // What the agent did to them meanwhile stays, except that what is gone comes back.
    fs::write(session.place(&first[1].path), "changed").unwrap();
    fs::remove_file(session.place(&first[2].path)).unwrap();
    for _ in 0..2 {
        assert_eq!(session.save(call, files()).await, first);
        assert_eq!(session.list().await, listed);
    }
    assert_eq!(fs::read(session.place(&first[1].path)).unwrap(), b"changed");
    assert_eq!(fs::read(session.place(&first[2].path)).unwrap(), b"two");
    assert_eq!(fs::read(&planted).unwrap(), b"planted");
    // Nine bytes, and not one more.
    let save = async |quota| session.gateway.state.files.save(session.owner(), call, quota, Locale::En, files()).await;
    assert_eq!(save(0).await, first);
}

#[tokio::test]
async fn a_file_that_the_workspace_cannot_take_is_kept_and_comes_in_when_it_can() {
    let session = Session::start("team").await;
    let call = CallId::new();
    fs::create_dir_all(session.place("")).unwrap();
    symlink("/", session.place(".agent")).unwrap();
    let saved = session.save(call, vec![file(0, "a.txt", "result")]).await;
    assert_eq!((saved[0].at, saved[0].size), (Place::Platform, 6));
    insta::assert_snapshot!(saved[0].problem.as_deref().unwrap(), @"It could not be saved in the workspace: a symbolic link stands in the way at `.agent`.");
    let files = &session.gateway.state.files;
    let again = files.save(session.owner(), call, QUOTA, Locale::Zh, vec![file(0, "a.txt", "result")]).await;
    assert_eq!((&again[0].path, again[0].at), (&saved[0].path, Place::Platform));
    insta::assert_snapshot!(again[0].problem.as_deref().unwrap(), @"无法保存到工作区：`.agent` 处有一个符号链接。");
    assert_eq!(session.list().await[0].location(), FileLocation::Platform);
    assert_eq!(session.get(&saved[0].path).await.unwrap().1, b"result");

    fs::remove_file(session.place(".agent")).unwrap();
    let again = session.save(call, vec![file(0, "a.txt", "result")]).await;
    assert_eq!((&again[0].path, again[0].at, &again[0].problem), (&saved[0].path, Place::Workspace, &None));
    assert_eq!(session.list().await[0].location(), FileLocation::Workspace);
    assert_eq!(session.get(&saved[0].path).await.unwrap().1, b"result");
}

#[tokio::test]
async fn without_a_root_files_are_kept_and_that_is_said() {
    let session = Session::start("team").await;
    let state = &session.gateway.state;
    let files = Files::new(state.pool.clone(), Arc::clone(&state.clock), None);
    let saved = files.save(session.owner(), CallId::new(), QUOTA, Locale::En, vec![file(0, "a.txt", "result")]).await;
    assert_eq!(saved[0].at, Place::Platform);
    assert!(saved[0].problem.as_deref().unwrap().contains("configured root"), "{saved:?}");
    assert_eq!(session.get(&saved[0].path).await.unwrap().1, b"result");
}

#[tokio::test]
async fn the_quota_of_a_session_holds_also_for_calls_side_by_side() {
    for workspace in ["team", ""] {
        let session = Session::start(workspace).await;
        let tasks = (0..8).map(|_| {
            let (files, id, workspace) =
                (Arc::clone(&session.gateway.state.files), session.id, session.workspace.clone());
            tokio::spawn(async move {
                let owner = Owner { id, workspace: &workspace };
                let two = vec![file(0, "a", vec![0; 600]), file(1, "b", vec![0; 300])];
                files.save(owner, CallId::new(), 1_500, Locale::En, two).await
            })
        });
        let mut saved = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            saved.extend(task.await.unwrap());
        }
        let (kept, left): (Vec<Saved>, Vec<Saved>) = saved.into_iter().partition(|saved| saved.at != Place::Nowhere);
        assert_eq!(kept.iter().map(|saved| saved.size).sum::<u64>(), 1_500, "{kept:?}");
        assert!(left.iter().all(|saved| saved.path.is_empty()));
        assert!(left.iter().all(|saved| saved.problem.as_deref().unwrap().contains("at most 1500 bytes")), "{left:?}");
        assert_eq!(session.list().await.len(), kept.len());
    }
}

#[tokio::test]
async fn without_a_database_a_workspace_still_takes_files_and_what_is_lost_is_said() {
    let session = Session::start("team").await;
    let database = Database::new().await;
    let workspaces = Workspaces::folder(session.gateway.folder().to_owned());
    let clock = Arc::clone(&session.gateway.state.clock);
    let files = Files::new(closed_pool(&database).await, clock, Some(workspaces));
    let save = async |owner, call, size| {
        files.save(owner, call, 1_000, Locale::En, vec![file(0, "a.txt", vec![b'x'; size])]).await.remove(0)
    };
    let call = CallId::new();
    let saved = save(session.owner(), call, 10).await;
    assert_eq!((saved.at, fs::read(session.place(&saved.path)).unwrap()), (Place::Workspace, vec![b'x'; 10]));
    assert!(saved.problem.unwrap().contains("not in the list"));
    // Listed under the same path when the result is processed again.
    let again = session.save(call, vec![file(0, "a.txt", vec![b'x'; 10])]).await;
    assert_eq!((&again[0].path, &again[0].problem), (&saved.path, &None));

    let none = Owner { id: session.id, workspace: "" };
    for (owner, size) in [(none, 10), (session.owner(), 1_001)] {
        let lost = save(owner, CallId::new(), size).await;
        assert_eq!((lost.at, lost.path.as_str()), (Place::Nowhere, ""));
        assert!(lost.problem.is_some());
    }
}

#[tokio::test]
async fn a_file_that_nothing_takes_is_said_to_be_lost_and_is_not_listed() {
    let session = Session::start("team").await;
    fs::write(session.gateway.folder().join("team"), "").unwrap();
    session.gateway.execute("ALTER TABLE files ADD CHECK (content IS NULL)").await;
    let saved = session.save(CallId::new(), vec![file(0, "a.txt", "result")]).await;
    assert_eq!(saved[0].at, Place::Nowhere);
    insta::assert_snapshot!(saved[0].problem.as_deref().unwrap(), @"It could not be saved in the workspace: something that is not a folder stands in the way at `team`. Its content could not be kept: the database did not take it.");
    assert!(session.list().await.is_empty());
}

#[tokio::test]
async fn the_files_of_a_deleted_session_are_not_listed_and_stay_in_the_workspace() {
    let session = Session::start("team").await;
    let saved = session.save(CallId::new(), vec![file(0, "a.txt", "result")]).await;
    session.gateway.sessions().delete_session(v1::DeleteSessionRequest { session: "e".to_owned() }).await.unwrap();
    assert_eq!(session.refusal(&saved[0].path).await.code(), Code::NotFound);
    assert_eq!(fs::read(session.place(&saved[0].path)).unwrap(), b"result");
    let late = session.save(CallId::new(), vec![file(0, "a.txt", "result")]).await;
    assert_eq!(late[0].at, Place::Nowhere);
    assert!(late[0].problem.as_deref().unwrap().contains("deleted"), "{late:?}");
}
