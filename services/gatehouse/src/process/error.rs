//! Why `up` or `migrate` ends before it was asked to.

use std::{error::Error as StdError, io};

use gatehouse_platform::{config::Problems, pool, process, telemetry};
use gatehouse_store::migrate;

use super::{data, postgres};

/// The errors of the processes that only this command has.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Config(#[from] Problems),
    #[error(transparent)]
    Data(#[from] data::Error),
    #[error(transparent)]
    Postgres(#[from] postgres::Error),
    #[error(transparent)]
    Process(#[from] process::Error),
    #[error("telemetry cannot start")]
    Telemetry(#[from] telemetry::Error),
    #[error(transparent)]
    Pool(#[from] pool::Error),
    #[error(transparent)]
    Schema(#[from] migrate::Error),
    #[error("the {name} service failed")]
    Service {
        name: &'static str,
        #[source]
        why: Box<dyn StdError + Send + Sync>,
    },
    #[error("the {0} service ended although nobody asked it to")]
    Ended(&'static str),
    #[error("the services did not all listen within {0} s")]
    Slow(u64),
    #[error("{0}")]
    Io(&'static str, #[source] io::Error),
}
