//! Pure: what is said of servers that are programs.

use gatehouse_types::{Hints, shown::block};

use super::{EXCERPT, IN_DOUBT, MAY_REPEAT, Words};
use crate::audit::Outcome;

/// Programs are not run by this gateway.
pub fn no_homes() -> Words {
    Words::fixed(
        "this gateway runs no programs: an operator must set GATEHOUSE_STDIO_HOME to a folder for their homes",
        "此网关不运行程序：需要运维人员将 GATEHOUSE_STDIO_HOME 设为存放其主目录的文件夹",
    )
}

/// A program that could not be started.
pub fn not_started(why: &str) -> Words {
    let why = block(why, EXCERPT);
    Words::new(format!("its program could not be started: {why}"), format!("无法启动它的程序：{why}"))
}

/// A program that has ended by itself and is not started again yet.
pub fn pauses(server: &str, crashes: u32, exit: &str, seconds: u64) -> Words {
    Words::new(
        format!(
            "its program has ended by itself {crashes} times, last because {exit}; it is started again in {seconds} s. An admin can see its last words with `gatehouse server show {server}`"
        ),
        format!(
            "它的程序已连续 {crashes} 次自行退出（{exit}），将在 {seconds} 秒后再次启动。管理员可以用 `gatehouse server show {server}` 查看它最后的输出"
        ),
    )
}

/// A program that runs, and does not speak MCP. `last` are its last lines.
pub fn not_a_server(why: &str, exit: Option<&str>, last: &[String]) -> Words {
    let exit_en = exit.map(|exit| format!("; {exit}")).unwrap_or_default();
    let exit_zh = exit.map(|exit| format!("；{exit}")).unwrap_or_default();
    let (lines_en, lines_zh) = match last {
        [] => (String::new(), String::new()),
        lines => {
            let lines = block(&lines.join(" | "), EXCERPT);
            (format!(". It wrote: {lines}"), format!("。它的输出：{lines}"))
        }
    };
    Words::new(
        format!("its program does not answer as an MCP server: {why}{exit_en}{lines_en}"),
        format!("它的程序没有像 MCP 服务器那样应答：{why}{exit_zh}{lines_zh}"),
    )
}

/// A program that ended while a call ran.
pub fn crashed(server: &str, exit: &str, hints: Hints) -> (Outcome, Words) {
    let doubt = if hints.read_only { MAY_REPEAT } else { IN_DOUBT };
    let words = Words::new(
        format!("the program of the server `{server}` ended while the call ran: {exit}. {}", doubt.en),
        format!("服务器 `{server}` 的程序在调用期间退出：{exit}。{}", doubt.zh),
    );
    (Outcome::Unknown, words)
}
