//! Pure. Cached tools and what an admin overrides of them; `catalog::clean` reads their definitions.

use gatehouse_types::{Policy, ServerId, hints::DeclaredHints};
use time::OffsetDateTime;

use super::check::Fields;

/// Longest name of a tool that is stored, in bytes: it is part of an index.
pub const NAME_BYTES: usize = 1_024;

/// A cached tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its server.
    pub server_id: ServerId,
    /// Name of its server.
    pub server: String,
    /// Name at the server.
    pub name: String,
    /// The definition: JSON as the server sent it.
    pub definition: String,
    /// SHA-256 of the definition in hexadecimal.
    pub fingerprint: String,
    /// When the definition last changed.
    pub changed_at: OffsetDateTime,
    /// What an admin set.
    pub overrides: Overrides,
}

/// What an admin says of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Hints; `open_world` is never among them.
    pub hints: DeclaredHints,
    /// The policy; `None`: the default that follows from the effective hints.
    pub policy: Option<Policy>,
}

/// Who says what an effective hint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintSource {
    /// Nobody: the default.
    Default,
    /// The server declared it.
    Server,
    /// An admin set it.
    Admin,
}

impl HintSource {
    /// The source of a hint that was declared, and overridden, so.
    pub const fn of(declared: Option<bool>, set: Option<bool>) -> Self {
        match (set, declared) {
            (Some(_), _) => Self::Admin,
            (None, Some(_)) => Self::Server,
            (None, None) => Self::Default,
        }
    }
}

/// A change to a tool's overrides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each thing that can be taken back")]
pub struct ToolChange {
    /// Overrides to set.
    pub set: Overrides,
    /// Whether to remove the override of `readOnly`.
    pub clear_read_only: bool,
    /// Whether to remove the override of `destructive`.
    pub clear_destructive: bool,
    /// Whether to remove the override of `idempotent`.
    pub clear_idempotent: bool,
    /// Whether to remove the policy.
    pub clear_policy: bool,
}

impl ToolChange {
    /// Checks a change: what is set and the names of what is cleared.
    pub fn checked(fields: &mut Fields, set: Overrides, clear: &[String]) -> Self {
        let hints = set.hints;
        if hints.open_world.is_some() {
            fields.wrong("set.open_world", "cannot be overridden; it decides nothing");
        }
        let hints = DeclaredHints { open_world: None, ..hints };
        let mut change = Self { set: Overrides { hints, ..set }, ..Self::default() };
        for (place, name) in clear.iter().enumerate() {
            let (flag, also_set) = match name.as_str() {
                "read_only" => (&mut change.clear_read_only, hints.read_only.is_some()),
                "destructive" => (&mut change.clear_destructive, hints.destructive.is_some()),
                "idempotent" => (&mut change.clear_idempotent, hints.idempotent.is_some()),
                "policy" => (&mut change.clear_policy, set.policy.is_some()),
                _ => {
                    fields
                        .wrong(format!("clear[{place}]"), "takes `read_only`, `destructive`, `idempotent` or `policy`");
                    continue;
                }
            };
            *flag = true;
            if also_set {
                fields.wrong(format!("clear[{place}]"), "names what the same request sets");
            }
        }
        change
    }

    /// The overrides after the change.
    #[must_use]
    pub fn applied(&self, now: Overrides) -> Overrides {
        let one = |clear: bool, set: Option<bool>, old: Option<bool>| if clear { None } else { set.or(old) };
        let (set, old) = (self.set.hints, now.hints);
        Overrides {
            hints: DeclaredHints {
                read_only: one(self.clear_read_only, set.read_only, old.read_only),
                destructive: one(self.clear_destructive, set.destructive, old.destructive),
                idempotent: one(self.clear_idempotent, set.idempotent, old.idempotent),
                open_world: None,
            },
            policy: if self.clear_policy { None } else { self.set.policy.or(now.policy) },
        }
    }
}

/// A tool in a listing from its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTool {
    /// Name at the server.
    pub name: String,
    /// The definition: JSON as the server sent it.
    pub definition: String,
    /// SHA-256 in hexadecimal; the definition counts as changed when this differs.
    pub fingerprint: String,
}

