//! Databases end with their tests.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::{sync::mpsc, thread};

use gatehouse_testkit::Database;

fn name(database: &Database) -> String {
    let url = database.url();
    url.rsplit_once('/').unwrap().1.split('?').next().unwrap().to_owned()
}

async fn exists(from: &Database, name: &str) -> bool {
    let found = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)");
    found.bind(name).fetch_one(&from.pool()).await.unwrap()
}

#[tokio::test]
async fn a_database_has_the_schema_and_shares_nothing_with_another() {
    let (one, two) = tokio::join!(Database::new(), Database::new());
    gatehouse_store::migrate::check(&one.pool()).await.unwrap();
    sqlx::query("UPDATE config_epoch SET catalog = 77").execute(&one.pool()).await.unwrap();
    let other: i64 = sqlx::query_scalar("SELECT catalog FROM config_epoch").fetch_one(&two.pool()).await.unwrap();
    assert_eq!(other, 1);
}

#[tokio::test]
async fn a_test_that_panics_with_connections_open_leaves_no_database() {
    let (tell, told) = mpsc::channel();
    let failed = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let database = Database::new().await;
            tell.send(name(&database)).unwrap();
            let _held = database.pool().acquire().await.unwrap();
            panic!("a test that fails");
        })
    });
    assert!(failed.join().is_err());
    let gone = told.recv().unwrap();
    assert!(gone.starts_with("gatehouse_test_"));
    assert!(!exists(&Database::new().await, &gone).await);
}
