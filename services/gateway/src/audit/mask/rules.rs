//! Pure: which values an admin wants masked: JSON pointers (RFC 6901) in which `*` stands for any member or place.

/// Most rules of one server.
pub const MOST: usize = 100;
/// Longest rule in bytes.
pub const BYTES: usize = 1_024;

/// The rules of a server. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskRules(Vec<MaskRule>);

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskRule {
    /// The tool that it is for; `None` for every tool.
    tool: Option<String>,
    path: Vec<Step>,
}

/// One part of a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Any member, any place of an array.
    Any,
    /// A member of this name; in an array, the place of this number.
    One(String),
}

impl MaskRule {
    /// Reads a rule: `/path` for every tool, `TOOL:/path` for one, `*:/path` for every one, too. An empty path, as in
    /// `TOOL:`, is everything. The error says what a rule takes, to be read after the field's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > BYTES {
            return Err(format!("takes at most {BYTES} bytes"));
        }
        if text.chars().any(char::is_control) {
            return Err("takes no control characters".to_owned());
        }
        let words = || "takes a JSON pointer such as `/card/number`, or `TOOL:/card/number` for one tool".to_owned();
        let (tool, path) = if text.starts_with('/') { ("*", text) } else { split_tool(text).ok_or_else(words)? };
        if tool.is_empty() {
            return Err(words());
        }
        let path = path.split('/').skip(1).map(step).collect::<Result<_, _>>()?;
        Ok(Self { tool: (tool != "*").then(|| tool.to_owned()), path })
    }

    fn is_for(&self, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|own| own == tool)
    }
}

/// The tool and the path: a tool's name may hold a `:`, a path that follows one begins with `/`.
fn split_tool(text: &str) -> Option<(&str, &str)> {
    let colons = text.match_indices(':').map(|(place, _)| (&text[..place], &text[place + 1..]));
    colons.into_iter().find(|(_, path)| path.is_empty() || path.starts_with('/'))
}

fn step(part: &str) -> Result<Step, String> {
    if part == "*" {
        return Ok(Step::Any);
    }
    let mut name = String::with_capacity(part.len());
    let mut rest = part.chars();
    while let Some(next) = rest.next() {
        name.push(match next {
            '~' => match rest.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return Err("takes `~` only as `~0` (for `~`) or `~1` (for `/`)".to_owned()),
            },
            other => other,
        });
    }
    Ok(Step::One(name))
}

impl MaskRules {
    /// The rules as stored. One that this version cannot read masks everything of every tool: what it hid stays hidden.
    pub fn from_stored(texts: &[String]) -> Self {
        let everything = MaskRule { tool: None, path: Vec::new() };
        Self(texts.iter().map(|text| MaskRule::parse(text).unwrap_or_else(|_| everything.clone())).collect())
    }

    /// The rules of all servers together, for a call whose tool is not known: each for every tool.
    pub fn of_all<'a>(servers: impl IntoIterator<Item = &'a Self>) -> Self {
        let rules = servers.into_iter().flat_map(|rules| &rules.0);
        Self(rules.map(|rule| MaskRule { tool: None, path: rule.path.clone() }).collect())
    }

    /// Whether some rule is for this tool.
    pub fn are_for(&self, tool: &str) -> bool {
        self.0.iter().any(|rule| rule.is_for(tool))
    }

    /// The pointers of the rules for this tool.
    pub(super) fn paths(&self, tool: &str) -> Vec<&[Step]> {
        self.0.iter().filter(|rule| rule.is_for(tool)).map(|rule| rule.path.as_slice()).collect()
    }
}

