//! Pure
//!
//! JSON text taken apart in one pass, without a copy: where values end, the members of an object, the items of an array.
//!
//! Accepts what RFC 8259 accepts and nothing else; `serde_json` is the judge in the tests. Payloads are mostly long strings, and
//! those are crossed many bytes at a time; that is why this exists beside `serde_json::value::RawValue`, which takes several times
//! as long and cannot be told how deep to go.

mod strings;

use std::borrow::Cow;

/// Why a text was not taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is not JSON, or not of the kind that was asked for.
    #[error("not valid JSON")]
    Invalid,
    /// It nests deeper than allowed.
    #[error("nested too deeply")]
    TooDeep,
}

/// A member's name and the text of its value.
pub type Member<'a> = (Cow<'a, str>, &'a str);

/// The members of an object in the order they were written, each value as its text. Names that occur twice are kept twice.
pub fn members(text: &str, most_depth: usize) -> Result<Vec<Member<'_>>, Fault> {
    let mut scan = Scan::begin(text);
    let found = scan.object(most_depth, |scan, _, depth| scan.value(depth))?;
    scan.end()?;
    Ok(found)
}

/// The items of an array, each as its text.
pub fn items(text: &str, most_depth: usize) -> Result<Vec<&str>, Fault> {
    let mut scan = Scan::begin(text);
    let found = scan.array(most_depth, |scan, depth| {
        let begin = scan.at;
        scan.value(depth)?;
        Ok(&scan.text[begin..scan.at])
    })?;
    scan.end()?;
    Ok(found)
}

/// An item of an array: its text, and its members when it is an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Item<'a> {
    /// The text.
    pub text: &'a str,
    /// The members; `None` for anything but an object.
    pub members: Option<Vec<Member<'a>>>,
}

/// An object whose member `name` is a list that matters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing<'a> {
    /// The members of the object.
    pub members: Vec<Member<'a>>,
    /// The items of the list; `None` when there is no such member, or it is not an array.
    pub items: Option<Vec<Item<'a>>>,
}

/// The members of an object, and the items of the array in its member `name`, with their members: all in one pass.
///
/// The text must have been judged before, as the result in a message has: strings are crossed without looking into them. For a text
/// that is not JSON the answer is some fault, or some wrong pieces of the text.
pub fn listing<'a>(text: &'a str, name: &str, most_depth: usize) -> Result<Listing<'a>, Fault> {
    let mut scan = Scan { judged: true, ..Scan::begin(text) };
    let mut items = None;
    let members = scan.object(most_depth, |scan, member, depth| {
        if member != name {
            return scan.value(depth);
        }
        items = None;
        if !scan.next_is(b'[') {
            return scan.value(depth);
        }
        items = Some(scan.array(depth, |scan, depth| {
            let begin = scan.at;
            let members = if scan.next_is(b'{') {
                Some(scan.object(depth, |scan, _, depth| scan.value(depth))?)
            } else {
                scan.value(depth)?;
                None
            };
            Ok(Item { text: &scan.text[begin..scan.at], members })
        })?);
        Ok(())
    })?;
    scan.end()?;
    Ok(Listing { members, items })
}

/// Whether a text is one JSON value, nested no deeper than allowed.
pub fn check(text: &str, most_depth: usize) -> Result<(), Fault> {
    let mut scan = Scan::begin(text);
    scan.value(most_depth)?;
    scan.end()
}

/// The text that a JSON string spells; borrowed when it has no escapes.
pub fn unquoted(quoted: &str) -> Result<Cow<'_, str>, Fault> {
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or(Fault::Invalid)?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(quoted).map(Cow::Owned).map_err(|_| Fault::Invalid)
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Whether the text is known to be JSON.
    judged: bool,
}

impl<'a> Scan<'a> {
    /// At the first byte that is no space.
    fn begin(text: &'a str) -> Self {
        let mut scan = Self { text, bytes: text.as_bytes(), at: 0, judged: false };
        scan.spaces();
        scan
    }

