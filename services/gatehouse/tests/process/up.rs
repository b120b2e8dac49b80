//! `up` and its Postgres, from outside.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use gatehouse_testkit::{Database, eventually};
use sqlx::{Connection as _, PgConnection};

use crate::support::{Folder, Up, command, get, is_alive, output};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

async fn stopped(mut up: Up) {
    let postmaster = up.postmaster();
    up.running.signal("INT");
    let status = up.running.ended().await;
    assert_eq!(status.code(), Some(0), "{}", up.running.printed());
    assert!(!up.data("endpoints.json").exists());
    assert!(!postmaster.is_some_and(is_alive), "Postgres still runs");
    assert!(!up.data("postgres/postmaster.pid").exists());
}

#[tokio::test]
async fn what_was_written_survives_kill_9_and_ctrl_c_leaves_no_process() {
    let folder = Folder::new();
    let mut up = Up::start(&folder, &[]).await;
    let mut connection = PgConnection::connect(&up.database()).await.unwrap();
    sqlx::query("INSERT INTO settings VALUES ('tools.maxNameChars', '48', now(), 'test')")
        .execute(&mut connection)
        .await
        .unwrap();
    let secrets =
        |up: &Up| ["keyring", "service-token", "admin.key"].map(|name| fs::read_to_string(up.data(name)).unwrap());
    let (before, postmaster) = (secrets(&up), up.postmaster().unwrap());
    up.running.kill();
    assert!(is_alive(postmaster), "the left-over Postgres is what the next start meets");

    let again = Up::start(&folder, &[]).await;
    assert!(!is_alive(postmaster));
    assert_eq!(secrets(&again), before);
    drop(connection);
    let mut connection = PgConnection::connect(&again.database()).await.unwrap();
    let value: String =
        sqlx::query_scalar("SELECT value::text FROM settings").fetch_one(&mut connection).await.unwrap();
    assert_eq!(value, "48");
    drop(connection);
    stopped(again).await;
}

#[tokio::test]
async fn everything_may_be_killed_at_once_and_the_stale_pid_file_may_name_another_process() {
    let folder = Folder::new();
    let mut up = Up::start(&folder, &[]).await;
    let postmaster = up.postmaster().unwrap();
    up.running.kill();
    let killed = std::process::Command::new("kill").args(["-9", &postmaster.to_string()]).status().unwrap();
    assert!(killed.success());
    eventually("Postgres is gone", async || (!is_alive(postmaster)).then_some(())).await;
    // The worst case: the number belongs to a process that has nothing to do with Postgres, here this one.
    let file = up.data("postgres/postmaster.pid");
    let text = fs::read_to_string(&file).unwrap();
    let rest = text.split_once('\n').unwrap().1;
    fs::write(&file, format!("{}\n{rest}", std::process::id())).unwrap();
    std::mem::forget(up);
    stopped(Up::start(&folder, &[]).await).await;
}

#[tokio::test]
async fn a_second_up_on_one_data_folder_refuses_and_names_the_first() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[]).await;
    let data = folder.path().join("data");
    let second = output(command(&["--data", data.to_str().unwrap(), "up"]));
    let words = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(words.contains("another `gatehouse up` runs") && words.contains(&up.running.pid().to_string()), "{words}");
    assert!(up.data("endpoints.json").exists());
    stopped(up).await;
}

