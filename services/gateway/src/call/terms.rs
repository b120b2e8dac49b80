//! Pure: what an approval is bound to.
//!
//! A person says yes to exactly what the card showed: these arguments, and these terms (this tool with this definition, these
//! effective hints and this policy, in a session with this mode and profile). Both are hashes, so that they can be stored with the
//! card and compared when the call goes out.

use gatehouse_types::{PermissionMode, ProfileId};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::{
    catalog::Tool,
    raw::{self, RawObject},
};

/// A SHA-256.
pub type Hash = [u8; 32];

/// The terms of a call of `tool`, which the profile offers in this mode.
pub fn terms(tool: &Tool, mode: PermissionMode, profile: ProfileId) -> Hash {
    let mut hash = Sha256::new();
    for part in [
        b"gatehouse terms v1".as_slice(),
        tool.server.id.uuid().as_bytes(),
        tool.name.as_bytes(),
        tool.fingerprint.as_bytes(),
        &tool.hints.to_bits().to_be_bytes(),
        tool.policy.as_str().as_bytes(),
        mode.as_str().as_bytes(),
        profile.uuid().as_bytes(),
    ] {
        put(&mut hash, b'p', part);
    }
    hash.finalize().into()
}

/// The canonical hash of arguments: spaces, the order of members and the spelling of strings do not count; numbers count as they are
/// spelled, and so does each of two members of one name. `arguments` is one valid JSON value, or empty for none, which is not `{}`.
pub fn arguments(arguments: &str) -> Hash {
    let mut hash = Sha256::new();
    put_value(&mut hash, arguments);
    hash.finalize().into()
}

fn put(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

fn put_value(hash: &mut Sha256, json: &str) {
    let json = json.trim_ascii();
    match raw::first_byte(json) {
        b'{' => {
            let Some(mut object) = RawObject::parse(json) else { return put(hash, b'?', json.as_bytes()) };
            // Stable: members of one name keep their order, for servers differ in which of them they take.
            object.0.sort_by(|(one, _), (other, _)| one.cmp(other));
            put(hash, b'{', &(object.0.len() as u64).to_be_bytes());
            for (name, value) in &object.0 {
                put(hash, b'n', name.as_bytes());
                put_value(hash, value);
            }
        }
        b'[' => {
            let items: Result<Vec<&RawValue>, _> = serde_json::from_str(json);
            let Ok(items) = items else { return put(hash, b'?', json.as_bytes()) };
            put(hash, b'[', &(items.len() as u64).to_be_bytes());
            for item in items {
                put_value(hash, item.get());
            }
        }
        b'"' => match serde_json::from_str::<String>(json) {
            Ok(text) => put(hash, b's', text.as_bytes()),
            // Half a character, which only JSON can spell.
            Err(_) => put(hash, b'?', json.as_bytes()),
        },
        _ => put(hash, b'v', json.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::Arc};

    use gatehouse_types::{Hints, Policy, ServerId};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::catalog::Server;

    fn tool() -> Tool {
        Tool {
            server: Arc::new(Server::unregistered("http://a.example/mcp".to_owned(), None, Vec::new())),
            name: "add".to_owned(),
            exposed: "s__add".to_owned(),
            title: "Add".to_owned(),
            fingerprint: "f1".to_owned(),
            hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: true },
            policy: Policy::Ask,
            definition: Ok("{}".to_owned()),
            output: None,
        }
    }

    #[test]
    fn each_of_the_terms_counts() {
        let (profile, base) = (ProfileId::new(), tool());
        let like = |change: fn(&mut Tool)| {
            let mut other = Tool { server: Arc::clone(&base.server), ..tool() };
            change(&mut other);
            terms(&other, PermissionMode::Ask, profile)
        };
        let same = terms(&base, PermissionMode::Ask, profile);
        assert_eq!(like(|_| {}), same);
        assert_eq!(like(|tool| tool.exposed = "s__other".to_owned()), same, "what engines call it is no term");
        let different = [
            like(|tool| tool.fingerprint = "f2".to_owned()),
            like(|tool| tool.name = "sub".to_owned()),
            like(|tool| tool.hints.read_only = true),
            like(|tool| tool.hints.destructive = true),
            like(|tool| tool.hints.idempotent = true),
            like(|tool| tool.hints.open_world = false),
            like(|tool| tool.policy = Policy::Confirm),
            like(|tool| {
                let mut server = Server::clone(&tool.server);
                server.id = ServerId::new();
                tool.server = Arc::new(server);
            }),
            terms(&base, PermissionMode::Auto, profile),
            terms(&base, PermissionMode::ReadOnly, profile),
            terms(&base, PermissionMode::Ask, ProfileId::new()),
        ];
        let all: HashSet<Hash> = different.into_iter().chain([same]).collect();
        assert_eq!(all.len(), 12);
    }

    #[test]
    fn only_the_spelling_of_arguments_does_not_count() {
        for (one, other) in [
            (r#"{"a":1,"b":[2,"x"]}"#, "{ \"b\" : [ 2 , \"\\u0078\" ],\n\"a\":1}"),
            (r#"{"a":{"c":1,"b":2}}"#, r#"{"a":{"b":2,"c":1}}"#),
        ] {
            assert_eq!(arguments(one), arguments(other));
        }
        let different = [
            "",
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2,"a":1}"#,
            r#"{"a":[1]}"#,
            r#"{"a":[[1]]}"#,
            r#"{"a":{}}"#,
            r#"{"a":[]}"#,
            r#"{"a":null}"#,
            r#"{"a":"null"}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\ud801"}"#,
        ];
        assert_eq!(different.map(arguments).into_iter().collect::<HashSet<_>>().len(), different.len());
    }

    proptest! {
        #[test]
        fn equal_values_hash_alike_and_others_do_not(one in value(), other in value()) {
            let pretty = serde_json::to_string_pretty(&one).unwrap();
            prop_assert_eq!(arguments(&one.to_string()), arguments(&pretty));
            prop_assert_eq!(one == other, arguments(&one.to_string()) == arguments(&other.to_string()));
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[ab\"]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[ab]", inner, 0..3).prop_map(|map| map.into_iter().collect::<Value>()),
            ]
        })
    }
}
