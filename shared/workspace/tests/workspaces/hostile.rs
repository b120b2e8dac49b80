//! Links, and things that are no folders, at every step of the way.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gatehouse_types::CallId;
use gatehouse_workspace::{Cause, Workspaces, path};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::{Root, file, read};

/// Every folder between the root and the file.
fn steps(call: CallId) -> Vec<String> {
    let all = ["team", "one", ".agent", "mcp", &call.to_string()].map(str::to_owned);
    (1..=all.len()).map(|depth| all[..depth].join("/")).collect()
}

/// The step as words name it: relative to the workspace, once inside.
fn named(step: &str) -> String {
    step.strip_prefix("team/one/").unwrap_or(step).to_owned()
}

fn parent(root: &Root, step: &str) -> PathBuf {
    let place = root.root().join(step);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    place
}

#[tokio::test]
async fn a_link_at_any_step_is_not_followed_wherever_it_leads() {
    let call = CallId::new();
    for step in steps(call) {
        // Outside, inside the root, to nothing, and to itself.
        for target in ["outside", "root", "nothing", "self"] {
            let root = Root::new();
            let place = parent(&root, &step);
            let leads = if target == "self" { place.clone() } else { root.0.join(target) };
            symlink(leads, &place).unwrap();
            let saved = root.workspaces().put(file(call, "a.txt", "result")).await;
            assert_eq!(saved.unwrap_err().cause, Cause::Link(named(&step)), "{step} {target}");
            root.assert_nothing_outside();
            assert!(fs::symlink_metadata(&place).unwrap().is_symlink());
        }
    }
}

#[tokio::test]
async fn something_else_than_a_folder_at_any_step_is_named() {
    let call = CallId::new();
    for step in steps(call) {
        for kind in ["file", "fifo"] {
            let root = Root::new();
            let place = parent(&root, &step);
            if kind == "file" {
                fs::write(&place, "planted").unwrap();
            } else {
                assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
            }
            let saved = root.workspaces().put(file(call, "a.txt", "result")).await;
            assert_eq!(saved.unwrap_err().cause, Cause::InTheWay(named(&step)), "{step} {kind}");
        }
    }
}

#[tokio::test]
async fn whatever_is_planted_under_the_name_of_the_file_stays() {
    let call = CallId::new();
    let root = Root::new();
    let folder = root.root().join("team/one/.agent/mcp").join(call.to_string());
    fs::create_dir_all(&folder).unwrap();
    let outside = root.outside().join("secret");
    symlink(&outside, folder.join("a.txt")).unwrap();
    symlink("/dev/zero", folder.join("a-2.txt")).unwrap();
    fs::create_dir(folder.join("a-3.txt")).unwrap();
    // Opening this one waits for a writer, if one lets it.
    assert!(Command::new("mkfifo").arg(folder.join("a-4.txt")).status().unwrap().success());
    assert_eq!(root.workspaces().put(file(call, "a.txt", "result")).await.unwrap(), "a-5.txt");
    assert!(!outside.exists());
    root.assert_nothing_outside();
    assert_eq!(fs::read_to_string(folder.join("a-5.txt")).unwrap(), "result");
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a-2.txt", "a-3.txt", "a-4.txt", "a-5.txt", "a.txt"]);
}

#[tokio::test]
async fn a_planted_ignore_link_is_not_written_through() {
    let call = CallId::new();
    let root = Root::new();
    let results = root.root().join("team/one/.agent/mcp");
    fs::create_dir_all(&results).unwrap();
    symlink(root.outside().join("file"), results.join(".gitignore")).unwrap();
    root.workspaces().put(file(call, "a.txt", "result")).await.unwrap();
    root.assert_nothing_outside();
}

