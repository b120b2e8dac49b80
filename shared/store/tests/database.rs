//! The store against a real Postgres.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use gatehouse_store::{
    api_keys::{self, FirstKey},
    epoch, migrate, settings,
};
use gatehouse_testkit::Database;
use gatehouse_types::{Clock as _, Settings, SystemClock};
use secrecy::SecretString;
use sqlx::PgPool;
use time::Duration;

async fn ensure(pool: &PgPool, key: &str) -> FirstKey {
    let mut transaction = gatehouse_store::begin(pool).await.unwrap();
    let now = SystemClock.now();
    let outcome = api_keys::ensure_first_admin_key(&mut transaction, &SecretString::from(key), now).await.unwrap();
    transaction.commit().await.unwrap();
    outcome
}

#[tokio::test]
async fn replicas_that_migrate_an_empty_database_together_all_succeed() {
    let database = Database::empty().await;
    let pool = database.pool();
    assert!(matches!(migrate::check(&pool).await, Err(migrate::Error::Older { found: 0, .. })));
    let (one, two, three) = tokio::join!(migrate::migrate(&pool), migrate::migrate(&pool), migrate::migrate(&pool));
    one.unwrap();
    two.unwrap();
    three.unwrap();
    migrate::check(&pool).await.unwrap();
}

#[tokio::test]
async fn a_schema_that_is_newer_or_other_than_the_built_in_one_is_refused() {
    let database = Database::new().await;
    let pool = database.pool();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'from the future', true, '\\x00', 0)",
    )
    .execute(&pool)
    .await
    .unwrap();
    assert!(matches!(migrate::migrate(&pool).await, Err(migrate::Error::Newer { found: 9999 })));
    assert!(matches!(migrate::check(&pool).await, Err(migrate::Error::Newer { found: 9999 })));
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = 9999").execute(&pool).await.unwrap();
    migrate::check(&pool).await.unwrap();
    sqlx::query("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 1").execute(&pool).await.unwrap();
    assert!(matches!(migrate::migrate(&pool).await, Err(migrate::Error::Different { version: 1 })));
}

#[tokio::test]
async fn each_counter_moves_alone_and_only_with_the_commit() {
    let database = Database::new().await;
    let pool = database.pool();
    let mut connection = pool.acquire().await.unwrap();
    let before = epoch::read(&mut connection).await.unwrap();
    let mut transaction = gatehouse_store::begin(&pool).await.unwrap();
    assert_eq!(epoch::bump_catalog(&mut transaction).await.unwrap(), before.catalog + 1);
    assert_eq!(epoch::read(&mut connection).await.unwrap(), before);
    transaction.commit().await.unwrap();
    assert_eq!(epoch::bump_sessions(&mut connection).await.unwrap(), before.sessions + 1);
    let after = epoch::read(&mut connection).await.unwrap();
    assert_eq!((after.catalog, after.sessions), (before.catalog + 1, before.sessions + 1));
}

#[tokio::test]
async fn the_first_admin_key_is_stored_once_however_many_replicas_bring_it() {
    let database = Database::new().await;
    let pool = database.pool();
    let (one, two) = tokio::join!(ensure(&pool, "ghk_first"), ensure(&pool, "ghk_first"));
    assert!([one, two].contains(&FirstKey::Inserted) && [one, two].contains(&FirstKey::Known), "{one:?} {two:?}");
    assert_eq!(ensure(&pool, "ghk_second").await, FirstKey::OthersExist);

    let mut connection = pool.acquire().await.unwrap();
    let hash = api_keys::hash("ghk_first");
    let key = api_keys::find(&mut connection, &hash, SystemClock.now()).await.unwrap().unwrap();
    assert_eq!((key.name.as_str(), key.scope.as_str(), key.revoked), ("first-admin", "admin", false));
    let second = api_keys::hash("ghk_second");
    assert_eq!(api_keys::find(&mut connection, &second, SystemClock.now()).await.unwrap(), None);
}

