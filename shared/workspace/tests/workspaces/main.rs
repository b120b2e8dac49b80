//! Files in workspaces of both kinds, with an agent that is no friend.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod both;
mod full;
mod hostile;
mod s3;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use gatehouse_types::CallId;
use gatehouse_workspace::{NewFile, Problem, Workspaces};

/// A root of its own, gone at the end; beside it is a folder that nothing may reach.
struct Root(PathBuf);

impl Root {
    fn new() -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("root-{}", CallId::new()));
        fs::create_dir_all(path.join("root")).unwrap();
        fs::create_dir_all(path.join("outside")).unwrap();
        Self(path)
    }

    fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    fn outside(&self) -> PathBuf {
        self.0.join("outside")
    }

    fn workspaces(&self) -> Workspaces {
        Workspaces::folder(self.root())
    }

    /// Asserts that nothing was written beside the root.
    #[track_caller]
    fn assert_nothing_outside(&self) {
        assert_eq!(fs::read_dir(self.outside()).unwrap().count(), 0);
        assert_eq!(fs::read_dir(&self.0).unwrap().count(), 2);
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.0);
        if !std::thread::panicking() {
            removed.unwrap();
        }
    }
}

fn file(call: CallId, name: &str, content: &str) -> NewFile {
    NewFile {
        workspace: "team/one".to_owned(),
        call,
        name: name.to_owned(),
        avoid: BTreeSet::new(),
        content: Bytes::copy_from_slice(content.as_bytes()),
    }
}

async fn read(workspaces: &Workspaces, path: &str) -> Result<String, Problem> {
    let mut reading = workspaces.open("team/one", path).await?;
    let mut whole = Vec::new();
    while let Some(chunk) = reading.next().await? {
        assert!(chunk.len() <= gatehouse_workspace::CHUNK_BYTES);
        whole.extend_from_slice(&chunk);
    }
    assert_eq!(whole.len() as u64, reading.size);
    Ok(String::from_utf8(whole).unwrap())
}
