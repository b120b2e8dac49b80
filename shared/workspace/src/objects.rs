//! Workspaces in an object store: prefixes of one bucket.

use std::{sync::Arc, time::Duration};

use object_store::{
    BackoffConfig, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, RetryConfig,
    aws::AmazonS3Builder, path::Path,
};

use crate::{
    IGNORE, NewFile, Occupant, RESULTS, SetupError,
    http_client::Connector,
    location::Location,
    path,
    problem::{Cause, Problem},
    reading::Reading,
    segments,
};

/// How long a request is tried again, and how often.
const RETRY_FOR: Duration = Duration::from_secs(20);
const RETRIES: usize = 3;

/// Workspaces under one prefix.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Arc<str>,
}

impl Objects {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self { store, prefix: prefix.trim_matches('/').into() }
    }

    /// An S3-compatible store, as the `AWS_…` variables of the environment say.
    pub(crate) fn s3(location: &Location) -> Result<Self, SetupError> {
        let Location::S3 { url, prefix } = location else {
            return Err(SetupError(object_store::Error::NotImplemented {
                operation: "another kind of location".to_owned(),
                implementer: "S3".to_owned(),
            }));
        };
        Self::s3_of(AmazonS3Builder::from_env().with_url(url), prefix)
    }

    fn s3_of(builder: AmazonS3Builder, prefix: &str) -> Result<Self, SetupError> {
        let retry = RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES, retry_timeout: RETRY_FOR };
        let store = builder.with_http_connector(Connector).with_retry(retry).build()?;
        Ok(Self::new(Arc::new(store), prefix))
    }

    /// A prefix needs not be made and nothing can stand in its way.
    pub(crate) fn check(&self, workspace: &str) -> Result<(), Problem> {
        self.key(workspace, RESULTS[0]).map(drop)
    }

    fn key(&self, workspace: &str, path: &str) -> Result<Path, Problem> {
        let below = format!("{workspace}/{path}");
        segments(&below)?;
        let whole = if self.prefix.is_empty() { below } else { format!("{}/{below}", self.prefix) };
        Path::parse(whole).map_err(|_| Cause::BadPath.into())
    }

    pub(crate) async fn put(&self, file: &NewFile) -> Result<String, Problem> {
        let (ignore, content) = IGNORE;
        let ignore = self.key(&file.workspace, &format!("{}/{ignore}", RESULTS.join("/")))?;
        // Made once; asking is cheaper than being refused, and then what is there stays.
        if self.head(&ignore).await?.is_none() {
            self.create(&ignore, PutPayload::from_static(content)).await?;
        }
        for name in file.candidates() {
            let key = self.key(&file.workspace, &path(file.call, &name))?;
            if self.create(&key, PutPayload::from_bytes(file.content.clone())).await?
                || self.occupant(&key, &file.content).await? == Occupant::Same
            {
                return Ok(name);
            }
        }
        Err(Cause::Crowded.into())
    }

    /// Writes an object; `false` when there is one.
    async fn create(&self, key: &Path, payload: PutPayload) -> Result<bool, Problem> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(key, payload, options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(false),
            // There is a bucket to write to, or there is no root.
            Err(object_store::Error::NotFound { .. }) => Err(Cause::NoRoot.into()),
            Err(error) => Err(error.into()),
        }
    }

    async fn head(&self, key: &Path) -> Result<Option<u64>, Problem> {
        match self.store.head(key).await {
            Ok(facts) => Ok(Some(facts.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn occupant(&self, key: &Path, content: &[u8]) -> Result<Occupant, Problem> {
        match self.head(key).await? {
            None => Ok(Occupant::Nothing),
            Some(size) if size != content.len() as u64 => Ok(Occupant::Other),
            Some(_) => {
                let mut reading = self.read(key).await?;
                let mut left = content;
                while let Some(chunk) = reading.next().await? {
                    match left.strip_prefix(chunk.as_ref()) {
                        Some(rest) => left = rest,
                        None => return Ok(Occupant::Other),
                    }
                }
                Ok(if left.is_empty() { Occupant::Same } else { Occupant::Other })
            }
        }
    }

    pub(crate) async fn holds(&self, workspace: &str, path: &str) -> Result<bool, Problem> {
        Ok(self.head(&self.key(workspace, path)?).await?.is_some())
    }

    pub(crate) async fn open(&self, workspace: &str, path: &str) -> Result<Reading, Problem> {
        self.read(&self.key(workspace, path)?).await
    }

    async fn read(&self, key: &Path) -> Result<Reading, Problem> {
        let found = self.store.get(key).await?;
        let size = found.meta.size;
        Ok(Reading::stream(found.into_stream(), size))
    }
}
