//! Pure: the names that engines see.
//!
//! `server__tool`, at most a number of characters of `[A-Za-z0-9_-]`. What does not fit is replaced or cut and then ends in
//! a short hash of server and tool, so that no other tool's arrival changes it. Engines rewrite `-`, `.` and `/` to `_`
//! before they show a name; two names that would be one after that count as the same name here.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

/// Hexadecimal digits of the hash that marks a changed name.
const HASH_DIGITS: usize = 8;

/// A name and whether it is `server__tool` letter for letter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    text: String,
    plain: bool,
}

/// One exposed name for each `(server, tool)`, in the order given; no two are the same after an engine's rewriting.
///
/// Pairs must be distinct. The result does not depend on the order of the pairs.
pub fn exposed_names(pairs: &[(&str, &str)], most: usize) -> Vec<String> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    // Plain names first, those without `-` before their twins; then by the pair, so that the order given does not matter.
    order.sort_by_key(|&place| {
        let (server, tool) = pairs[place];
        let name = candidate(server, tool, most);
        (!name.plain, name.text != canonical(&name.text), server, tool)
    });
    let mut taken = HashSet::with_capacity(pairs.len());
    let mut names = vec![String::new(); pairs.len()];
    for place in order {
        let (server, tool) = pairs[place];
        let mut name = candidate(server, tool, most).text;
        let mut digits = HASH_DIGITS;
        while !taken.insert(canonical(&name)) {
            name = hashed(server, tool, most, digits);
            digits = (digits + 8).min(HASH_DIGITS * 4 + digits);
        }
        names[place] = name;
    }
    names
}

/// The name as an engine's rewriting leaves it.
pub fn canonical(name: &str) -> String {
    name.replace(['-', '.', '/'], "_")
}

/// The pair's own spelling, when it is a valid name: a listing made before a twin arrived may have used it.
pub fn plain_name(server: &str, tool: &str, most: usize) -> Option<String> {
    let name = candidate(server, tool, most);
    name.plain.then_some(name.text)
}

/// Looks names up: exactly as listed, else by a tool's plain spelling.
#[derive(Debug, Default)]
pub struct Names<T> {
    listed: HashMap<String, T>,
    plain: HashMap<String, T>,
}

impl<T> Names<T> {
    /// Adds a tool under the name it is listed by, and under its plain spelling.
    pub fn insert(&mut self, listed: String, plain: Option<String>, value: T)
    where
        T: Clone,
    {
        if let Some(plain) = plain.filter(|plain| *plain != listed) {
            self.plain.insert(plain, value.clone());
        }
        self.listed.insert(listed, value);
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.listed.get(name).or_else(|| self.plain.get(name))
    }
}

fn candidate(server: &str, tool: &str, most: usize) -> Candidate {
    let fits = server.len() + 2 + tool.len() <= most;
    let plain = fits && !tool.is_empty() && tool.bytes().all(allowed);
    let text = if plain { format!("{server}__{tool}") } else { hashed(server, tool, most, HASH_DIGITS) };
    Candidate { text, plain }
}

fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn hashed(server: &str, tool: &str, most: usize, digits: usize) -> String {
    let mut hash = Sha256::new();
    hash.update(server.as_bytes());
    hash.update([0]);
    hash.update(tool.as_bytes());
    let digits = digits.min(32).min(most.saturating_sub(1));
    let mut mark = super::hex(&hash.finalize());
    mark.truncate(digits);
    let mut name = format!("{server}__");
    name.extend(tool.chars().map(|c| if c.is_ascii() && allowed(c as u8) { c } else { '_' }));
    name.truncate(most - 1 - digits);
    format!("{name}_{mark}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_fits_is_server_and_tool() {
        assert_eq!(
            exposed_names(&[("orders", "get_order"), ("a-b", "get-sum")], 64),
            ["orders__get_order", "a-b__get-sum"]
        );
    }

    #[test]
    fn what_is_replaced_or_cut_ends_in_a_hash_of_server_and_tool() {
        let long = "x".repeat(80);
        let names = exposed_names(&[("s", "sl.name"), ("s", &long), ("s", ""), ("s", "名字")], 64);
        assert_eq!(names[0], format!("s__sl_name_{}", &names[0][11..]));
        assert_eq!(names[0].len(), 11 + 8);
        assert_eq!(names[1].len(), 64);
        for name in &names {
            let hash = name.rsplit('_').next().unwrap();
            assert!(hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        }
    }

    #[test]
    fn twins_after_an_engines_rewriting_get_names_of_their_own_and_the_plain_spelling_still_finds_each() {
        let pairs = [("s", "a-b"), ("s", "a_b"), ("s", "a.b")];
        let names = exposed_names(&pairs, 64);
        assert_eq!(names[1], "s__a_b");
        assert!(names[0].starts_with("s__a-b_") && names[2].starts_with("s__a_b_"));
        let mut index = Names::default();
        for (place, (server, tool)) in pairs.iter().enumerate() {
            index.insert(names[place].clone(), plain_name(server, tool, 64), place);
        }
        assert_eq!((index.get("s__a-b"), index.get("s__a_b"), index.get(&names[2])), (Some(&0), Some(&1), Some(&2)));
        assert_eq!(index.get("s__a.b"), None);
    }

    proptest! {
        #[test]
        fn names_are_valid_distinct_after_rewriting_and_independent_of_order(
            tools in proptest::collection::hash_set(("[a-c]{1,2}", "[a-c_./é-]{0,6}"), 1..40),
            most in 16_usize..40,
        ) {
            let pairs: Vec<(&str, &str)> = tools.iter().map(|(server, tool)| (server.as_str(), tool.as_str())).collect();
            let names = exposed_names(&pairs, most);
            let distinct: HashSet<String> = names.iter().map(|name| canonical(name)).collect();
            prop_assert_eq!(distinct.len(), names.len());
            for name in &names {
                prop_assert!(name.len() <= most && name.bytes().all(allowed), "{}", name);
            }
            let mut turned = pairs.clone();
            turned.reverse();
            let mut again = exposed_names(&turned, most);
            again.reverse();
            prop_assert_eq!(names, again);
        }
    }
}
