//! The S3 client over the wire, against a server that knows just enough.
//!
//! The client takes its settings from the environment, so each test runs in a process of its own.

use gatehouse_testkit::bucket::{self, Bucket};
use gatehouse_types::CallId;
use gatehouse_workspace::{Cause, Location, Workspaces, path};

use crate::{file, read};

/// Set in the process that has the settings: what it is to do.
const PART: &str = "GATEHOUSE_TEST_S3";
const CALL: &str = "0198f1c2-0000-7000-8000-000000000001";

/// Runs a test again, in a process with these settings.
async fn run(test: &str, part: &str, variables: [(&'static str, String); 5]) {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("s3::{test}"), "--nocapture"]).env(PART, part).envs(variables);
    let done = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
}

fn workspaces(url: &str) -> Workspaces {
    Workspaces::at(&url.parse::<Location>().unwrap()).unwrap()
}

#[tokio::test]
async fn files_are_saved_in_the_bucket_under_the_prefix_and_replace_nothing() {
    let call: CallId = CALL.parse().unwrap();
    if std::env::var_os(PART).is_some() {
        let workspaces = workspaces("s3://bucket/pre%20fix");
        let large = "x".repeat(300_000);
        for (content, expected) in [(&*large, "订 1.txt"), (&*large, "订 1.txt"), ("other", "订 1-2.txt")] {
            assert_eq!(workspaces.put(file(call, "订 1.txt", content)).await.unwrap(), expected);
        }
        assert_eq!(read(&workspaces, &path(call, "订 1.txt")).await.unwrap(), large);
        assert_eq!(read(&workspaces, &path(call, "gone")).await.unwrap_err().cause, Cause::Gone);
        return;
    }
    let bucket = Bucket::start().await.unwrap();
    run("files_are_saved_in_the_bucket_under_the_prefix_and_replace_nothing", "files", bucket.variables()).await;
    let keys: Vec<String> = bucket.objects().into_keys().collect();
    let base = "/bucket/pre%20fix/team/one/.agent/mcp";
    let name = format!("{base}/{CALL}/%E8%AE%A2%201");
    assert_eq!(keys, [format!("{base}/.gitignore"), format!("{name}-2.txt"), format!("{name}.txt")]);
}

#[tokio::test]
async fn a_store_that_refuses_or_is_not_there_is_said_to_be() {
    let this = "a_store_that_refuses_or_is_not_there_is_said_to_be";
    if let Ok(part) = std::env::var(PART) {
        let expected = if part == "refused" { Cause::Refused } else { Cause::Unreachable };
        let saved = workspaces("s3://forbidden").put(file(CallId::new(), "a", "b")).await;
        assert_eq!(saved.unwrap_err().cause, expected);
        return;
    }
    run(this, "refused", Bucket::start().await.unwrap().variables()).await;
    // Bound and not listened on: nobody else gets the port meanwhile.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    run(this, "unreachable", bucket::variables(format!("http://{}", socket.local_addr().unwrap()))).await;
}
