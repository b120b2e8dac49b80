//! Pure: which names say that what they name is a secret.

use unicode_normalization::UnicodeNormalization as _;

/// Words that make the value of what has them in its name a secret.
const SECRET_WORDS: [&str; 22] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pincode",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "accountkey",
    "authkey",
    "clientkey",
    "masterkey",
    "privatekey",
    "sharedkey",
    "authorization",
    "credential",
    "cookie",
    "密码",
    "口令",
    "令牌",
];
/// Names that are a secret's only as a whole.
const SECRET_NAMES: [&str; 17] = [
    "auth",
    "bearer",
    "cvc",
    "cvv",
    "cvv2",
    "jwt",
    "mfacode",
    "otp",
    "otpcode",
    "pass",
    "pin",
    "sig",
    "signature",
    "totp",
    "xamzsignature",
    "密钥",
    "验证码",
];
/// Ends of names of what only surrounds a secret.
const NOT_SECRET_ENDS: [&str; 16] = [
    "count",
    "limit",
    "type",
    "url",
    "uri",
    "endpoint",
    "policy",
    "usage",
    "budget",
    "length",
    "expiry",
    "expires",
    "expiresin",
    "expiresat",
    "enabled",
    "required",
];
/// Names of the marks with which lists are paged.
const PAGE_MARKS: [&str; 7] =
    ["pagetoken", "nextpagetoken", "nexttoken", "previouspagetoken", "prevpagetoken", "continuationtoken", "synctoken"];
/// Words that only begin like a secret's.
const OTHER_WORDS: [&str; 4] = ["secretary", "secretariat", "tokeniz", "tokenis"];
/// Members that say what a pair is about, and members that hold its value.
const PAIR_NAMES: [&str; 7] = ["name", "key", "header", "headername", "field", "param", "parameter"];
const PAIR_VALUES: [&str; 5] = ["value", "val", "values", "content", "data"];
/// Headers that carry a credential.
const HEADERS: [&str; 8] =
    ["authorization", "proxyauthorization", "cookie", "setcookie", "apikey", "xapikey", "xauthtoken", "xaccesstoken"];

/// How secret the value under a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Secrecy {
    /// Not at all.
    Open,
    /// Secret unless it is a number: `tokens` are counted as often as listed.
    UnlessNumber,
    /// All of it: strings and numbers, at any depth.
    Secret,
}

/// A name as it is compared: without case, marks and spaces, and in ordinary letters.
pub(super) fn folded(name: &str) -> String {
    name.nfkc().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// How secret the value under this name is.
pub(super) fn secrecy(name: &str) -> Secrecy {
    let name = folded(name);
    if PAGE_MARKS.contains(&name.as_str()) || NOT_SECRET_ENDS.iter().any(|end| name.ends_with(end)) {
        return Secrecy::Open;
    }
    if name.ends_with("tokens") || name.starts_with("tokens") {
        return Secrecy::UnlessNumber;
    }
    let other = OTHER_WORDS.iter().any(|word| name.contains(word));
    if SECRET_NAMES.contains(&name.as_str()) || (!other && SECRET_WORDS.iter().any(|word| name.contains(word))) {
        return Secrecy::Secret;
    }
    Secrecy::Open
}

/// Whether an option of a command (`--password`) takes a secret.
pub(super) fn is_secret_option(text: &str) -> bool {
    text.starts_with('-') && !text.contains(['=', ' ']) && secrecy(text) == Secrecy::Secret
}

/// Whether this is the name of a header that carries a credential.
pub(super) fn is_secret_header(text: &str) -> bool {
    text.len() <= 64 && HEADERS.contains(&folded(text).as_str())
}

/// Whether a member of this name says what its neighbour [`holds_value`].
pub(super) fn names_pair(member: &str) -> bool {
    PAIR_NAMES.contains(&folded(member).as_str())
}

/// Whether a member of this name holds the value of a pair.
pub(super) fn holds_value(member: &str) -> bool {
    PAIR_VALUES.contains(&folded(member).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whether_its_value_is_secret() {
        let secret = "password Password db_password PASSWORD passwd userPwd passphrase client_secret clientSecret secret token \
                      access_token refreshToken id-token x-api-key API_KEY apikey aws_access_key_id privateKey Authorization \
                      Proxy-Authorization credentials Set-Cookie cookies pin PIN otp auth cvv signature jwt 密码 新密码 口令 密钥 \
                      访问令牌 ｐａｓｓｗｏｒｄ 𝐭𝐨𝐤𝐞𝐧 pass.word";
        let open = "author authority authors authored_by authenticated pinned pins shipping opinion key keys keyword primary_key \
                    monkey passenger passed compass secretary tokenizer design signal next_page_token pageToken nextToken \
                    token_count token_type tokenUrl password_policy token_expires_at password_required user name 订单 patch path";
        let counted = "tokens max_tokens inputTokens access_tokens tokens_used";
        for (names, expected) in [(secret, Secrecy::Secret), (open, Secrecy::Open), (counted, Secrecy::UnlessNumber)] {
            for name in names.split_whitespace() {
                assert_eq!(secrecy(name), expected, "{name}");
            }
        }
    }
}
