//! A call that a person must approve: the card is opened, and the call is held until the card has ended.
//!
//! Nothing goes out while it waits, and none of the call's other clocks run. When the terms that the card showed move, the card is
//! closed as superseded and the call is decided anew.

use std::{sync::Arc, time::Duration};

use gatehouse_types::{InteractionId, shown};
use time::OffsetDateTime;
use tokio::time::timeout;

use super::{
    Calls, Flight, Ground,
    card::{Answer, Answered, Binding, Closed, End, NewCard},
    terms,
    words::{self, Words},
};
use crate::{
    audit::{Decided, Outcome, WAITING, mask},
    catalog::Tool,
    error::Error,
    store::{ANSWER_WITHIN, grants, no_answer},
};

/// How much of the arguments a card shows, in bytes. Not the audit's setting: a person must see what they approve.
const SHOWN_BYTES: usize = 20_000;
/// How much longer than a card can be open its end is waited for, should the interaction service be away then.
const GRACE: Duration = Duration::from_mins(1);

/// What is to be asked.
pub(super) struct Question<'a> {
    pub(super) ground: &'a Ground,
    pub(super) tool: &'a Arc<Tool>,
    pub(super) may_remember: bool,
}

/// A person's yes, until it is used.
#[derive(Debug)]
pub(super) struct Approval {
    pub(super) card: InteractionId,
    pub(super) binding: Binding,
    /// For the audit.
    pub(super) word: &'static str,
    by: String,
    at: OffsetDateTime,
}

/// What came of a question.
pub(super) enum Asked {
    /// Yes. The call is decided once more: what the person saw may have moved while they answered.
    Approved(Approval),
    /// What was decided on has moved; a card that showed it is closed. The call is decided anew.
    Moved,
    /// The call does not go out, and its record is not waited for.
    Unrecorded(Words),
    /// The call does not go out.
    Ended { decided: Decided, outcome: Outcome, words: Words },
}

impl Approval {
    pub(super) fn decided(&self, word: &'static str) -> Decided {
        Decided { word, by: self.by.clone(), at: Some(self.at), interaction: Some(self.card) }
    }
}

impl Calls {
    pub(super) async fn ask(&self, flight: &mut Flight<'_>, question: Question<'_>) -> Asked {
        let Question { ground, tool, .. } = question;
        match self.is_current(flight.request, ground).await {
            Ok(true) => {}
            Ok(false) => return Asked::Moved,
            Err(words) => return Asked::Unrecorded(words),
        }
        let card = self.card(flight, &question);
        if let Err(error) = self.cards.open(&card).await {
            tracing::error!(error.message = %error, call.id = %flight.id, "a call is refused: no card can be opened");
            // The card may be there after all, with nobody who waits.
            self.cards.close(card.id, Closed::Interrupted).await;
            return Asked::Ended { decided: Decided::default(), outcome: Outcome::NotSent, words: words::no_card() };
        }
        let decided = Decided { word: WAITING, interaction: Some(card.id), ..Decided::default() };
        let started = flight.started(self, ground, Some(tool), decided);
        self.audit.still_running(Arc::clone(&started)).await;
        flight.waiting = Some(started);
        let waiting = words::waiting(&tool.exposed, card.id);
        flight.listener.waits(Some(waiting.of(ground.facts.locale)));
        let end = self.held(flight, &card).await;
        flight.listener.waits(None);
        match end {
            End::Answered(answered) if answered.binding != card.binding => {
                // What is stored is not what was asked: nobody has approved this call.
                tracing::error!(interaction.id = %card.id, "a card is stored with other hashes than it was opened with");
                self.cards.close(card.id, Closed::Superseded).await;
                ended(&card, Closed::Superseded)
            }
            End::Answered(answered) => self.answered(flight, &question, &card, answered).await,
            End::Closed(Closed::Superseded) => Asked::Moved,
            End::Closed(closed) => ended(&card, closed),
        }
    }