#[tokio::test]
async fn secrets_are_private_files_that_are_never_replaced_and_no_other_user_can_enter() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[]).await;
    for name in ["keyring", "service-token", "admin.key", "lock"] {
        assert_eq!(mode(&up.data(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&up.data("")) & 0o067, 0, "others and the group may not read; others may not enter");
    assert_eq!(mode(&up.data("postgres")), 0o700, "the socket is in here");
    assert!(up.data("postgres/.s.PGSQL.5432").exists());
    stopped(up).await;
}

#[tokio::test]
async fn postgres_that_dies_ends_up_with_words() {
    let folder = Folder::new();
    let mut up = Up::start(&folder, &[]).await;
    let postmaster = up.postmaster().unwrap();
    let killed = std::process::Command::new("kill").args(["-9", &postmaster.to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(up.running.ended().await.code(), Some(1));
    let words = up.running.printed();
    assert!(words.contains("Postgres ended by itself (signal: 9 (SIGKILL))"), "{words}");
    assert!(!up.data("endpoints.json").exists());
}

#[tokio::test]
async fn a_cluster_of_another_version_is_refused_with_both_versions_named() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("postgres")).unwrap();
    fs::write(data.join("postgres/PG_VERSION"), "9\n").unwrap();
    let refused = output(command(&["--data", data.to_str().unwrap(), "up"]));
    let words = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(words.contains("made by Postgres 9, and this machine has"), "{words}");
    assert!(words.contains("postgresql-9"), "{words}");
}

#[tokio::test]
async fn a_data_folder_that_everybody_can_write_is_refused() {
    let folder = Folder::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = output(command(&["--data", folder.path().to_str().unwrap(), "up"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("can be written by every user"));
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[tokio::test]
async fn a_path_that_is_too_long_for_a_socket_and_has_odd_characters_works() {
    let folder = Folder::new();
    let data = folder.path().join("long".repeat(30)).join("with space+plus%and'quote");
    fs::create_dir_all(data.parent().unwrap()).unwrap();
    let nested = Folder::new();
    std::os::unix::fs::symlink(&data, nested.path().join("data")).unwrap();
    fs::create_dir(&data).unwrap();
    let mut up = Up::start(&nested, &[]).await;
    let pid_file = fs::read_to_string(up.data("postgres/postmaster.pid")).unwrap();
    let sockets = std::path::PathBuf::from(pid_file.lines().nth(4).unwrap());
    assert_eq!(mode(&sockets), 0o700);
    up.running.kill();
    // The next start finds the one that still runs, and the folder of its socket.
    stopped(Up::start(&nested, &[]).await).await;
    assert!(!sockets.exists());
}

#[tokio::test]
async fn with_database_url_no_postgres_is_started_and_the_process_is_ready_and_measured() {
    let (folder, database) = (Folder::new(), Database::empty().await);
    let up = Up::start(&folder, &[("DATABASE_URL", &database.url())]).await;
    assert!(!up.data("postgres").exists());
    let ops = up.endpoint("ops");
    assert!(get(&ops, "/healthz").starts_with("HTTP/1.0 200"));
    assert!(get(&ops, "/readyz").starts_with("HTTP/1.0 200"));
    assert!(get(&ops, "/metrics").starts_with("HTTP/1.0 200"));
    stopped(up).await;
}

#[tokio::test]
async fn a_wrong_configuration_is_reported_whole_with_exit_code_2_and_without_values() {
    let mut wrong = command(&["gateway"]);
    wrong.envs([
        ("GATEHOUSE_GRPC_LISTEN", "hunter2"),
        ("GATEHOUSE_OPS_LISTEN", "hunter2"),
        ("GATEHOUSE_KEYRING", "hunter2"),
        ("GATEHOUSE_SERVICE_TOKEN", "hunter2"),
        ("GATEHOUSE_ADMIN_KEY", "hunter2"),
        ("GATEHOUSE_LOG_FORMAT", "hunter2"),
    ]);
    let refused = output(wrong);
    let words = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    for name in ["DATABASE_URL", "GRPC_LISTEN", "OPS_LISTEN", "KEYRING", "SERVICE_TOKEN", "ADMIN_KEY", "LOG_FORMAT"] {
        assert!(words.contains(name), "{name}: {words}");
    }
    assert!(!words.contains("hunter2"), "{words}");
}

#[tokio::test]
async fn a_plain_address_beyond_loopback_is_refused_before_anything_starts() {
    let mut wrong = command(&["interaction"]);
    wrong.env("GATEHOUSE_INTERACTION_LISTEN", "0.0.0.0:0");
    let refused = output(wrong);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("gRPC there needs TLS"));
}
