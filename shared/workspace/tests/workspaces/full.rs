//! A disk that takes no more. The limit on the size of files stands for it: it needs no mount, and holds for every user.

use std::{fs, process::Command};

use gatehouse_types::CallId;
use gatehouse_workspace::Cause;

use crate::{Root, file};

/// Set in the process that has the limit.
const LIMITED: &str = "GATEHOUSE_TEST_LIMITED";

#[tokio::test]
async fn a_file_that_does_not_fit_is_refused_in_words_and_leaves_nothing_behind() {
    if std::env::var_os(LIMITED).is_none() {
        let this = "full::a_file_that_does_not_fit_is_refused_in_words_and_leaves_nothing_behind";
        // The signal must not end the process; 8 blocks of 512 bytes.
        let done = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", this, "--nocapture"])
            .env(LIMITED, "1")
            // The answer of the process that has the limit is no file.
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
        return;
    }
    let root = Root::new();
    let workspaces = root.workspaces();
    let call = CallId::new();
    let refused = workspaces.put(file(call, "large.bin", &"x".repeat(1 << 20))).await;
    assert_eq!(refused.unwrap_err().cause, Cause::TooLarge);
    let folder = root.root().join("team/one/.agent/mcp").join(call.to_string());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    // What fits is still taken.
    assert_eq!(workspaces.put(file(call, "small.bin", "x")).await.unwrap(), "small.bin");
}
