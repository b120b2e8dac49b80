//! Pure: what the model reads when a call does not end with a tool's result, in English and Chinese. It says what happened, whether
//! anything may have been carried out, and what to do next; no inner addresses, no stack traces. The audit keeps the English.

mod cards;
mod cause;
mod programs;

use std::{borrow::Cow, time::Duration};

use gatehouse_mcp::client::RequestError;
use gatehouse_types::{Hints, Locale, shown::block};

pub use self::{
    cards::{card_closed, denied, no_card, waiting},
    cause::{cause, not_opened},
    programs::{crashed, no_homes, not_a_server, not_started, pauses},
};
use super::decide::Refusal;
use crate::{
    audit::Outcome,
    results::{self, NotAResult, Output},
};

/// One text in each language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// English.
    pub en: Cow<'static, str>,
    /// Chinese.
    pub zh: Cow<'static, str>,
}

impl Words {
    /// A text that is always the same.
    pub const fn fixed(en: &'static str, zh: &'static str) -> Self {
        Self { en: Cow::Borrowed(en), zh: Cow::Borrowed(zh) }
    }

    /// A text that was put together.
    pub fn new(en: impl Into<Cow<'static, str>>, zh: impl Into<Cow<'static, str>>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }

    /// The text in this language.
    pub fn of(&self, locale: Locale) -> &str {
        locale.pick(&self.en, &self.zh)
    }
}

/// The database does not answer.
pub const DATABASE: Words = Words::fixed(
    "Gatehouse cannot reach its database, so the call was not sent. Nothing was carried out. Try again in a minute.",
    "Gatehouse 无法连接其数据库，因此调用没有发出，什么都没有执行。请一分钟后重试。",
);
/// The session is gone.
pub const SESSION_ENDED: Words = Words::fixed(
    "this session has ended or its token was replaced. The call was not sent; nothing was carried out.",
    "本会话已结束，或其令牌已被更换。调用没有发出，什么都没有执行。",
);
/// The configuration moves faster than calls can be decided.
pub const KEEPS_CHANGING: Words = Words::fixed(
    "the configuration changed again and again while the call was decided. Nothing was carried out. Try again.",
    "在决定这次调用期间配置反复变化。什么都没有执行。请重试。",
);
/// Too many calls wait for a server.
pub const BUSY: Words = Words::fixed("too many calls to it are waiting", "等待它的调用太多");
/// The answer to a call cannot be had any more.
pub const ANSWER_LOST: Words = Words::fixed(
    "the answer to this call is not kept any more, or Gatehouse was restarted; the call may or may not have been carried out. Check before you repeat it.",
    "这次调用的结果已不再保留，或 Gatehouse 已重启；调用可能已执行，也可能没有。重复之前请先核实。",
);

/// What a call that takes its time says.
pub const STILL: Words = Words::fixed("still waiting for the tool", "仍在等待工具");

const NOTHING: Words = Words::fixed(
    "Nothing was carried out. Try again later, or tell the user.",
    "什么都没有执行。请稍后重试，或告知用户。",
);
const MAY_REPEAT: Words = Words::fixed("It only reads, so it can be repeated.", "它只读取数据，可以重复调用。");
const IN_DOUBT: Words = Words::fixed(
    "The call may or may not have been carried out. Check before you repeat it.",
    "调用可能已执行，也可能没有。重复之前请先核实。",
);

/// Longest text of a server that is repeated in our own words, in characters.
const EXCERPT: usize = 2_000;

/// How a call is told, to the model and to the audit.
#[derive(Debug)]
pub struct Told {
    /// For the audit.
    pub outcome: Outcome,
    /// For the audit; empty when nothing went wrong.
    pub error: String,
    /// For the model.
    pub output: Output,
    /// For the audit: paths of its files.
    pub files: Vec<String>,
    /// For the audit: what was wrong with its result.
    pub notes: Vec<String>,
}

/// Why a call was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The engine or a person cancelled it.
    Cancelled,
    /// Its session was deleted.
    SessionEnded,
    /// The gateway shuts down.
    Draining,
}

/// Tells it in the session's language.
pub fn told(outcome: Outcome, words: &Words, locale: Locale) -> Told {
    // A server's own words may be among them.
    let error = crate::audit::mask::mask_text(&words.en).into_owned();
    let output = results::refusal(words.of(locale), locale);
    Told { outcome, error, output, files: Vec::new(), notes: Vec::new() }
}

/// A call that does not go out.
pub fn refused(refusal: &Refusal) -> Words {
    match refusal {
        Refusal::NoSuchTool(name) => Words::new(
            format!(
                "there is no tool `{name}` in this session. List the tools again; it may have been removed or switched off."
            ),
            format!("本会话中没有工具 `{name}`。请重新列出工具；它可能已被移除或停用。"),
        ),
        Refusal::ArgumentsNotAnObject => {
            Words::fixed("the arguments must be a JSON object.", "参数必须是一个 JSON 对象。")
        }
        Refusal::ArgumentsTooLarge { size, most } => Words::new(
            format!(
                "the arguments have {size} bytes; at most {most} are taken. Send less, or send a file's path instead."
            ),
            format!("参数有 {size} 字节，最多接受 {most} 字节。请减少内容，或改为传文件路径。"),
        ),
    }
}

