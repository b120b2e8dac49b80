//! Pure: what looks like a credential in plain text.
//!
//! Everything here is found by the `regex` crate, whose time is linear in the text.

use std::{borrow::Cow, sync::LazyLock};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use regex::{Captures, Regex};

use super::{
    MASK,
    names::{self, Secrecy},
};

/// Shortest value after `key=` in a URL that is taken for a secret: API keys are long, and `key` has other uses.
const SHORTEST_KEY: usize = 16;
/// Shortest value of a name and a colon: what follows a colon in a sentence is a short word more often.
const SHORTEST_SAID: usize = 4;

/// Keys in the armour of RFC 7468, to their end or that of the text.
const ARMOUR: &str =
    r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)";

/// Well-known tokens by their beginnings, where a word begins.
const TOKENS: &str = concat!(
    r"(^|[^A-Za-z0-9_-])(",
    // Ours, GitHub's, GitLab's, npm's and PyPI's.
    r"gh[kopsur]_[A-Za-z0-9_-]{8,}|github_pat_[A-Za-z0-9_]{8,}|gl(?:pat|ptt|rt|dt|oas|soat|cbt|agent)-[A-Za-z0-9_.-]{8,}|npm_[A-Za-z0-9]{16,}|pypi-[A-Za-z0-9_-]{16,}|",
    // Model providers', Stripe's, Slack's, SendGrid's.
    r"sk-[A-Za-z0-9_-]{9,}|[sr]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{8,}|xox[a-z]-[A-Za-z0-9-]{7,}|xapp-[A-Za-z0-9-]{8,}|hf_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}|SG\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|",
    // Clouds': AWS, Google, DigitalOcean, Shopify, Vault, age.
    r"A[KS]IA[A-Z0-9]{8,}|AIza[A-Za-z0-9_-]{8,}|ya29\.[A-Za-z0-9_-]{8,}|GOCSPX-[A-Za-z0-9_-]{8,}|do[opr]_v1_[a-f0-9]{16,}|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}|hv[sbr]\.[A-Za-z0-9_-]{12,}|AGE-SECRET-KEY-[A-Z0-9]{16,}|",
    // JSON web tokens (RFC 7519): `{"` in base64url, then a dot.
    r"eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)+|",
    // Telegram's bots.
    r"[0-9]{8,12}:AA[A-Za-z0-9_-]{30,}",
    r")",
);

/// Web addresses whose last part is the credential.
const WEBHOOKS: &str =
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/[0-9]+/)[A-Za-z0-9_/-]+";

/// The credentials of an `Authorization` header (RFC 9110, 11.6.2), wherever they stand.
const SCHEMES: &str = r"(?i)\b(bearer|basic|negotiate)( +)([A-Za-z0-9._~+/=-]{8,})";

/// A name, `=` or `:`, and a value, perhaps in quotes: environments, options, query strings, and what is nearly JSON.
const NAMED: &str = concat!(
    r#"([?&]?)((?:--?)?[\p{L}\p{N}][\p{L}\p{N}_.-]{1,63})(\\?["']?\s*)([=:＝：])(>?[ \t]*)"#,
    r#"(?<value>"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|\\"(?:[^"\\]|\\[^"])*(?:\\")?|[^\s"'&;,<>(){}\[\]`，。；、]+)"#,
);

/// A header that carries a credential, to the end of its line.
const HEADER: &str = r#"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s*:\s*["']?)([^\r\n"']+)"#;

/// An option and its value as the next word.
const OPTION: &str = r#"(^|\s)(--[A-Za-z][A-Za-z0-9_-]+)([ \t]+)("[^"]*"|'[^']*'|[^\s-]\S*)"#;

/// The user's part of a URL's authority (RFC 3986, 3.2.1).
const USER_INFO: &str = r#"(://[^\s/?#"@:]*):([^\s/?#"]*)@"#;

/// The user of a command that fetches (`curl -u name:password`).
const USER_OPTION: &str = r"(^|\s)(-u|--user|--proxy-user)([ \t=]*)([^\s:]+):(\S+)";

/// How deep values are looked into that are no secret themselves. Bounds the work.
const MOST_NESTING: usize = 4;