/// What is left of pointers inside the member of this name, or the place of an array that this number spells.
pub(super) fn inside<'a>(paths: &[&'a [Step]], name: &str) -> Vec<&'a [Step]> {
    let inside = |path: &&'a [Step]| match path.split_first()? {
        (Step::Any, rest) => Some(rest),
        (Step::One(own), rest) => (own == name).then_some(rest),
    };
    paths.iter().filter_map(inside).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::audit::mask::{MASK, masked};

    fn rules(texts: &[&str]) -> MaskRules {
        MaskRules(texts.iter().map(|text| MaskRule::parse(text).unwrap()).collect())
    }

    fn hidden(texts: &[&str], value: &Value) -> Value {
        serde_json::from_str(&masked(&value.to_string(), 20_000, &rules(texts), "t")).unwrap()
    }

    #[test]
    fn a_rule_is_a_pointer_with_an_optional_tool() {
        for good in ["/a", "/", "//", "/a~0~1b/*/0", "t:/a", "*:/a", "t:", "a:b:/c", "a/b:/c", "/a:/b", "/订单"] {
            assert!(MaskRule::parse(good).is_ok(), "{good}");
        }
        let long = format!("/{}", "x".repeat(BYTES));
        for bad in ["", "a", "a/b", ":/a", ":", "/a~", "/a~2", "/a\n", "a:b", &long] {
            assert!(MaskRule::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(MaskRule::parse("a:b:/c").unwrap().tool.as_deref(), Some("a:b"));
    }

    #[test]
    fn a_rule_masks_what_it_points_at_whatever_its_kind_and_nothing_else() {
        let value =
            json!({"card": {"number": 4111, "name": "n"}, "rows": [{"lot": "1"}, {"lot": [2]}, 7], "a/b": {"~": true}});
        assert_eq!(hidden(&["/card/number"], &value)["card"], json!({"number": MASK, "name": "n"}));
        assert_eq!(hidden(&["/card"], &value)["card"], json!(MASK));
        assert_eq!(hidden(&["/rows/*/lot"], &value)["rows"], json!([{"lot": MASK}, {"lot": MASK}, 7]));
        assert_eq!(hidden(&["/rows/1"], &value)["rows"], json!([{"lot": "1"}, MASK, 7]));
        assert_eq!(hidden(&["/*/name"], &value)["card"], json!({"number": 4111, "name": MASK}));
        assert_eq!(hidden(&["/a~1b/~0"], &value)["a/b"], json!({"~": MASK}));
        assert_eq!(hidden(&["t:"], &value), json!(MASK));
        for other in ["/rows/01", "/rows/-", "/rows/9", "/card/number/x", "/none", "other:/card", "/rows/+1"] {
            assert_eq!(hidden(&[other], &value), value, "{other}");
        }
    }

    #[test]
    fn for_a_call_whose_tool_is_not_known_every_rule_counts() {
        let all = MaskRules::of_all([&rules(&["a:/lot"]), &rules(&["/key"])]);
        let kept = masked(r#"{"lot":1,"key":2,"x":3}"#, 20_000, &all, "gone");
        assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), json!({"lot": MASK, "key": MASK, "x": 3}));
    }

    #[test]
    fn a_stored_rule_that_cannot_be_read_hides_everything() {
        let rules = MaskRules::from_stored(&["!".to_owned()]);
        assert_eq!(masked(r#"{"a":1}"#, 20_000, &rules, "t"), format!("\"{MASK}\""));
    }

    #[test]
    fn a_text_that_is_not_json_is_hidden_as_a_whole_where_a_rule_counts() {
        for text in ["{\"lot\":\"12", "{'lot':12}", "12 34", "\\é", "{\"a\":\"\\", "\\u12", ""] {
            assert_eq!(masked(text, 20_000, &rules(&["/lot"]), "t"), MASK, "{text}");
            assert_eq!(masked(text, 20_000, &rules(&["other:/lot"]), "t"), text);
        }
        // Halves of characters do not hide a value from a rule.
        let half = r#"{"note":"\ud83d","lot":"1234"}"#;
        assert!(!masked(half, 20_000, &rules(&["/lot"]), "t").contains("1234"));
        assert!(masked(half, 20_000, &rules(&["/lot"]), "t").contains("note"));
    }

    #[test]
    fn a_member_that_comes_twice_is_hidden_twice() {
        let twice = r#"{"lot":"1234","lot":"5678"}"#;
        assert_eq!(masked(twice, 20_000, &rules(&["/lot"]), "t"), format!(r#"{{"lot":"{MASK}","lot":"{MASK}"}}"#));
    }

    /// A JSON text of the string, with some characters written as escapes.
    fn spelt(text: &str, escapes: &[bool]) -> String {
        let mut out = String::from("\"");
        for (place, character) in text.chars().enumerate() {
            if escapes.get(place % escapes.len().max(1)).copied().unwrap_or(false) {
                let mut units = [0; 2];
                out.extend(character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
            } else {
                out.push_str(Value::from(character.to_string()).to_string().trim_matches('"'));
            }
        }
        out + "\""
    }

    proptest! {
        #[test]
        fn a_value_under_a_rule_never_survives_however_its_names_are_written(
            names in proptest::collection::vec("[a-z~/*订 .]{1,6}", 1..5),
            wild in proptest::collection::vec(any::<bool>(), 5),
            escapes in proptest::collection::vec(any::<bool>(), 1..4),
            secret in "Q[A-Z0-9]{11}",
            scalar: bool,
        ) {
            let part = |(place, name): (usize, &String)| {
                if wild[place] { "*".to_owned() } else { name.replace('~', "~0").replace('/', "~1") }
            };
            let parts: Vec<String> = names.iter().enumerate().map(part).collect();
            let pointer = format!("/{}", parts.join("/"));
            let inner = if scalar { format!("\"{secret}\"") } else { format!("[{{\"x\":\"{secret}\"}}]") };
            let json = names.iter().rev().fold(inner, |inner, name| {
                format!("{{\"other\":[1, 2.0],{}:{inner}}}", spelt(name, &escapes))
            });
            prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
            for rule in [pointer.clone(), format!("t:{pointer}"), format!("*:{pointer}")] {
                let kept = masked(&json, 20_000, &rules(&[&rule]), "t");
                prop_assert!(!kept.contains(&secret), "{} {}", rule, kept);
            }
            let other = format!("other:{pointer}");
            prop_assert!(masked(&json, 20_000, &rules(&[&other]), "t").contains(&secret));
        }

        #[test]
        fn no_text_panics_and_no_kept_text_is_too_long(text in ".{0,60}", rule in "(t:)?(/[a-z*~01]{0,3}){0,3}", most in 0_usize..40) {
            let texts = [rule];
            let rules = MaskRules::from_stored(&texts);
            prop_assert!(masked(&text, most, &rules, "t").len() <= most);
            let _ = MaskRule::parse(&text);
        }
    }
}