#[tokio::test]
async fn a_link_in_the_place_of_a_saved_file_is_not_read() {
    let call = CallId::new();
    let root = Root::new();
    let workspaces = root.workspaces();
    workspaces.put(file(call, "a.txt", "result")).await.unwrap();
    let path = path(call, "a.txt");
    let place = root.root().join("team/one").join(&path);
    for target in ["/etc/passwd", "a-2.txt"] {
        fs::remove_file(&place).unwrap();
        symlink(target, &place).unwrap();
        assert_eq!(read(&workspaces, &path).await.unwrap_err().cause, Cause::Link("a.txt".to_owned()));
        assert!(workspaces.holds("team/one", &path).await.unwrap());
    }
    fs::remove_file(&place).unwrap();
    assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
    assert_eq!(read(&workspaces, &path).await.unwrap_err().cause, Cause::InTheWay("a.txt".to_owned()));
}

#[tokio::test]
async fn a_link_in_the_place_of_a_folder_is_not_read_through() {
    let call = CallId::new();
    for step in steps(call) {
        let root = Root::new();
        let workspaces = root.workspaces();
        workspaces.put(file(call, "a.txt", "result")).await.unwrap();
        // The very same files, but through a link.
        let place = root.root().join(&step);
        fs::rename(&place, root.0.join("moved")).unwrap();
        symlink(root.0.join("moved"), &place).unwrap();
        let opened = read(&workspaces, &path(call, "a.txt")).await;
        assert!(matches!(opened.unwrap_err().cause, Cause::Link(_)), "{step}");
    }
}

/// An agent swaps a folder for a link and back, as fast as it can, while files are saved: each is inside, or refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_folder_for_a_link_meanwhile_leads_nowhere() {
    let root = Root::new();
    let workspaces = root.workspaces();
    workspaces.put(file(CallId::new(), "first", "x")).await.unwrap();
    let (folder, aside) = (root.root().join("team/one/.agent/mcp"), root.root().join("team/one/aside"));
    symlink(root.outside(), &aside).unwrap();
    let ends = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let ends = Arc::clone(&ends);
        move || {
            while !ends.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let (mut saved, mut refused) = (0, 0);
    while (saved < 100 || refused < 20) && saved + refused < 20_000 {
        match workspaces.put(file(CallId::new(), "a.txt", "result")).await {
            Ok(_) => saved += 1,
            Err(problem) => {
                assert!(matches!(problem.cause, Cause::Link(_) | Cause::InTheWay(_)), "{problem:?}");
                refused += 1;
            }
        }
    }
    ends.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(saved > 0 && refused > 0, "{saved} {refused}");
    root.assert_nothing_outside();
}

#[tokio::test]
async fn a_root_that_is_missing_or_no_folder_is_said_to_be() {
    let root = Root::new();
    fs::write(root.root().join("file"), "").unwrap();
    for bad in ["missing", "file", "file/below"] {
        let workspaces = Workspaces::folder(root.root().join(bad));
        let saved = workspaces.put(file(CallId::new(), "a", "b")).await;
        assert_eq!(saved.unwrap_err().cause, Cause::NoRoot, "{bad}");
        assert_eq!(workspaces.check("team").await.unwrap_err().cause, Cause::NoRoot);
    }
    // The operator's own link is fine.
    symlink(root.root(), root.root().join("linked")).unwrap();
    Workspaces::folder(root.root().join("linked")).put(file(CallId::new(), "a", "b")).await.unwrap();
}

#[tokio::test]
async fn a_workspace_is_checked_as_far_as_it_exists() {
    let root = Root::new();
    fs::create_dir_all(root.root().join("team")).unwrap();
    fs::write(root.root().join("file"), "").unwrap();
    symlink("team", root.root().join("link")).unwrap();
    let workspaces = root.workspaces();
    for good in ["team", "team/new/below", "new"] {
        workspaces.check(good).await.unwrap();
    }
    let cause = async |workspace: &str| workspaces.check(workspace).await.unwrap_err().cause;
    assert_eq!(cause("file/x").await, Cause::InTheWay("file".to_owned()));
    assert_eq!(cause("link/x").await, Cause::Link("link".to_owned()));
    assert!(!root.root().join("new").exists(), "checking makes nothing");
}
