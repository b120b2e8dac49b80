//! Pure: arguments and results as the audit keeps them and as cards show them: secrets masked, cut to a number of bytes.

mod rules;

use std::{borrow::Cow, sync::LazyLock};

use aho_corasick::AhoCorasick;
use gatehouse_mcp::{message::MOST_DEPTH, scan};

use self::rules::Step;
pub use self::rules::{BYTES as RULE_BYTES, MOST as MOST_RULES, MaskRule, MaskRules};
use crate::{raw, results::surrogates::mended};

/// What stands in place of a secret.
pub const MASK: &str = "•••";

/// Words that make a member's value a secret, compared without case, `-` and `_`.
const SECRET_WORDS: [&str; 17] = [
    "password",
    "pwd",
    "密码",
    "口令",
    "密钥",
    "令牌",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "cookie",
    "accesskey",
    "clientkey",
];

/// Members whose name only looks like a secret's.
const NOT_SECRET: [&str; 8] =
    ["maxtokens", "tokens", "tokencount", "totaltokens", "inputtokens", "outputtokens", "pagetoken", "nextpagetoken"];

/// Beginnings of well-known secrets in text.
const SECRET_PREFIXES: [&str; 16] = [
    "ghk_",
    "ghs_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "rk_live_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJhbGciOi",
    "Bearer ",
];

/// JSON text of a tool's call with secrets masked, at most `most` bytes: what looks like one, and what the server's rules
/// point at. All else is spelled as it was sent: numbers, the order of members, members that come twice. What is not JSON is
/// masked as text, or as a whole where a rule is for the tool.
pub fn masked(json: &str, most: usize, rules: &MaskRules, tool: &str) -> String {
    let masked = if rules.are_for(tool) || may_hold_secret(json) {
        Cow::Owned(mask(json, most, rules, tool))
    } else {
        Cow::Borrowed(json)
    };
    let mut end = most.min(masked.len());
    while !masked.is_char_boundary(end) {
        end -= 1;
    }
    masked[..end].to_owned()
}

/// What a text must hold to be worth parsing. An escape could hide a word, and a URL a password.
static MAY_HOLD_SECRET: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = [
        "pass",
        "pwd",
        "secret",
        "token",
        "key",
        "authorization",
        "credential",
        "cookie",
        "密码",
        "口令",
        "密钥",
        "令牌",
        "\\u",
        "://",
    ];
    AhoCorasick::builder().ascii_case_insensitive(true).build(words.iter().chain(&SECRET_PREFIXES)).ok()
});

/// Whether a text is worth parsing. Errs on the side of yes.
fn may_hold_secret(json: &str) -> bool {
    MAY_HOLD_SECRET.as_ref().is_none_or(|words| words.is_match(json))
}

fn mask(json: &str, most: usize, rules: &MaskRules, tool: &str) -> String {
    // Halves of characters are JSON by its grammar, and no text.
    let json = mended(json);
    if scan::check(&json, MOST_DEPTH).is_err() {
        return if rules.are_for(tool) { MASK.to_owned() } else { mask_text(&json).into_owned() };
    }
    let mut masking = Masking { out: String::new(), most, hid: false };
    masking.value(json.trim(), &rules.paths(tool), false);
    masking.out
}

/// JSON that is written anew with what must be hidden left out. What comes after `most` bytes is not looked at.
struct Masking {
    out: String,
    most: usize,
    /// Whether anything was hidden.
    hid: bool,
}

impl Masking {
    /// Writes a value; `paths` are what is left of the rules' pointers here, `secret` whether its member's name is a secret's.
    fn value(&mut self, json: &str, paths: &[&[Step]], secret: bool) {
        if self.out.len() > self.most {
            return;
        }
        let first = raw::first_byte(json);
        let hidden = secret && !matches!(first, b'{' | b't' | b'f' | b'n');
        if hidden || paths.iter().any(|path| path.is_empty()) {
            return self.hide(MASK);
        }
        match first {
            b'{' => self.object(json, paths),
            b'[' => self.array(json, paths),
            b'"' => self.string(json),
            _ => self.out.push_str(json),
        }
    }

