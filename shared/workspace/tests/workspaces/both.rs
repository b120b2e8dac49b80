//! What holds for a folder and for an object store alike: each test runs over both.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

use gatehouse_types::CallId;
use gatehouse_workspace::{Cause, NewFile, Workspaces, path};
use object_store::{ObjectStore, ObjectStoreExt as _, memory::InMemory, path::Path};

use crate::{Root, file, read};

/// A workspace, and a way past it: that of the agent.
struct Case {
    workspaces: Workspaces,
    agent: Agent,
    _root: Root,
}

enum Agent {
    Folder(PathBuf),
    Store(Arc<InMemory>),
}

impl Case {
    fn both() -> [Self; 2] {
        let (folder, unused) = (Root::new(), Root::new());
        let store = Arc::new(InMemory::new());
        let shared: Arc<dyn ObjectStore> = Arc::clone(&store) as Arc<dyn ObjectStore>;
        [
            Self {
                workspaces: folder.workspaces(),
                agent: Agent::Folder(folder.root().join("team/one")),
                _root: folder,
            },
            Self { workspaces: Workspaces::store(shared, "some/prefix"), agent: Agent::Store(store), _root: unused },
        ]
    }

    /// Puts a file there as the agent could.
    async fn plant(&self, path: &str, content: &str) {
        match &self.agent {
            Agent::Folder(workspace) => {
                let place = workspace.join(path);
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::write(place, content).unwrap();
            }
            Agent::Store(store) => {
                store.put(&key(path), content.to_owned().into()).await.unwrap();
            }
        }
    }

    async fn remove(&self, path: &str) {
        match &self.agent {
            Agent::Folder(workspace) => fs::remove_file(workspace.join(path)).unwrap(),
            Agent::Store(store) => store.delete(&key(path)).await.unwrap(),
        }
    }

    /// What the agent sees.
    async fn seen(&self, path: &str) -> String {
        match &self.agent {
            Agent::Folder(workspace) => fs::read_to_string(workspace.join(path)).unwrap(),
            Agent::Store(store) => {
                let bytes = store.get(&key(path)).await.unwrap().bytes().await.unwrap();
                String::from_utf8(bytes.to_vec()).unwrap()
            }
        }
    }
}

fn key(path: &str) -> Path {
    Path::parse(format!("some/prefix/team/one/{path}")).unwrap()
}

#[tokio::test]
async fn a_file_is_where_the_model_is_told_and_can_be_read_back() {
    for case in Case::both() {
        let call = CallId::new();
        // The empty file, one chunk to the byte, and more than one.
        for (name, size) in [("empty", 0), ("订单 #1%.txt", 65_536), ("large.bin", 200_001)] {
            let content = "x".repeat(size);
            assert_eq!(case.workspaces.put(file(call, name, &content)).await.unwrap(), name);
            let path = path(call, name);
            assert_eq!(case.seen(&path).await, content);
            assert_eq!(read(&case.workspaces, &path).await.unwrap(), content);
            assert!(case.workspaces.holds("team/one", &path).await.unwrap());
        }
        assert_eq!(case.seen(".agent/mcp/.gitignore").await, "*\n");
    }
}

#[tokio::test]
async fn the_same_content_gets_the_same_path_again_and_another_gets_a_path_of_its_own() {
    for case in Case::both() {
        let call = CallId::new();
        for (content, expected) in [
            ("one", "a.txt"),
            ("one", "a.txt"),
            ("two", "a-2.txt"),
            ("ONE", "a-3.txt"),
            ("two", "a-2.txt"),
            ("one", "a.txt"),
        ] {
            assert_eq!(case.workspaces.put(file(call, "a.txt", content)).await.unwrap(), expected);
            assert_eq!(case.seen(&path(call, expected)).await, content);
        }
    }
}

