//! The interaction service: cards and their ends.

use std::time::Duration;

use gatehouse_proto::interaction::v1::{
    CloseInteractionRequest, WaitInteractionRequest, interaction_service_client::InteractionServiceClient,
};
use gatehouse_types::{InteractionId, backoff::Backoff};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::TaskTracker;
use tonic::{Code, Status, transport::Channel};

use crate::{
    call::card::{Closed, End, NewCard},
    convert::interactions as convert,
};

/// How long one request may take.
const WITHIN: Duration = Duration::from_secs(5);
/// How long a call waits for its card to be closed; after that it is closed in the background.
const CLOSE_SOON: Duration = Duration::from_secs(1);
/// How long it is tried in the background. After that the card runs out by itself, or its replica's end closes it.
const CLOSE_WITHIN: Duration = Duration::from_mins(10);
/// Pauses between tries.
const RETRY: Backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(2) };

/// Why a card could not be opened or closed.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// No answer in time.
    #[error("the interaction service does not answer")]
    TimedOut,
    /// It answered with an error.
    #[error("the interaction service answered with {}: {}", .0.code(), .0.message())]
    Status(Box<Status>),
    /// Its answer does not make sense.
    #[error("the interaction service's answer is incomplete: {0}")]
    Incomplete(&'static str),
}

impl From<Status> for CardError {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// Cards. Cheap to clone.
#[derive(Clone)]
pub struct Cards {
    client: InteractionServiceClient<Channel>,
    tasks: TaskTracker,
}

impl Cards {
    /// Cards at the service behind this channel. `tasks` are waited for when the process ends.
    pub fn new(channel: Channel, tasks: TaskTracker) -> Self {
        Self { client: InteractionServiceClient::new(channel), tasks }
    }

    /// Opens a card. When it fails the card may be open all the same.
    pub async fn open(&self, card: &NewCard) -> Result<(), CardError> {
        let request = convert::create(card);
        let until = Instant::now() + WITHIN;
        let mut failures = 0;
        loop {
            let created = timeout(WITHIN, self.client.clone().create_interaction(request.clone())).await;
            let status = match created {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(status)) => status,
                Err(_) => return Err(CardError::TimedOut),
            };
            failures += 1;
            let pause = RETRY.pause(failures, 0.0);
            // The same id again: a card that was opened already is the one.
            if status.code() != Code::Unavailable || Instant::now() + pause > until {
                return Err(status.into());
            }
            sleep(pause).await;
        }
    }

    /// Waits until a card has ended, however often the service goes away meanwhile.
    pub async fn wait(&self, card: InteractionId) -> End {
        let mut failures = 0;
        loop {
            match self.follow(card, &mut failures).await {
                Ok(end) => return end,
                // Nobody can answer a card that is not there.
                Err(CardError::Status(status)) if status.code() == Code::NotFound => {
                    tracing::error!(interaction.id = %card, "a card that a call waits for is gone");
                    return End::Closed(Closed::Interrupted);
                }
                Err(error) => {
                    tracing::warn!(interaction.id = %card, error.message = %error, "a card is waited for again");
                }
            }
            failures += 1;
            sleep(RETRY.pause(failures, 0.0)).await;
        }
    }

    async fn follow(&self, card: InteractionId, failures: &mut u32) -> Result<End, CardError> {
        let request = WaitInteractionRequest { id: card.to_string() };
        let opened = timeout(WITHIN, self.client.clone().wait_interaction(request)).await;
        let mut stream = opened.map_err(|_| CardError::TimedOut)??.into_inner();
        while let Some(now) = stream.message().await? {
            *failures = 0;
            if let Some(end) = convert::end(now)? {
                return Ok(end);
            }
        }
        Err(CardError::Incomplete("the stream ended while the card was open"))
    }

    /// Closes a card that the call does not wait for any more. Returns when that is done, or a second later: then it goes on in the
    /// background.
    pub async fn close(&self, card: InteractionId, closed: Closed) {
        let this = self.clone();
        let closing = self.tasks.spawn(async move { this.close_surely(card, closed).await });
        // Not done: the task goes on.
        let _ = timeout(CLOSE_SOON, closing).await;
    }

    async fn close_surely(&self, card: InteractionId, closed: Closed) {
        let request = CloseInteractionRequest { id: card.to_string(), state: convert::state(closed).into() };
        let until = Instant::now() + CLOSE_WITHIN;
        let mut failures = 0;
        loop {
            let done = timeout(WITHIN, self.client.clone().close_interaction(request.clone())).await;
            let error = match done {
                Ok(Ok(_)) => return,
                // It was never opened.
                Ok(Err(status)) if status.code() == Code::NotFound => return,
                Ok(Err(status)) => CardError::from(status),
                Err(_) => CardError::TimedOut,
            };
            failures += 1;
            let pause = RETRY.pause(failures, 0.0);
            if Instant::now() + pause > until {
                tracing::error!(interaction.id = %card, error.message = %error, "a card that nobody waits for stays open until its time is over");
                return;
            }
            tracing::warn!(interaction.id = %card, error.message = %error, "a card could not be closed; trying again");
            sleep(pause).await;
        }
    }
}