/// Puts together what one find becomes; `None` leaves it as it is.
type Hide = fn(&Captures<'_>) -> Option<String>;

struct Rule {
    regex: Regex,
    hide: Hide,
}

/// The rules in the order in which they are applied. A pattern that does not compile is caught by the tests.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules: [(&str, Hide); 9] = [
        (ARMOUR, |_| Some(MASK.to_owned())),
        (USER_INFO, |found| Some(format!("{}:{MASK}@", &found[1]))),
        (WEBHOOKS, |found| Some(format!("{}{MASK}", &found[1]))),
        (TOKENS, |found| Some(format!("{}{MASK}", &found[1]))),
        (HEADER, header),
        (SCHEMES, scheme),
        (USER_OPTION, user),
        (OPTION, option),
        (NAMED, named),
    ];
    rules.into_iter().filter_map(|(pattern, hide)| Some(Rule { regex: Regex::new(pattern).ok()?, hide })).collect()
});

/// Text with what looks like a credential masked.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    for rule in RULES.iter() {
        if let Some(next) = replaced(rule, &masked, MOST_NESTING) {
            masked = Cow::Owned(next);
        }
    }
    masked
}

/// The text after one rule; `None` when it hides nothing. What was found and is no secret may hold one: `url=/a?token=…`.
fn replaced(rule: &Rule, text: &str, nesting: usize) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    for found in rule.regex.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        let (from, instead) = match ((rule.hide)(&found), found.name("value"), nesting) {
            (Some(instead), ..) => (whole.start(), Some(instead)),
            (None, Some(value), 1..) => (value.start(), replaced(rule, value.as_str(), nesting - 1)),
            _ => continue,
        };
        let Some(instead) = instead else { continue };
        out.push_str(&text[done..from]);
        out.push_str(&instead);
        done = whole.end();
    }
    (done > 0).then(|| out + &text[done..])
}

fn header(found: &Captures<'_>) -> Option<String> {
    let value = found[3].trim();
    // A sentence about a header has words after it, a header has its value.
    let holds = value.contains([' ', '=']) || value.chars().any(|c| !c.is_ascii_lowercase());
    (holds && value != MASK).then(|| format!("{}{}{MASK}", &found[1], &found[2]))
}