#[tokio::test]
async fn a_planted_file_is_left_as_it_is_and_so_is_an_ignore_file() {
    for case in Case::both() {
        let call = CallId::new();
        case.plant(".agent/mcp/.gitignore", "!keep\n").await;
        case.plant(&path(call, "a.txt"), "planted").await;
        assert_eq!(case.workspaces.put(file(call, "a.txt", "result!")).await.unwrap(), "a-2.txt");
        assert_eq!(case.seen(&path(call, "a.txt")).await, "planted");
        assert_eq!(case.seen(&path(call, "a-2.txt")).await, "result!");
        assert_eq!(case.seen(".agent/mcp/.gitignore").await, "!keep\n");
    }
}

#[tokio::test]
async fn a_name_that_is_meant_for_another_file_of_the_result_is_not_taken() {
    for case in Case::both() {
        let call = CallId::new();
        case.plant(&path(call, "a.txt"), "planted").await;
        let avoid = BTreeSet::from(["a-2.txt".to_owned()]);
        let new = NewFile { avoid, ..file(call, "a.txt", "result") };
        assert_eq!(case.workspaces.put(new).await.unwrap(), "a-3.txt");
    }
}

#[tokio::test]
async fn an_agent_that_takes_every_name_is_told_so() {
    for case in Case::both() {
        let call = CallId::new();
        for number in 1..=100 {
            case.plant(&path(call, &gatehouse_workspace::name::numbered("a", number)), "planted").await;
        }
        assert_eq!(case.workspaces.put(file(call, "a", "result")).await.unwrap_err().cause, Cause::Crowded);
    }
}

#[tokio::test]
async fn a_file_is_read_as_it_is_now_and_one_that_is_gone_is_said_to_be() {
    for case in Case::both() {
        let call = CallId::new();
        case.workspaces.put(file(call, "a.txt", "before")).await.unwrap();
        let path = path(call, "a.txt");
        case.plant(&path, "longer than before").await;
        assert_eq!(read(&case.workspaces, &path).await.unwrap(), "longer than before");
        case.remove(&path).await;
        assert_eq!(read(&case.workspaces, &path).await.unwrap_err().cause, Cause::Gone);
        assert!(!case.workspaces.holds("team/one", &path).await.unwrap());
        assert_eq!(case.workspaces.put(file(call, "a.txt", "before")).await.unwrap(), "a.txt");
    }
}

#[tokio::test]
async fn a_path_with_steps_up_leads_nowhere() {
    for case in Case::both() {
        for (workspace, path) in [
            ("team/one", "../two/a"),
            ("team/one", ".agent/../../x"),
            ("team/one", "/etc/passwd"),
            ("team/one", "a//b"),
            ("team/one", ""),
            ("team/one", "a\\b"),
            ("..", "a"),
            ("", "a"),
            ("/etc", "passwd"),
            ("a/./b", "c"),
        ] {
            let opened = case.workspaces.open(workspace, path).await;
            assert_eq!(opened.unwrap_err().cause, Cause::BadPath, "{workspace} {path}");
            assert_eq!(case.workspaces.holds(workspace, path).await.unwrap_err().cause, Cause::BadPath);
        }
        for workspace in ["..", "", "a/..", "/a", "a//b"] {
            let new = NewFile { workspace: workspace.to_owned(), ..file(CallId::new(), "a", "b") };
            assert_eq!(case.workspaces.put(new).await.unwrap_err().cause, Cause::BadPath);
            assert_eq!(case.workspaces.check(workspace).await.unwrap_err().cause, Cause::BadPath);
        }
        assert!(case.workspaces.check("team/订单").await.is_ok());
    }
}

#[tokio::test]
async fn the_same_file_saved_many_times_at_once_is_one_file() {
    for case in Case::both() {
        let call = CallId::new();
        let saves = (0..32).map(|_| {
            let workspaces = case.workspaces.clone();
            tokio::spawn(async move { workspaces.put(file(call, "a.txt", "result")).await.unwrap() })
        });
        for save in saves.collect::<Vec<_>>() {
            assert_eq!(save.await.unwrap(), "a.txt");
        }
        assert!(!case.workspaces.holds("team/one", &path(call, "a-2.txt")).await.unwrap());
    }
}
