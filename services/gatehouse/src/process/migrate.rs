//! `gatehouse migrate`.

use std::{path::Path, process::ExitCode};

use gatehouse_platform::{config::Source, pool, process, telemetry, telemetry::Telemetry};
use secrecy::SecretString;

use super::error::Error;

/// Brings the schema up to date and says so in the log.
pub(super) fn run(config_file: Option<&Path>) -> ExitCode {
    let source = Source::from_process(config_file);
    let url = source.text("DATABASE_URL").map(SecretString::from);
    if url.is_none() {
        source.missing("DATABASE_URL");
    }
    let telemetry = telemetry::Config::load(&source);
    match (source.finish(), url) {
        (Err(problems), _) => process::report(&problems),
        (Ok(()), None) => ExitCode::from(process::EXIT_CONFIG),
        (Ok(()), Some(url)) => process::block_on(migrate(url, telemetry)),
    }
}

async fn migrate(url: SecretString, config: telemetry::Config) -> Result<(), Error> {
    let telemetry = Telemetry::start("migrate", &config)?;
    let pool = pool::connect("migrate", &url).await?;
    gatehouse_store::migrate(&pool).await?;
    pool.close().await;
    tracing::info!("the schema is up to date");
    telemetry.shutdown().await;
    Ok(())
}