#[tokio::test]
async fn a_revoked_first_key_does_not_come_back() {
    let database = Database::new().await;
    let pool = database.pool();
    assert_eq!(ensure(&pool, "ghk_first").await, FirstKey::Inserted);
    sqlx::query("UPDATE api_keys SET revoked_at = now()").execute(&pool).await.unwrap();
    assert_eq!(ensure(&pool, "ghk_first").await, FirstKey::Revoked);
    assert_eq!(ensure(&pool, "ghk_second").await, FirstKey::Inserted);
}

#[tokio::test]
async fn last_use_is_written_at_most_once_a_minute() {
    let database = Database::new().await;
    let pool = database.pool();
    ensure(&pool, "ghk_first").await;
    let mut connection = pool.acquire().await.unwrap();
    let (hash, now) = (api_keys::hash("ghk_first"), SystemClock.now());
    let key = api_keys::find(&mut connection, &hash, now).await.unwrap().unwrap();
    assert!(key.touch_due);
    assert!(api_keys::touch(&mut connection, key.id, now).await.unwrap());
    let later = now + Duration::seconds(59);
    assert!(!api_keys::find(&mut connection, &hash, later).await.unwrap().unwrap().touch_due);
    assert!(!api_keys::touch(&mut connection, key.id, later).await.unwrap());
    assert!(api_keys::touch(&mut connection, key.id, now + Duration::seconds(61)).await.unwrap());
}

#[tokio::test]
async fn a_stored_setting_that_is_unknown_or_out_of_bounds_is_left_out_and_the_others_count() {
    let database = Database::new().await;
    let pool = database.pool();
    sqlx::query(
        "INSERT INTO settings (key, value, updated_at, updated_by) VALUES
         ('tools.maxNameChars', '48', now(), 'ann'), ('tools.maxPerServer', '\"many\"', now(), 'ann'),
         ('from.the.future', '1', now(), 'ann')",
    )
    .execute(&pool)
    .await
    .unwrap();
    let stored = settings::load(&mut pool.acquire().await.unwrap()).await.unwrap();
    assert_eq!(stored.settings, Settings { tool_name_chars: 48, ..Settings::default() });
    assert_eq!(stored.rows.len(), 1);
    assert_eq!((stored.rows[0].key.as_str(), stored.rows[0].updated_by.as_str()), ("tools.maxNameChars", "ann"));
}

#[tokio::test]
async fn a_database_is_gone_after_its_test_also_while_connections_are_open() {
    let database = Database::new().await;
    let held = database.pool().acquire().await.unwrap();
    let other = Database::new().await;
    let name = database.url().rsplit_once('/').unwrap().1.split('?').next().unwrap().to_owned();
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)";
    assert!(sqlx::query_scalar::<_, bool>(exists).bind(&name).fetch_one(&other.pool()).await.unwrap());
    drop(database);
    assert!(!sqlx::query_scalar::<_, bool>(exists).bind(&name).fetch_one(&other.pool()).await.unwrap());
    drop(held);
}

/// A caller that goes away while a transaction begins leaves no connection inside one: what others write is committed.
#[tokio::test]
async fn a_transaction_that_nobody_waits_for_any_more_holds_nobodys_writes_back() {
    let database = Database::new().await;
    let pool = database.pool();
    for pause in 0..60_u64 {
        let beginning = gatehouse_store::begin(&pool);
        drop(tokio::time::timeout(std::time::Duration::from_micros(pause * 50), beginning).await);
    }
    // Every connection of the pool is used, side by side.
    let write = async |key: usize| {
        let insert = "INSERT INTO settings (key, value, updated_at, updated_by) VALUES ($1, '1', now(), 'a')";
        sqlx::query(insert).bind(format!("k{key}")).execute(&pool).await.unwrap();
    };
    futures_util::future::join_all((0..40).map(write)).await;
    let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM settings").fetch_one(&database.pool()).await.unwrap();
    let other = sqlx::PgPool::connect(&database.url()).await.unwrap();
    let committed: i64 = sqlx::query_scalar("SELECT count(*) FROM settings").fetch_one(&other).await.unwrap();
    assert_eq!((seen, committed), (40, 40));
    other.close().await;
}
