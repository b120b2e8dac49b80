//! Who must say yes: the policy of a tool and the permission mode of a session.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Hints;

/// What becomes of a tool's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// They run at once.
    Allow,
    /// A person is asked, unless the session's mode is [`PermissionMode::Auto`].
    Ask,
    /// A person is asked each time, whatever the mode.
    Confirm,
    /// The tool is not offered.
    Deny,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Ask, Self::Confirm, Self::Deny];

    /// The policy of a tool that no admin chose one for. Destructive beats read-only.
    pub const fn default_for(hints: Hints) -> Self {
        if hints.destructive {
            Self::Confirm
        } else if hints.read_only {
            Self::Allow
        } else {
            Self::Ask
        }
    }

    /// As stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Confirm => "confirm",
            Self::Deny => "deny",
        }
    }

    /// The reverse of [`Policy::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What calls of a session may do without a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Only effectively read-only tools are listed and callable; among them policies count as in [`PermissionMode::Ask`].
    ReadOnly,
    /// Tools with [`Policy::Ask`] need a person.
    #[default]
    Ask,
    /// They run at once.
    Auto,
}

impl PermissionMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::Ask, Self::Auto];

    /// As stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Ask => "ask",
            Self::Auto => "auto",
        }
    }

    /// The reverse of [`PermissionMode::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_follows_from_the_hints_and_destructive_beats_read_only() {
        for (read_only, destructive, expected) in [
            (false, false, Policy::Ask),
            (true, false, Policy::Allow),
            (false, true, Policy::Confirm),
            (true, true, Policy::Confirm),
        ] {
            for (idempotent, open_world) in [(false, false), (false, true), (true, false), (true, true)] {
                let hints = Hints { read_only, destructive, idempotent, open_world };
                assert_eq!(Policy::default_for(hints), expected);
            }
        }
    }

    #[test]
    fn words_come_back_as_what_they_stand_for() {
        for policy in Policy::ALL {
            assert_eq!(Policy::parse(policy.as_str()), Some(policy));
        }
        for mode in PermissionMode::ALL {
            assert_eq!(PermissionMode::parse(mode.as_str()), Some(mode));
        }
        assert_eq!((Policy::parse("Allow"), PermissionMode::parse("")), (None, None));
    }
}
