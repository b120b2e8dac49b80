//! Pure: what the model reads about cards.

use gatehouse_types::InteractionId;

use super::{Words, bounded};
use crate::{audit::Outcome, call::card::Closed};

/// Longest reason that is passed on, in characters.
const REASON: usize = 2_000;

/// A person said no.
pub fn denied(reason: &str) -> Words {
    let reason = bounded(reason.trim(), REASON);
    if reason.is_empty() {
        return Words::fixed(
            "the user did not approve this call. Nothing was carried out. Do not repeat it; ask the user how to go on.",
            "用户没有批准这次调用，什么都没有执行。不要重复调用；请询问用户如何继续。",
        );
    }
    Words::new(
        format!("the user did not approve this call. Nothing was carried out. The reason given: {reason}"),
        format!("用户没有批准这次调用，什么都没有执行。给出的理由：{reason}"),
    )
}

/// A card that was closed without an answer.
pub fn card_closed(closed: Closed, waited_sec: u64) -> (Outcome, Words) {
    match closed {
        Closed::TimedOut => (
            Outcome::TimedOut,
            Words::new(
                format!(
                    "nobody approved this call within {waited_sec} s. Nothing was carried out. Ask the user before you try again."
                ),
                format!("在 {waited_sec} 秒内没有人批准这次调用，什么都没有执行。再次尝试之前请先询问用户。"),
            ),
        ),
        Closed::Cancelled => (
            Outcome::Cancelled,
            Words::fixed(
                "the call was cancelled while it waited for approval. Nothing was carried out.",
                "调用在等待批准时被取消。什么都没有执行。",
            ),
        ),
        Closed::SessionDeleted => (
            Outcome::Cancelled,
            Words::fixed(
                "the session was deleted while the call waited for approval. Nothing was carried out.",
                "调用在等待批准时会话被删除。什么都没有执行。",
            ),
        ),
        Closed::Interrupted => (
            Outcome::Interrupted,
            Words::fixed(
                "Gatehouse is restarting; the call was still waiting for approval. Nothing was carried out. Call again to ask once more.",
                "Gatehouse 正在重启；调用仍在等待批准，什么都没有执行。再次调用会重新询问。",
            ),
        ),
        Closed::Superseded => (
            Outcome::Denied,
            Words::fixed(
                "what was to be approved has changed. Nothing was carried out. Call again to ask once more.",
                "待批准的内容已经改变，什么都没有执行。再次调用会重新询问。",
            ),
        ),
    }
}

/// Nobody could be asked.
pub fn no_card() -> Words {
    Words::fixed(
        "this call needs a person's approval, and nobody can be asked now. Nothing was carried out. Try again in a minute, or tell the user.",
        "这次调用需要人来批准，而现在无法询问任何人。什么都没有执行。请一分钟后重试，或告知用户。",
    )
}

/// What a held call says while it waits: what for, and how to answer.
pub fn waiting(tool: &str, card: InteractionId) -> Words {
    Words::new(
        format!("waiting for approval of {tool}; answer with: gatehouse answer {card} approve"),
        format!("正在等待批准 {tool}；答复命令：gatehouse answer {card} approve"),
    )
}