    fn hide(&mut self, instead: &str) {
        self.hid = true;
        raw::push_string(&mut self.out, instead);
    }

    fn object(&mut self, json: &str, paths: &[&[Step]]) {
        self.out.push('{');
        for (place, (name, value)) in scan::members(json, MOST_DEPTH).unwrap_or_default().into_iter().enumerate() {
            if self.out.len() > self.most {
                return;
            }
            if place > 0 {
                self.out.push(',');
            }
            raw::push_string(&mut self.out, &name);
            self.out.push(':');
            self.value(value, &rules::inside(paths, &name), is_secret_name(&name));
        }
        self.out.push('}');
    }

    fn array(&mut self, json: &str, paths: &[&[Step]]) {
        self.out.push('[');
        for (place, value) in scan::items(json, MOST_DEPTH).unwrap_or_default().into_iter().enumerate() {
            if self.out.len() > self.most {
                return;
            }
            if place > 0 {
                self.out.push(',');
            }
            let inside = if paths.is_empty() { Vec::new() } else { rules::inside(paths, &place.to_string()) };
            self.value(value, &inside, false);
        }
        self.out.push(']');
    }

    /// Writes a string; JSON within it is masked as JSON.
    fn string(&mut self, json: &str) {
        let Ok(text) = scan::unquoted(json) else { return self.hide(MASK) };
        if matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'['))
            && scan::check(text.trim(), MOST_DEPTH).is_ok()
        {
            let mut inner = Self { out: String::new(), most: self.most, hid: false };
            inner.value(text.trim(), &[], false);
            if inner.hid {
                return self.hide(&inner.out);
            }
        }
        match mask_text(&text) {
            Cow::Owned(masked) => self.hide(&masked),
            Cow::Borrowed(_) => self.out.push_str(json),
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let folded: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    !NOT_SECRET.contains(&folded.as_str()) && SECRET_WORDS.iter().any(|word| folded.contains(word))
}

