//! Looking into the tables, where the wire must not show something.

use gatehouse_gateway::store::Pool;
use gatehouse_store::epoch::{self, Epoch};
use gatehouse_testkit::Database;
use sqlx::{Row as _, postgres::PgPoolOptions};

use crate::harness::Gateway;

/// A pool that gives no connections.
pub(crate) async fn closed_pool(database: &Database) -> Pool {
    let pool = PgPoolOptions::new().connect_lazy(&database.url()).unwrap();
    pool.close().await;
    pool
}

impl Gateway {
    /// The counters of changes.
    pub(crate) async fn epoch(&self) -> Epoch {
        epoch::read(&mut self.state.pool.acquire().await.unwrap()).await.unwrap()
    }

    /// The last change of a session, as its row says.
    pub(crate) async fn session_epoch(&self, id: &str) -> i64 {
        let query = sqlx::query("SELECT epoch FROM sessions WHERE id = $1::uuid").bind(id);
        query.fetch_one(&self.state.pool).await.unwrap().get(0)
    }

    /// Everything in a table, as text; `bytea` as its bytes.
    pub(crate) async fn dump(&self, table: &str) -> String {
        let query = sqlx::AssertSqlSafe(format!("SELECT row_to_json({table})::text FROM {table}"));
        let rows = sqlx::query(query).fetch_all(&self.state.pool).await.unwrap();
        rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
    }

    /// The sealed headers of a server.
    pub(crate) async fn sealed_headers(&self, id: &str) -> Option<Vec<u8>> {
        let query = sqlx::query("SELECT headers_sealed FROM servers WHERE id = $1::uuid").bind(id);
        query.fetch_one(&self.state.pool).await.unwrap().get(0)
    }

    /// Runs a statement that takes no values.
    pub(crate) async fn execute(&self, statement: &str) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned())).execute(&self.state.pool).await.unwrap();
    }

    /// Whether a token is good, as the edge would find it.
    pub(crate) async fn good_token(&self, token: &str) -> bool {
        let hash = gatehouse_store::api_keys::hash(token);
        let mut connection = self.state.pool.acquire().await.unwrap();
        gatehouse_gateway::store::snapshot::find_token(&mut connection, &hash).await.unwrap().is_some()
    }
}

impl Gateway {
    /// Puts sealed headers in place of those of a server.
    pub(crate) async fn put_sealed_headers(&self, id: &str, sealed: &[u8]) {
        let query = sqlx::query("UPDATE servers SET headers_sealed = $2 WHERE id = $1::uuid").bind(id).bind(sealed);
        assert_eq!(query.execute(&self.state.pool).await.unwrap().rows_affected(), 1);
    }
}
