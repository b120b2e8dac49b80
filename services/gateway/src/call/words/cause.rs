//! Pure: why a server cannot be reached, for the model.

use gatehouse_mcp::client::{OpenError, RequestError};
use gatehouse_outbound::{Error as Outbound, TlsFailure};

use gatehouse_types::shown::block;

use super::{EXCERPT, NOTHING, Words};
use crate::audit::Outcome;

/// A server that could not be connected to.
pub fn not_opened(server: &str, why: &Words) -> (Outcome, Words) {
    let (en, zh) = (block(&why.en, EXCERPT), block(&why.zh, EXCERPT));
    let words = Words::new(
        format!("the server `{server}` cannot be used now: {en}. {}", NOTHING.en),
        format!("服务器 `{server}` 现在无法使用：{zh}。{}", NOTHING.zh),
    );
    (Outcome::NotSent, words)
}

/// Why a connection could not be opened.
pub fn cause(error: &OpenError) -> Words {
    let en = crate::upstream::why::open_error_words(error);
    let zh = match error {
        OpenError::Request(error) => request(error),
        OpenError::UnsupportedVersion { version } => {
            format!("它使用的 MCP 版本 {} 不受支持", block(version, 100))
        }
        OpenError::BadHeader(_) => "它的请求头或会话标识无法通过 HTTP 发送".to_owned(),
    };
    Words::new(en, zh)
}

fn request(error: &RequestError) -> String {
    match error {
        RequestError::NotSent(error) => outbound(error),
        RequestError::SessionGone => "它不再认识这个会话".to_owned(),
        RequestError::Lost(_) => "连接在应答之前中断".to_owned(),
        RequestError::TimedOut => "它没有在允许的时间内应答".to_owned(),
        RequestError::Cancelled => "请求被取消".to_owned(),
        RequestError::Rpc { code, message, .. } => format!("它应答了错误 {code}：{}", block(message, 500)),
        RequestError::Unauthorized { .. } => "它不接受凭据 (401)：请检查服务器的请求头".to_owned(),
        RequestError::Forbidden { .. } => "它拒绝访问 (403)：请检查凭据的权限".to_owned(),
        RequestError::Http { status: 404, .. } => "该路径下什么都没有 (404)：请检查 URL".to_owned(),
        RequestError::Http { status, .. } => format!("它以 HTTP 状态 {status} 应答"),
        RequestError::NotMcp(_) => "它的应答不符合 MCP".to_owned(),
        RequestError::TooLarge { most } => format!("它的应答超过 {most} 字节"),
        RequestError::Protocol(_) => "它违反了协议".to_owned(),
    }
}

/// Why a request got no answer, in Chinese. The English is the error's own text.
pub(super) fn outbound(error: &Outbound) -> String {
    let fixed = match error {
        Outbound::DnsFailed { host, .. } => return format!("主机 {host} 无法解析"),
        Outbound::AddressRefused(_) => "它的地址不允许连接",
        Outbound::ConnectionRefused => "连接被拒绝",
        Outbound::ConnectTimedOut => "在允许的时间内没有连上",
        Outbound::ConnectFailed(_) => "无法建立连接",
        Outbound::TlsFailed(failure) => match failure {
            TlsFailure::Expired => "服务器的证书已过期",
            TlsFailure::NotYetValid => "服务器的证书尚未生效",
            TlsFailure::UnknownIssuer => "服务器的证书由不受信任的机构签发",
            TlsFailure::WrongHost => "服务器的证书属于另一个主机名",
            TlsFailure::Revoked => "服务器的证书已被吊销",
            TlsFailure::NotTls => "服务器在该端口不支持 TLS",
            TlsFailure::Other(_) => "TLS 握手失败",
        },
        Outbound::NotWritten(_) => "请求发出之前连接已断开",
        Outbound::Reset(_) => "连接在应答之前中断",
        Outbound::RedirectRefused(_) => "它重定向到不允许的地址",
        Outbound::BadUrl(_) => "它的 URL 无法调用",
        Outbound::BadRequest(_) => "请求无法写出",
    };
    fixed.to_owned()
}