/// A call that was stopped while the server worked on it.
pub fn stopped(stop: Stop) -> (Outcome, Words) {
    match stop {
        Stop::Cancelled => (
            Outcome::Cancelled,
            Words::fixed(
                "the call was cancelled; it may or may not have been carried out.",
                "调用已被取消；它可能已执行，也可能没有。",
            ),
        ),
        Stop::SessionEnded => (
            Outcome::Cancelled,
            Words::fixed(
                "the session was deleted while the call ran; it may or may not have been carried out.",
                "调用进行中会话被删除；它可能已执行，也可能没有。",
            ),
        ),
        Stop::Draining => (
            Outcome::Unknown,
            Words::fixed(
                "Gatehouse is restarting and could not wait for the answer; the call may or may not have been carried out. Check before you repeat it.",
                "Gatehouse 正在重启，未能等到结果；调用可能已执行，也可能没有。重复之前请先核实。",
            ),
        ),
    }
}

/// An answer that is no tool result.
pub fn not_a_result(server: &str, wrong: &NotAResult) -> (Outcome, Words) {
    let zh = match wrong {
        NotAResult::NotAnObject => "结果不是 JSON 对象",
        NotAResult::Content => "`content` 不是列表",
    };
    let words = Words::new(
        format!("the server `{server}` answered, but not as a tool does: {wrong}. The call was probably carried out."),
        format!("服务器 `{server}` 有应答，但不是工具结果：{zh}。调用很可能已执行。"),
    );
    (Outcome::ToolError, words)
}

/// A request that failed.
pub fn failed(server: &str, error: &RequestError, hints: Hints, timeout: Duration) -> (Outcome, Words) {
    let doubt = if hints.read_only { MAY_REPEAT } else { IN_DOUBT };
    let both = |en: String, zh: String, then: &Words| {
        Words::new(format!("the server `{server}` {en} {}", then.en), format!("服务器 `{server}` {zh}{}", then.zh))
    };
    match error {
        RequestError::NotSent(why) if why.certainly_not_carried_out() => {
            let zh = cause::outbound(why);
            (Outcome::NotSent, both(format!("cannot be reached: {why}."), format!("无法连接：{zh}。"), &NOTHING))
        }
        RequestError::NotSent(_) | RequestError::Lost(_) => (
            Outcome::Unknown,
            Words::new(
                format!("the connection to the server `{server}` was lost. {}", doubt.en),
                format!("与服务器 `{server}` 的连接中断。{}", doubt.zh),
            ),
        ),
        RequestError::SessionGone => {
            (Outcome::NotSent, both("forgets its sessions at once.".into(), "立即丢失会话。".into(), &NOTHING))
        }
        RequestError::TimedOut => {
            let seconds = timeout.as_secs();
            let en = format!("did not answer within {seconds} s and was told to stop.");
            (Outcome::TimedOut, both(en, format!("在 {seconds} 秒内没有应答，已通知它停止。"), &doubt))
        }
        RequestError::Cancelled => stopped(Stop::Cancelled),
        RequestError::Rpc { code, message, .. } => {
            let message = block(message, EXCERPT);
            let words = Words::new(
                format!("the server `{server}` refused the call: {message} ({code})"),
                format!("服务器 `{server}` 拒绝了调用：{message} ({code})"),
            );
            (Outcome::ToolError, words)
        }
        RequestError::Unauthorized { .. } | RequestError::Forbidden { .. } => {
            let en = "does not accept Gatehouse's credentials. An admin must check its headers.";
            (Outcome::NotSent, both(en.into(), "不接受 Gatehouse 的凭据，需要管理员检查其请求头。".into(), &NOTHING))
        }
        RequestError::Http { status, .. } => {
            let then = if error.certainly_not_carried_out() { NOTHING } else { doubt };
            let en = format!("answered with HTTP status {status}.");
            (Outcome::ToolError, both(en, format!("以 HTTP 状态 {status} 应答。"), &then))
        }
        RequestError::TooLarge { most } => (
            Outcome::ToolError,
            Words::new(
                format!(
                    "the answer of the server `{server}` is larger than {most} bytes and was not read. Ask for less. {}",
                    doubt.en
                ),
                format!("服务器 `{server}` 的应答超过 {most} 字节，没有读取。请缩小请求范围。{}", doubt.zh),
            ),
        ),
        // The details may name addresses that are nobody's business; the connection test shows them to an admin.
        RequestError::NotMcp(_) | RequestError::Protocol(_) => (
            Outcome::ToolError,
            Words::new(
                format!(
                    "the server `{server}` did not answer as an MCP server does. {} An admin can see why with `gatehouse server test {server}`.",
                    doubt.en
                ),
                format!(
                    "服务器 `{server}` 的应答不符合 MCP。{}管理员可以用 `gatehouse server test {server}` 查看原因。",
                    doubt.zh
                ),
            ),
        ),
    }
}

/// The beginning of an error result's text, for the audit.
pub fn excerpt(output: &Output) -> String {
    let whole: Vec<u8> = output.pieces.iter().flatten().copied().take(1_000).collect();
    let text = String::from_utf8_lossy(&whole);
    let begin = text.find("\"text\":\"").map_or(0, |place| place + 8);
    let inside = &text[begin..];
    let end = inside.find("\"}").unwrap_or(inside.len());
    crate::audit::mask::mask_text(&block(&inside[..end], 500)).into_owned()
}

#[cfg(test)]
mod tests;
