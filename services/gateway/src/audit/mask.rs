//! Pure: arguments and results as the audit keeps them and as cards show them: secrets masked, cut to a number of bytes.

mod names;
mod rules;
mod text;

use std::{borrow::Cow, sync::LazyLock};

use aho_corasick::AhoCorasick;
use gatehouse_mcp::{message::MOST_DEPTH, scan};

pub use self::rules::{BYTES as RULE_BYTES, MOST as MOST_RULES, MaskRule, MaskRules};
use self::{names::Secrecy, rules::Step};
use crate::{raw, results::surrogates::mended};

/// What stands in place of a secret.
pub const MASK: &str = "•••";

/// How much further than what is kept a text is looked at: a secret that begins before the end is seen to its end.
const LOOK_AHEAD: usize = 4_096;

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

/// What a text must hold to be worth parsing, as bytes; the last are the first bytes of letters in other widths and faces. An
/// escape could hide a word.
const MARKS: [&[u8]; 56] = [
    b"pass",
    b"pwd",
    b"secret",
    b"token",
    b"key",
    b"auth",
    b"credential",
    b"cookie",
    b"pin",
    b"otp",
    b"cvc",
    b"cvv",
    b"jwt",
    b"mfacode",
    b"sig",
    b"bearer",
    b"basic",
    b"negotiate",
    b"\\u",
    b"://",
    b"-u",
    b"-user",
    b"gho_",
    b"ghk_",
    b"ghp_",
    b"ghr_",
    b"ghs_",
    b"ghu_",
    b"github_pat_",
    b"glpat",
    b"glptt",
    b"glrt",
    b"gldt",
    b"glsoat",
    b"gloas",
    b"glcbt",
    b"glagent",
    b"npm_",
    b"pypi-",
    b"sk-",
    b"sk_",
    b"rk_",
    b"whsec_",
    b"xox",
    b"xapp-",
    b"hf_",
    b"gsk_",
    b"sg.",
    b"akia",
    b"asia",
    b"aiza",
    b"ya29.",
    b"gocspx",
    b"_v1_",
    b"shp",
    b":aa",
];
const MORE_MARKS: [&[u8]; 12] = [
    b"hvs.",
    b"hvb.",
    b"hvr.",
    b"eyj",
    b"discord",
    b"slack",
    "密".as_bytes(),
    "口令".as_bytes(),
    "令牌".as_bytes(),
    b"\xef\xbc",
    b"\xef\xbd",
    b"\xf0\x9d",
];

static MAY_HOLD_SECRET: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(MARKS.iter().chain(&MORE_MARKS)).ok());

/// Whether a text is worth parsing. Errs on the side of yes.
fn may_hold_secret(json: &str) -> bool {
    MAY_HOLD_SECRET.as_ref().is_none_or(|words| words.is_match(json))
}

fn mask(json: &str, most: usize, rules: &MaskRules, tool: &str) -> String {
    // Halves of characters are JSON by its grammar, and no text.
    let json = mended(json);
    if scan::check(&json, MOST_DEPTH).is_err() {
        return if rules.are_for(tool) { MASK.to_owned() } else { mask_text(beginning(&json, most).0).into_owned() };
    }
    let mut masking = Masking { out: String::new(), most, hid: false };
    masking.value(json.trim(), &rules.paths(tool), Secrecy::Open);
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
    /// Writes a value; `paths` are what is left of the rules' pointers here, `secrecy` what the names above it say.
    fn value(&mut self, json: &str, paths: &[&[Step]], secrecy: Secrecy) {
        if self.out.len() > self.most {
            return;
        }
        if paths.iter().any(|path| path.is_empty()) {
            return self.hide(MASK);
        }
        match (raw::first_byte(json), secrecy) {
            (b'{', _) => self.object(json, paths, secrecy),
            (b'[', _) => self.array(json, paths, secrecy),
            (b't' | b'f' | b'n', _) => self.out.push_str(json),
            (b'"', Secrecy::UnlessNumber) if json.trim_matches('"').bytes().all(|byte| byte.is_ascii_digit()) => {
                self.out.push_str(json);
            }
            (b'"', Secrecy::UnlessNumber) | (_, Secrecy::Secret) => self.hide(MASK),
            (b'"', Secrecy::Open) => self.string(json),
            _ => self.out.push_str(json),
        }
    }

    fn hide(&mut self, instead: &str) {
        self.hid = true;
        raw::push_string(&mut self.out, instead);
    }

    fn object(&mut self, json: &str, paths: &[&[Step]], above: Secrecy) {
        self.out.push('{');
        let members = scan::members(json, MOST_DEPTH).unwrap_or_default();
        // `{"name":"Authorization","value":"…"}`: one member says what the other holds.
        let says_secret = |(name, value): &(Cow<'_, str>, &str)| {
            names::names_pair(name) && text_of(value).is_some_and(|text| names::secrecy(&text) == Secrecy::Secret)
        };
        let is_pair = members.iter().any(says_secret);
        for (place, (name, value)) in members.into_iter().enumerate() {
            if self.out.len() > self.most {
                return;
            }
            if place > 0 {
                self.out.push(',');
            }
            let own = if is_pair && names::holds_value(&name) { Secrecy::Secret } else { names::secrecy(&name) };
            match mask_text(&name) {
                Cow::Owned(masked) => self.hide(&masked),
                Cow::Borrowed(name) => raw::push_string(&mut self.out, name),
            }
            self.out.push(':');
            self.value(value, &rules::inside(paths, &name), own.max(above));
        }
        self.out.push('}');
    }

    fn array(&mut self, json: &str, paths: &[&[Step]], above: Secrecy) {
        self.out.push('[');
        let items = scan::items(json, MOST_DEPTH).unwrap_or_default();
        // `["Authorization","…"]`, as headers are listed, and `["--password","…"]`.
        let first = items.first().filter(|_| items.len() == 2).and_then(|item| text_of(item));
        let mut next_is_secret = first.is_some_and(|name| names::is_secret_header(&name));
        for (place, value) in items.into_iter().enumerate() {
            if self.out.len() > self.most {
                return;
            }
            if place > 0 {
                self.out.push(',');
            }
            let inside = if paths.is_empty() { Vec::new() } else { rules::inside(paths, &place.to_string()) };
            let own = if next_is_secret && place > 0 { Secrecy::Secret } else { above };
            self.value(value, &inside, own);
            next_is_secret = match text_of(value) {
                _ if place == 0 && next_is_secret => true,
                Some(text) => names::is_secret_option(&text),
                None => false,
            };
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
            inner.value(text.trim(), &[], Secrecy::Open);
            if inner.hid {
                return self.hide(&inner.out);
            }
        }
        let (text, cut) = beginning(&text, self.most);
        match mask_text(text) {
            Cow::Owned(masked) => self.hide(&masked),
            Cow::Borrowed(text) if cut => raw::push_string(&mut self.out, text),
            Cow::Borrowed(_) => self.out.push_str(json),
        }
    }
}

