//! Pure: names that the registry takes, made from names that people chose.

use super::Entry;

/// Longest name of a server.
const MAX_CHARS: usize = 32;

/// The name for an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// The name to register.
    pub(crate) name: String,
    /// What was changed and why, for people; empty when nothing was.
    pub(crate) change: String,
}

/// Whether two names are one to the registry, which reads `-` as `_`.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.replace('-', "_") == other.replace('-', "_")
}

/// A name for each entry, in the same order: the same entries always get the same names.
///
/// A name that an earlier entry has gets `-2`, `-3`, …
pub(crate) fn assign(entries: &[Entry], prefix: &str) -> Vec<Named> {
    let mut taken: Vec<Named> = Vec::with_capacity(entries.len());
    for entry in entries {
        let wanted = format!("{prefix}{}", entry.name);
        let base = valid(&wanted);
        let is_free = |name: &str| !taken.iter().any(|other| same(&other.name, name));
        let numbered = (2_u32..).map(|number| cut(&base, &format!("-{number}")));
        let name = std::iter::once(base.clone()).chain(numbered).find(|name| is_free(name)).unwrap_or_default();
        let change = if name == wanted {
            String::new()
        } else if name == base {
            format!("`{wanted}` is not a valid name, so it is registered as `{name}`")
        } else {
            format!("`{base}` is already used by another entry, so this one is registered as `{name}`")
        };
        taken.push(Named { name, change });
    }
    taken
}

/// `^[a-z0-9_-]{1,32}$`, no `__`, no `_` at either end.
fn valid(wanted: &str) -> String {
    let mut name = String::new();
    for character in wanted.chars().flat_map(char::to_lowercase) {
        let character = if character.is_ascii_alphanumeric() || character == '_' { character } else { '-' };
        let repeats = matches!(character, '-' | '_') && name.ends_with(['-', '_']);
        if !repeats {
            name.push(character);
        }
    }
    let name = cut(name.trim_matches(['-', '_']), "");
    if name.is_empty() { "server".to_owned() } else { name }
}

/// The beginning of `name`, and `tail`, together within the limit.
fn cut(name: &str, tail: &str) -> String {
    let kept: String = name.chars().take(MAX_CHARS.saturating_sub(tail.len())).collect();
    format!("{}{tail}", kept.trim_end_matches(['-', '_']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(of: &[&str], prefix: &str) -> Vec<Named> {
        let entry = |name: &&str| Entry { name: (*name).to_owned(), place: String::new(), outcome: Err(String::new()) };
        assign(&of.iter().map(entry).collect::<Vec<_>>(), prefix)
    }

    #[test]
    fn a_name_is_made_valid_and_a_collision_is_numbered_and_said() {
        let long = "a-name-that-does-not-fit-into-it-all";
        let named = names(&["orders", "My Server!", "my_server", "订单", long, &format!("{long}x")], "");
        let lines: Vec<String> =
            named.iter().map(|named| format!("{} {}", named.name, !named.change.is_empty())).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        orders false
        my-server true
        my_server-2 true
        server true
        a-name-that-does-not-fit-into-it true
        a-name-that-does-not-fit-into-2 true
        ");
        assert!(named[1].change.contains("registered as `my-server`") && named[2].change.contains("already used"));
    }

    proptest! {
        #[test]
        fn every_name_is_valid_and_no_two_are_one(
            of in prop::collection::vec(any::<String>(), 0..8),
            prefix in "[a-z_]{0,40}",
        ) {
            let of: Vec<&str> = of.iter().map(String::as_str).collect();
            let named = names(&of, &prefix);
            for (place, one) in named.iter().enumerate() {
                let name = &one.name;
                prop_assert!((1..=MAX_CHARS).contains(&name.len()));
                let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
                prop_assert!(name.chars().all(is_good));
                prop_assert!(!name.contains("__") && !name.starts_with('_') && !name.ends_with('_'));
                prop_assert!(named[..place].iter().all(|other| !same(&other.name, name)));
            }
        }
    }
}