    fn card(&self, flight: &Flight<'_>, question: &Question<'_>) -> NewCard {
        let Question { ground, tool, may_remember } = *question;
        let (request, facts, arguments) = (flight.request, &ground.facts, flight.arguments());
        let shown = if arguments.is_empty() { "{}" } else { arguments };
        NewCard {
            id: InteractionId::new(),
            session: request.session.id,
            actor: request.actor.clone(),
            run: facts.runs.get(&request.actor).copied(),
            call: flight.id,
            replica: self.replica,
            server: tool.server.name.clone(),
            tool: tool.name.clone(),
            title: shown::line(&tool.title, 200),
            arguments: mask::masked(shown, SHOWN_BYTES, &tool.server.mask_rules, &tool.name),
            arguments_bytes: i64::try_from(arguments.len()).unwrap_or(i64::MAX),
            hints: tool.hints,
            policy: tool.policy,
            may_remember,
            binding: Binding {
                arguments: terms::arguments(arguments),
                terms: terms::terms(tool, facts.mode, facts.profile),
            },
            timeout_sec: ground.catalog.settings.interaction_timeout_sec,
        }
    }

    /// Holds the call until its card has ended, or closes the card when the call must not wait any longer.
    async fn held(&self, flight: &Flight<'_>, card: &NewCard) -> End {
        let request = flight.request;
        let most = Duration::from_secs(u64::from(card.timeout_sec)) + GRACE;
        let closed = tokio::select! {
            biased;
            end = timeout(most, self.cards.wait(card.id)) => match end {
                Ok(end) => return end,
                Err(_) => Closed::TimedOut,
            },
            () = request.cancel.cancelled() => Closed::Cancelled,
            () = request.session.ended.cancelled() => Closed::SessionDeleted,
            () = self.draining.cancelled() => Closed::Interrupted,
            () = self.moved(flight, card) => Closed::Superseded,
        };
        self.cards.close(card.id, closed).await;
        End::Closed(closed)
    }

    /// Returns when the terms that the card shows are not those of now any more.
    async fn moved(&self, flight: &Flight<'_>, card: &NewCard) {
        let mut changes = self.snapshot.changes();
        loop {
            let (catalog, facts) = (self.snapshot.catalog(), flight.request.session.facts());
            let offer = catalog.offer(facts.profile, facts.mode);
            let tool = offer.and_then(|offer| offer.find(&flight.request.name));
            let now = tool.map(|tool| terms::terms(tool, facts.mode, facts.profile));
            if now != Some(card.binding.terms) {
                return;
            }
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    async fn answered(
        &self,
        flight: &Flight<'_>,
        question: &Question<'_>,
        card: &NewCard,
        answered: Answered,
    ) -> Asked {
        let Answered { answer, by, at, .. } = answered;
        let word = match answer {
            Answer::Approve => "approved",
            Answer::ApproveForSession => {
                let remembered = self.remember(flight, question, card.id, &by, at).await;
                if let Err(error) = remembered {
                    // This call was approved all the same.
                    tracing::error!(error.message = %error, interaction.id = %card.id, "an approval for the session could not be kept; the next call will ask again");
                }
                "approved_for_session"
            }
            Answer::Deny(reason) => {
                return Asked::Ended {
                    decided: Decided { word: "denied", by, at: Some(at), interaction: Some(card.id) },
                    outcome: Outcome::Denied,
                    words: words::denied(&reason),
                };
            }
        };
        Asked::Approved(Approval { card: card.id, binding: card.binding, word, by, at })
    }

    /// Keeps a yes for the rest of the session, for the definition that the person saw.
    async fn remember(
        &self,
        flight: &Flight<'_>,
        question: &Question<'_>,
        card: InteractionId,
        by: &str,
        at: OffsetDateTime,
    ) -> Result<(), Error> {
        let tool = question.tool;
        let grant = grants::NewGrant {
            session: flight.request.session.id,
            server: tool.server.id,
            tool: &tool.name,
            fingerprint: &tool.fingerprint,
            interaction: card,
            by,
            at,
        };
        let kept = async {
            let mut transaction = gatehouse_store::begin(&self.pool).await?;
            grants::put(&mut transaction, &grant).await?;
            Ok::<(), Error>(transaction.commit().await?)
        };
        timeout(ANSWER_WITHIN, kept).await.unwrap_or_else(|_| Err(no_answer().into()))?;
        if let Err(error) = self.snapshot.refresh().await {
            tracing::warn!(error.message = %error, "an approval for the session will count a little later");
        }
        Ok(())
    }
}

fn ended(card: &NewCard, closed: Closed) -> Asked {
    let (outcome, words) = words::card_closed(closed, u64::from(card.timeout_sec));
    let decided = Decided { word: closed.as_str(), interaction: Some(card.id), ..Decided::default() };
    Asked::Ended { decided, outcome, words }
}