/// The text of a JSON string.
fn text_of(json: &str) -> Option<Cow<'_, str>> {
    (raw::first_byte(json) == b'"').then(|| scan::unquoted(json).ok()).flatten()
}

/// As much of a text as can show in `most` bytes, and whether that is less than all of it.
fn beginning(text: &str, most: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(most.saturating_add(LOOK_AHEAD));
    (&text[..end], end < text.len())
}

/// Text with what looks like a credential masked. Everything else stays as it is.
pub fn mask_text(text: &str) -> Cow<'_, str> {
    if may_hold_secret(text) { text::masked(text) } else { Cow::Borrowed(text) }
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
            "tokens": ["p4"], "access_tokens": ["p5"], "max_tokens": 100, "token": {"refresh_token": "p6", "kind": "x"},
            "credentials": {"value": "p7", "list": [{"x": "p8"}, 99]}, "next_page_token": "n1"});
        let masked = value(&arguments);
        assert_eq!(masked["nested"][0], json!({"api-key": MASK, "API_KEY": MASK, "clientSecret": MASK}));
        assert_eq!(
            (&masked["user"], &masked["max_tokens"], &masked["next_page_token"], &masked["token"]["kind"]),
            (&json!("u"), &json!(100), &json!("n1"), &json!(MASK))
        );
        for secret in ["p1", "p4", "p5", "p6", "p7", "p8", "99"] {
            assert!(!masked.to_string().contains(secret), "{secret}");
        }
    }

    #[test]
    fn the_value_of_a_pair_that_names_a_secret_is_masked() {
        for (given, expected) in [
            (json!({"name": "Authorization", "value": "p1"}), json!({"name": "Authorization", "value": MASK})),
            (json!({"key": "DB_PASSWORD", "val": 12, "n": 1}), json!({"key": "DB_PASSWORD", "val": MASK, "n": 1})),
            (json!({"value": ["p1"], "header": "x-api-key"}), json!({"value": [MASK], "header": "x-api-key"})),
            (json!([["Cookie", "p1"], ["Accept", "x"]]), json!([["Cookie", MASK], ["Accept", "x"]])),
            (
                json!(["--password", "p1", "-v", "--token=p2"]),
                json!(["--password", MASK, "-v", format!("--token={MASK}")]),
            ),
            (json!({"ghp_0123456789abcdef": 1}), json!({MASK: 1})),
            (json!({"ｔｏｋｅｎ": "p1", "to\u{6b}en": "p2"}), json!({"ｔｏｋｅｎ": MASK, "token": MASK})),
        ] {
            assert_eq!(value(&json!({ "x": given }))["x"], expected);
        }
        for kept in [
            json!({"name": "Accept", "value": "p1"}),
            json!(["password", "user", "mail"]),
            json!(["--verbose", "p1"]),
            json!({"author": "me", "pinned": 1, "tokens": 5, "has_token": true, "auth": null}),
        ] {
            assert_eq!(value(&kept), kept);
        }
    }

    #[test]
    fn a_credential_in_a_text_is_masked_and_the_rest_is_as_it_was_sent() {
        let text = r#"{"n":1.0,"url":"https://x.y/a?api_key=p123&b=1","pem":"-----BEGIN PRIVATE KEY-----\nMIIE"}"#;
        let hidden = format!(r#"{{"n":1.0,"url":"https://x.y/a?api_key={MASK}&b=1","pem":"{MASK}"}}"#);
        assert_eq!(masked(text, 20_000), hidden);
        // What is cut anyway is not looked at, and a text that was cut is still JSON.
        let long = json!({"a": format!("{} password=hunter22", "x".repeat(50_000)), "b": 1}).to_string();
        assert!(masked(&long, 20_000).len() <= 20_000 && !masked(&long, 100_000).contains("hunter22"));
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
