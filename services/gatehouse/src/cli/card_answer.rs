//! `gatehouse answer`: a person's word on a card.

use clap::{Args, ValueEnum};
use gatehouse_proto::interaction::v1::{
    AnswerInteractionRequest, ApprovalReply, Decision, InteractionState, answer_interaction_request,
};
use serde_json::json;

use super::{
    Context, cards, cards_view, convert,
    failure::{FAILED, Failure},
    output::{Answer, Out},
};

/// Arguments of `answer`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gatehouse answer CARD\n  gatehouse answer CARD approve\n  \
                        gatehouse answer CARD deny --reason 'use the test account' --as Ada\n\n\
                        Without a word the card is shown and the answer asked for. The exit code is 1 when the card was\n\
                        answered or closed before.")]
pub(crate) struct CardAnswer {
    /// Id of the card
    card: String,
    /// The answer; else the card is shown, and the terminal asks
    #[arg(value_enum)]
    word: Option<Word>,
    /// Why not, for the model
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    reason: String,
    /// Who answers, for the record; else the name of the API key
    #[arg(long = "as", default_value = "", hide_default_value = true, value_name = "NAME")]
    answered_by: String,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Word {
    /// This call, once
    Approve,
    /// This call, and later calls of this tool in this session
    ApproveForSession,
    /// Not this call
    Deny,
}

impl Word {
    fn proto(self) -> Decision {
        match self {
            Self::Approve => Decision::Approve,
            Self::ApproveForSession => Decision::ApproveForSession,
            Self::Deny => Decision::Deny,
        }
    }
}

/// What somebody typed at the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    Answer(Word),
    Leave,
    Unclear,
}

/// What an answer at the terminal means. Only a whole word or its letter counts: approving must not happen by accident.
fn typed(text: &str, may_remember: bool) -> Typed {
    match text.to_ascii_lowercase().as_str() {
        "a" | "approve" => Typed::Answer(Word::Approve),
        "s" | "session" | "approve-for-session" if may_remember => Typed::Answer(Word::ApproveForSession),
        "d" | "deny" => Typed::Answer(Word::Deny),
        "q" | "quit" => Typed::Leave,
        _ => Typed::Unclear,
    }
}

impl CardAnswer {
    /// Whether it can be carried out; before anything else is done.
    pub(crate) fn check(&self, out: &Out) -> Result<(), Failure> {
        if !self.reason.is_empty() && self.word != Some(Word::Deny) {
            return Err(Failure::usage("--reason tells the model why not; it goes with `deny`"));
        }
        if self.word.is_none() && !out.can_ask() {
            return Err(Failure::usage("there is no terminal to ask on")
                .next("add the answer: `approve`, `approve-for-session` or `deny`"));
        }
        Ok(())
    }

    /// Answers, after asking where no word was given.
    pub(crate) async fn run(self, context: &Context) -> Result<Answer, Failure> {
        match self.word {
            Some(word) => self.send(word, self.reason.clone(), context).await,
            None => self.ask(context).await,
        }
    }

    async fn ask(&self, context: &Context) -> Result<Answer, Failure> {
        let (out, card) = (&context.out, cards::get(&self.card, context).await?);
        out.tell(&cards_view::one(&card, out));
        let document = json!({ "interaction": convert::json(cards::CARD, &card)?, "counted": false });
        if card.state() != InteractionState::Open {
            return Ok(
                Answer::new("The card is closed; there is nothing to answer.\n".to_owned(), &document).exit(FAILED)
            );
        }
        let may_remember = cards_view::approval(&card).is_some_and(|shown| shown.may_remember);
        let session = if may_remember { "[s] approve for this session, " } else { "" };
        let question = format!("[a] approve this call, {session}[d] deny, [q] leave it open: ");
        loop {
            // A terminal that was closed decides nothing.
            let text = out.ask(&question).await?.unwrap_or_else(|| "q".to_owned());
            match typed(&text, may_remember) {
                Typed::Answer(Word::Deny) => {
                    let Some(reason) = out.ask("Why, for the model (Enter for no reason): ").await? else {
                        return Ok(Answer::new("Left open.\n".to_owned(), &document));
                    };
                    return self.send(Word::Deny, reason, context).await;
                }
                Typed::Answer(word) => return self.send(word, String::new(), context).await,
                Typed::Leave => return Ok(Answer::new("Left open.\n".to_owned(), &document)),
                Typed::Unclear => {}
            }
        }
    }

    async fn send(&self, word: Word, reason: String, context: &Context) -> Result<Answer, Failure> {
        let reply = ApprovalReply { decision: word.proto().into(), reason };
        let request = AnswerInteractionRequest {
            id: self.card.clone(),
            answer: Some(answer_interaction_request::Answer::Approval(reply)),
            answered_by: self.answered_by.clone(),
        };
        let sent = context.client.answer(context.client.interactions().answer_interaction(request)).await;
        let response = sent.map_err(cards::not_found)?;
        let card = response.interaction.unwrap_or_default();
        let document = json!({ "interaction": convert::json(cards::CARD, &card)?, "counted": response.counted });
        if !response.counted {
            return Ok(Answer::new(cards_view::too_late(&card, &context.out), &document).exit(FAILED));
        }
        let text = match word {
            Word::Approve => "Approved: this call goes out.\n",
            Word::ApproveForSession => {
                "Approved: this call goes out, and later calls of this tool in this session until its definition changes.\n"
            }
            Word::Deny => "Denied: the call does not go out, and the model is told.\n",
        };
        Ok(Answer::new(text.to_owned(), &document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_word_or_its_letter_answers() {
        for (text, meant) in [
            ("a", Typed::Answer(Word::Approve)),
            ("Approve", Typed::Answer(Word::Approve)),
            ("d", Typed::Answer(Word::Deny)),
            ("DENY", Typed::Answer(Word::Deny)),
            ("q", Typed::Leave),
            ("", Typed::Unclear),
            ("y", Typed::Unclear),
            ("approve it", Typed::Unclear),
            ("ad", Typed::Unclear),
        ] {
            for may_remember in [false, true] {
                assert_eq!(typed(text, may_remember), meant, "{text}");
            }
        }
        assert_eq!(typed("s", true), Typed::Answer(Word::ApproveForSession));
        assert_eq!(typed("s", false), Typed::Unclear);
        assert_eq!(typed("approve-for-session", false), Typed::Unclear);
    }
}