impl ListedTool {
    /// Whether a row can hold it: the name is not empty, not longer than [`NAME_BYTES`], and nothing holds U+0000.
    pub fn storable(&self) -> bool {
        let name = (1..=NAME_BYTES).contains(&self.name.len()) && !self.name.contains('\0');
        name && !self.definition.contains('\0')
    }
}

/// What `initialize` and the listing said about a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Negotiated MCP revision.
    pub protocol_version: String,
    /// `serverInfo.name`.
    pub server_name: String,
    /// `serverInfo.version`.
    pub server_version: String,
    /// Capabilities: the JSON text as it was sent.
    pub capabilities: String,
}

/// Whether two texts of capabilities say the same: the order of keys and spaces do not count.
pub fn same_capabilities(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    one == other || matches!((read(one), read(other)), (Some(one), Some(other)) if one == other)
}

/// What a listing changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    /// Tools came, went, moved or have another definition.
    pub tools: bool,
    /// The capabilities differ.
    pub capabilities: bool,
    /// Tools of the listing that could not be stored: see [`ListedTool::storable`], and names that came twice.
    pub skipped: usize,
}

impl Changed {
    /// Whether anything changed.
    pub const fn any(self) -> bool {
        self.tools || self.capabilities
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wrong_clears_are_named_by_their_places() {
        let mut fields = Fields::new();
        let hints = DeclaredHints { read_only: Some(true), open_world: Some(true), ..DeclaredHints::default() };
        let set = Overrides { hints, policy: Some(Policy::Ask) };
        let clear = ["destructive", "read_only", "openWorld", "policy"].map(str::to_owned);
        let change = ToolChange::checked(&mut fields, set, &clear);
        let Err(crate::error::Error::Invalid(wrong)) = fields.finish(change) else { panic!("passed") };
        let named: Vec<&str> = wrong.iter().map(|wrong| wrong.field.as_str()).collect();
        assert_eq!(named, ["set.open_world", "clear[1]", "clear[2]", "clear[3]"]);
    }

    #[test]
    fn capabilities_are_compared_by_what_they_say() {
        assert!(same_capabilities(r#"{"a":1,"b":{}}"#, r#"{ "b":{}, "a":1 }"#));
        assert!(!same_capabilities(r#"{"a":1}"#, r#"{"a":2}"#));
        assert!(same_capabilities("", "") && !same_capabilities("", "{}"));
    }

    #[test]
    fn an_admins_word_comes_before_the_servers_and_that_before_the_default() {
        for declared in [None, Some(false), Some(true)] {
            assert_eq!(HintSource::of(declared, Some(false)), HintSource::Admin);
        }
        assert_eq!(HintSource::of(Some(false), None), HintSource::Server);
        assert_eq!(HintSource::of(None, None), HintSource::Default);
    }

    fn some_policy() -> impl Strategy<Value = Option<Policy>> {
        proptest::option::of(proptest::sample::select(Policy::ALL.to_vec()))
    }

    proptest! {
        #[test]
        fn a_change_sets_clears_and_keeps(
            set in proptest::option::of(any::<bool>()),
            clear: bool,
            old in proptest::option::of(any::<bool>()),
            (policy, clear_policy, old_policy) in (some_policy(), any::<bool>(), some_policy()),
        ) {
            let hints = |read_only, destructive| DeclaredHints { read_only, destructive, ..DeclaredHints::default() };
            let change = ToolChange {
                set: Overrides { hints: hints(set, None), policy },
                clear_read_only: clear,
                clear_policy,
                ..ToolChange::default()
            };
            let after = change.applied(Overrides { hints: hints(old, old), policy: old_policy });
            prop_assert_eq!(after.hints.read_only, if clear { None } else { set.or(old) });
            prop_assert_eq!(after.hints.destructive, old);
            prop_assert_eq!(after.policy, if clear_policy { None } else { policy.or(old_policy) });
        }
    }
}