/// Text with each word that begins like a well-known secret, and the password of each URL, masked.
pub fn mask_text(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    let mut place = 0;
    while place < text.len() {
        let rest = &text[place..];
        let starts = place == 0 || !text[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
        let prefix = SECRET_PREFIXES.iter().find(|prefix| starts && rest.starts_with(**prefix));
        let length = prefix.map(|prefix| prefix.len() + word_length(&rest[prefix.len()..]));
        match length.filter(|length| *length >= 12) {
            Some(length) => {
                out.push_str(&text[done..place]);
                out.push_str(MASK);
                place += length;
                done = place;
            }
            None => place += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    let masked = if done == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[done..]) };
    match url_passwords(&masked) {
        Some(hidden) => Cow::Owned(hidden),
        None => masked,
    }
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.~+/=".contains(c))).unwrap_or(text.len())
}

/// `scheme://user:password@host` with the password masked.
fn url_passwords(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let start = from + found + 3;
        let authority = text[start..].find(['/', '?', '#', ' ', '"', '\n']).map_or(text.len(), |end| start + end);
        if let Some(at) = text[start..authority].rfind('@')
            && let Some(colon) = text[start..start + at].find(':')
        {
            out.push_str(&text[done..=start + colon]);
            out.push_str(MASK);
            done = start + at;
        }
        from = authority;
    }
    (done > 0).then(|| out + &text[done..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn masked(json: &str, most: usize) -> String {
        super::masked(json, most, &MaskRules::default(), "t")
    }

    fn value(json: &Value) -> Value {
        serde_json::from_str(&masked(&json.to_string(), 20_000)).unwrap()
    }

    #[test]
    fn members_with_a_secrets_name_are_masked_at_any_depth() {
        let arguments = json!({"user": "u", "Password": "p1", "nested": [{"api-key": "p2", "API_KEY": "p3", "clientSecret": 5}],
            "tokens": ["p4"], "access_tokens": ["p5"], "max_tokens": 100, "token": {"refresh_token": "p6", "kind": "x"}});
        let masked = value(&arguments);
        assert_eq!(masked["nested"][0], json!({"api-key": MASK, "API_KEY": MASK, "clientSecret": MASK}));
        assert_eq!(
            (&masked["user"], &masked["max_tokens"], &masked["token"]["kind"]),
            (&json!("u"), &json!(100), &json!("x"))
        );
        for secret in ["p1", "p5", "p6"] {
            assert!(!masked.to_string().contains(secret), "{secret}");
        }
    }

    #[test]
    fn well_known_secrets_in_text_are_masked() {
        for text in [
            "use ghs_0123456789abcdefghij now",
            "Authorization: Bearer abcdefghijkl.mnop",
            "key sk-abcdefghijklmnop.",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
            "https://me:hunter22@example.com/x?y=1",
        ] {
            let hidden = value(&json!({"note": text}))["note"].as_str().unwrap().to_owned();
            assert!(hidden.contains(MASK), "{hidden}");
            for secret in ["0123456789abc", "abcdefghijkl", "eyJzdWIi", "hunter22"] {
                assert!(!hidden.contains(secret), "{hidden}");
            }
        }
        assert_eq!(mask_text("task-list, risk-averse, sk-1, a:b@c"), "task-list, risk-averse, sk-1, a:b@c");
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_was_sent() {
        let text = r#"{"n":1.0,"s":"a b", "big":12345678901234567890123}"#;
        assert_eq!(masked(text, 20_000), text);
    }

    /// A person approves what the card shows: nothing else may go out.
    #[test]
    fn what_is_not_hidden_is_spelled_as_it_was_sent_also_beside_a_secret() {
        let text = r#"{"amount":1000000,"amount":1,"note":"see https://x.y/","n":12345678901234567890123,"e":1e400,"f":0.10,"password":"hunter22"}"#;
        assert_eq!(masked(text, 20_000), text.replace("hunter22", MASK));
        let rules = MaskRules::from_stored(&["/n".to_owned()]);
        assert_eq!(
            super::masked(text, 20_000, &rules, "t"),
            text.replace("hunter22", MASK).replace("12345678901234567890123", &format!("\"{MASK}\""))
        );
    }

    #[test]
    fn json_within_a_string_and_names_in_chinese_hide_nothing() {
        let inner = json!({"password": "hunter22", "n": 1}).to_string();
        let hidden = masked(&json!({"body": inner, "密码": "hunter22", "pwd": 5}).to_string(), 20_000);
        assert!(!hidden.contains("hunter22") && hidden.contains(r#"\"n\":1"#) && !hidden.contains(":5"), "{hidden}");
        let plain = r#"{"body":"{ \"n\": 1.0, \"note\": \"https://x.y\" }"}"#;
        assert_eq!(masked(plain, 20_000), plain);
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_masked_before_it_is_cut() {
        assert_eq!(masked("\"añb\"", 3), "\"a");
        let text = json!({"a": "x".repeat(50), "password": "hunter22"}).to_string();
        assert!(!masked(&text, text.len() - 3).contains("hunter"));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_and_no_named_secret_survives(secret in "[a-z0-9]{12,20}", text in ".{0,40}", escape in proptest::bool::ANY) {
            let name = if escape { "pass\\u0077ord" } else { "password" };
            let json = format!("{{\"x\":{},\"{name}\":\"{secret}\"}}", Value::from(text.as_str()));
            prop_assert!(!masked(&json, 20_000).contains(&secret) || text.contains(&secret));
            let _ = masked(&text, 7);
            let _ = mask_text(&text);
        }
    }
}
