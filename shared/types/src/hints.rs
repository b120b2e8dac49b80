//! Tool annotations that decide something (MCP 2025-11-25, schema `ToolAnnotations`): declared by the server, overridden by
//! an admin, and what counts in the end.

use serde::{Deserialize, Serialize};

/// Hints as a server declared them or as an admin set them. `None` is "nothing said".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeclaredHints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
    /// `openWorldHint`.
    pub open_world: Option<bool>,
}

/// The hints that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the specification has four independent hints")]
pub struct Hints {
    /// The tool changes nothing. Default false.
    pub read_only: bool,
    /// The tool may destroy something. Default false: only a declared `true` counts.
    pub destructive: bool,
    /// Calling it twice does no more than calling it once. Default false.
    pub idempotent: bool,
    /// The tool reaches beyond its server. Default true.
    pub open_world: bool,
}

impl Hints {
    /// What counts: the admin's word, else the server's, else the default.
    pub fn effective(declared: DeclaredHints, overrides: DeclaredHints) -> Self {
        Self {
            read_only: overrides.read_only.or(declared.read_only).unwrap_or(false),
            destructive: overrides.destructive.or(declared.destructive).unwrap_or(false),
            idempotent: overrides.idempotent.or(declared.idempotent).unwrap_or(false),
            open_world: declared.open_world.unwrap_or(true),
        }
    }

    /// As stored: bit 0 read-only, bit 1 destructive, bit 2 idempotent, bit 3 open world.
    pub fn to_bits(self) -> i16 {
        i16::from(self.read_only)
            | (i16::from(self.destructive) << 1)
            | (i16::from(self.idempotent) << 2)
            | (i16::from(self.open_world) << 3)
    }

    /// The reverse of [`Hints::to_bits`]. Unknown bits are ignored.
    pub fn from_bits(bits: i16) -> Self {
        Self {
            read_only: bits & 1 != 0,
            destructive: bits & 2 != 0,
            idempotent: bits & 4 != 0,
            open_world: bits & 8 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_beats_a_declaration_and_a_declaration_beats_the_default() {
        for declared in [None, Some(false), Some(true)] {
            for set in [None, Some(false), Some(true)] {
                let said = DeclaredHints {
                    read_only: declared,
                    destructive: declared,
                    idempotent: declared,
                    open_world: declared,
                };
                let overrides = DeclaredHints { read_only: set, destructive: set, idempotent: set, open_world: None };
                let hints = Hints::effective(said, overrides);
                let expected = set.or(declared).unwrap_or(false);
                assert_eq!((hints.read_only, hints.destructive, hints.idempotent), (expected, expected, expected));
                assert_eq!(hints.open_world, declared.unwrap_or(true));
            }
        }
    }

    #[test]
    fn bits_come_back_as_the_hints_they_were_made_of() {
        for bits in 0..16 {
            assert_eq!(Hints::from_bits(bits).to_bits(), bits);
        }
    }
}