fn scheme(found: &Captures<'_>) -> Option<String> {
    let value = &found[3];
    let secret = if found[1].eq_ignore_ascii_case("basic") {
        BASE64_STANDARD.decode(value).is_ok_and(|decoded| decoded.contains(&b':'))
    } else {
        let word = value.trim_end_matches('.');
        word.len() >= 20 || word.bytes().any(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    secret.then(|| format!("{}{}{MASK}", &found[1], &found[2]))
}

fn user(found: &Captures<'_>) -> Option<String> {
    let password = &found[5];
    // A URL, or the numbers of a user and a group.
    let other = password.starts_with("//") || password.bytes().all(|byte| byte.is_ascii_digit());
    (!other).then(|| format!("{}{}{}{}:{MASK}", &found[1], &found[2], &found[3], &found[4]))
}

fn option(found: &Captures<'_>) -> Option<String> {
    names::is_secret_option(&found[2]).then(|| format!("{}{}{}{MASK}", &found[1], &found[2], &found[3]))
}

fn named(found: &Captures<'_>) -> Option<String> {
    let (before, name, sign, value) = (&found[1], &found[2], &found[4], &found[6]);
    let quote = ["\\\"", "\"", "'"].into_iter().find(|quote| value.starts_with(quote)).unwrap_or_default();
    let inner = value.strip_prefix(quote).unwrap_or(value);
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    let number = inner.bytes().all(|byte| byte.is_ascii_digit());
    let secret = match names::secrecy(name) {
        Secrecy::Secret => true,
        Secrecy::UnlessNumber => !number,
        Secrecy::Open => !before.is_empty() && names::folded(name) == "key" && inner.len() >= SHORTEST_KEY,
    };
    // A URL is judged as what it is; `::` and `==` are no signs; and a word such as `true` is no secret.
    let plain = ["", MASK, "true", "false", "null", "none", "None"].contains(&inner) || inner.starts_with([':', '=']);
    let said = sign != "=" && (inner.chars().count() < SHORTEST_SAID || inner.starts_with('/'));
    (secret && !plain && !said).then(|| format!("{before}{name}{}{sign}{}{quote}{MASK}{quote}", &found[3], &found[5]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(RULES.len(), 9);
    }

    #[test]
    fn credentials_in_text_are_masked_and_the_words_around_them_stay() {
        let table = [
            ("use ghs_0123456789abcdefghij now", "use ••• now"),
            ("Authorization: Bearer abcdefghijkl.mnop", "Authorization: •••"),
            ("{\"Authorization\": \"Basic dXNlcjpwYXNz\"}", "{\"Authorization\": \"•••\"}"),
            ("send Basic dXNlcjpwYXNz please", "send Basic ••• please"),
            ("curl -H 'Cookie: sid=abc; x=1' y", "curl -H 'Cookie: •••' y"),
            ("key sk-abcdefghijklmnop.", "key •••."),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc!", "•••!"),
            ("https://me:hunter22@example.com/x?y=1", "https://me:•••@example.com/x?y=1"),
            ("postgres://u:p@ss:w0rd@db/x", "postgres://u:•••@db/x"),
            ("GET /a?access_token=abc123&x=1", "GET /a?access_token=•••&x=1"),
            ("/a?x=1&api_key=abc#top", "/a?x=1&api_key=•••"),
            ("/a?sig=abc%2Bdef&sv=1", "/a?sig=•••&sv=1"),
            ("/maps?key=0123456789abcdefgh&z=3", "/maps?key=•••&z=3"),
            ("url=https://x.y/cb?token=abc&next=/a?pin=1234", "url=https://x.y/cb?token=•••&next=/a?pin=•••"),
            ("PASSWORD=hunter22 ./run", "PASSWORD=••• ./run"),
            ("export API_KEY=\"a b c\"; ls", "export API_KEY=\"•••\"; ls"),
            ("db.password = 'x y'", "db.password = '•••'"),
            ("--token=abc --verbose", "--token=••• --verbose"),
            ("mysql --password hunter22 -h db", "mysql --password ••• -h db"),
            ("curl -u me:hunter22 https://x", "curl -u me:••• https://x"),
            ("password: hunter22, user: me", "password: •••, user: me"),
            ("{\"password\":\"hunter22\",\"n\":1", "{\"password\":\"•••\",\"n\":1"),
            ("{\\\"token\\\":\\\"abcdef\\\",\\\"n\\\":1}", "{\\\"token\\\":\\\"•••\\\",\\\"n\\\":1}"),
            ("密码: 一二三四五", "密码: •••"),
            ("密码：一二三四五，好", "密码：•••，好"),
            ("ＰＡＳＳＷＯＲＤ=hunter22", "ＰＡＳＳＷＯＲＤ=•••"),
            ("https://hooks.slack.com/services/T00/B00/abcdef", "https://hooks.slack.com/services/•••"),
            ("bot 123456789:AAabcdefghijklmnopqrstuvwxyz0123456", "bot •••"),
            ("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n•••\nb"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "•••"),
            ("AKIAIOSFODNN7EXAMPLE", "•••"),
            ("npm_0123456789abcdefABCDEF", "•••"),
        ];
        for (text, expected) in table {
            assert_eq!(masked(text), expected, "{text}");
            assert!(super::super::may_hold_secret(text), "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "task-list, risk-averse, sk-1, a:b@c",
            "Basic usage of the bearer authentication scheme",
            "basic information about Digest authentication",
            "author=me&keyword=x&page=2&key=de",
            "max_tokens=100&tokens: 5",
            "see https://example.com/a?b=c#d and mail a@b.c",
            "pinned: true, authority: none, key: value",
            "the password: see the vault? no",
            "token_type=bearer token_url=https://x.y",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "next_page_token=abcdef",
            "std::token::Kind::Name",
            "订单: 一二三四五",
            "git log --author me --grep token",
            "password_policy: strong",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn masking_again_changes_nothing() {
        for text in
            ["Authorization: Bearer abcdefghijkl.mnop", "a?token=abc&b=1", "password: 'hunter22'", "curl -u a:b"]
        {
            let once = masked(text).into_owned();
            assert_eq!(masked(&once), once);
        }
    }
}