    /// Crosses an object; `value` crosses each value, and is told its name and how deep it may go.
    fn object(
        &mut self,
        most_depth: usize,
        mut value: impl FnMut(&mut Self, &str, usize) -> Result<(), Fault>,
    ) -> Result<Vec<Member<'a>>, Fault> {
        let inner_depth = most_depth.checked_sub(1).ok_or(Fault::TooDeep)?;
        let mut found = Vec::with_capacity(4);
        self.take(b'{')?;
        self.spaces();
        while !self.next_is(b'}') {
            let begin = self.at;
            self.string()?;
            let name = unquoted(&self.text[begin..self.at])?;
            self.spaces();
            self.take(b':')?;
            self.spaces();
            let begin = self.at;
            value(self, &name, inner_depth)?;
            found.push((name, &self.text[begin..self.at]));
            if !self.goes_on(b'}')? {
                break;
            }
        }
        self.take(b'}')?;
        Ok(found)
    }

    /// Crosses an array; `item` crosses each item, and is told how deep it may go.
    fn array<T>(
        &mut self,
        most_depth: usize,
        mut item: impl FnMut(&mut Self, usize) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let inner_depth = most_depth.checked_sub(1).ok_or(Fault::TooDeep)?;
        let mut found = Vec::with_capacity(4);
        self.take(b'[')?;
        self.spaces();
        while !self.next_is(b']') {
            found.push(item(self, inner_depth)?);
            if !self.goes_on(b']')? {
                break;
            }
        }
        self.take(b']')?;
        Ok(found)
    }

    /// After a value: crosses the comma, when there is one. Something must follow it.
    fn goes_on(&mut self, closing: u8) -> Result<bool, Fault> {
        self.spaces();
        if !self.next_is(b',') {
            return Ok(false);
        }
        self.at += 1;
        self.spaces();
        if self.next_is(closing) { Err(Fault::Invalid) } else { Ok(true) }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next_is(&self, byte: u8) -> bool {
        self.peek() == Some(byte)
    }

    fn take(&mut self, byte: u8) -> Result<(), Fault> {
        if !self.next_is(byte) {
            return Err(Fault::Invalid);
        }
        self.at += 1;
        Ok(())
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.spaces();
        if self.at == self.bytes.len() { Ok(()) } else { Err(Fault::Invalid) }
    }

    /// Crosses one value. Open objects and arrays are kept in a list, not on the stack.
    fn value(&mut self, most_depth: usize) -> Result<(), Fault> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            // A value begins here.
            match self.peek().ok_or(Fault::Invalid)? {
                bracket @ (b'{' | b'[') => {
                    if open.len() >= most_depth {
                        return Err(Fault::TooDeep);
                    }
                    self.at += 1;
                    self.spaces();
                    // The closing bracket is two further in ASCII.
                    if self.next_is(bracket + 2) {
                        self.at += 1;
                    } else {
                        open.push(bracket + 2);
                        if bracket == b'{' {
                            self.name()?;
                        }
                        continue;
                    }
                }
                b'"' => self.string()?,
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            // A value has ended: close what closes, go on with what goes on.
            loop {
                let Some(closing) = open.last().copied() else { return Ok(()) };
                self.spaces();
                if self.next_is(closing) {
                    self.at += 1;
                    open.pop();
                    continue;
                }
                self.take(b',')?;
                self.spaces();
                if closing == b'}' {
                    self.name()?;
                }
                break;
            }
        }
    }

    /// Crosses a member's name, its colon, and the spaces around them.
    fn name(&mut self) -> Result<(), Fault> {
        self.string()?;
        self.spaces();
        self.take(b':')?;
        self.spaces();
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(Fault::Invalid);
        }
        self.at += word.len();
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.take(b'"')?;
        if self.judged {
            return self.judged_string();
        }
        self.at = strings::end(self.bytes, self.at)?;
        Ok(())
    }

    /// Crosses the rest of a string that is known to be one: it ends at the first quote that no backslash belongs to.
    fn judged_string(&mut self) -> Result<(), Fault> {
        let begin = self.at;
        loop {
            let quote = self.at + memchr::memchr(b'"', &self.bytes[self.at..]).ok_or(Fault::Invalid)?;
            self.at = quote + 1;
            let backslashes = self.bytes[begin..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
            if backslashes.is_multiple_of(2) {
                return Ok(());
            }
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.next_is(b'-') {
            self.at += 1;
        }
        if self.next_is(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.next_is(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == begin { Err(Fault::Invalid) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
