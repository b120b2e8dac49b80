//! Pure
//!
//! JSON text taken apart in one pass, without a copy: where values end, the members of an object, the items of an array.
//!
//! Accepts what RFC 8259 accepts and nothing else; `serde_json` is the judge in the tests. Payloads are mostly long strings, and
//! those are crossed many bytes at a time; that is why this exists beside `serde_json::value::RawValue`, which takes several times
//! as long and cannot be told how deep to go.

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

/// The members of an object in the order they were written, each value as its text. Names that occur twice are kept twice.
pub fn members(text: &str, most_depth: usize) -> Result<Vec<(Cow<'_, str>, &str)>, Fault> {
    let mut found = Vec::with_capacity(8);
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    scan.spaces();
    scan.take(b'{')?;
    scan.spaces();
    if !scan.next_is(b'}') {
        loop {
            let name = scan.at;
            scan.string()?;
            let name = unquoted(&text[name..scan.at])?;
            scan.spaces();
            scan.take(b':')?;
            scan.spaces();
            let value = scan.at;
            scan.value(most_depth.saturating_sub(1))?;
            found.push((name, &text[value..scan.at]));
            scan.spaces();
            if !scan.next_is(b',') {
                break;
            }
            scan.take(b',')?;
            scan.spaces();
        }
    }
    scan.take(b'}')?;
    scan.end()?;
    Ok(found)
}

/// The items of an array, each as its text.
pub fn items(text: &str, most_depth: usize) -> Result<Vec<&str>, Fault> {
    let mut found = Vec::new();
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    scan.spaces();
    scan.take(b'[')?;
    scan.spaces();
    if !scan.next_is(b']') {
        loop {
            let item = scan.at;
            scan.value(most_depth.saturating_sub(1))?;
            found.push(&text[item..scan.at]);
            scan.spaces();
            if !scan.next_is(b',') {
                break;
            }
            scan.take(b',')?;
            scan.spaces();
        }
    }
    scan.take(b']')?;
    scan.end()?;
    Ok(found)
}

/// Whether a text is one JSON value, nested no deeper than allowed.
pub fn check(text: &str, most_depth: usize) -> Result<(), Fault> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    scan.spaces();
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
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
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
        loop {
            let rest = &self.bytes[self.at..];
            let stop = memchr::memchr2(b'"', b'\\', rest).ok_or(Fault::Invalid)?;
            // No early exit: this way the whole run is compared many bytes at a time.
            if rest[..stop].iter().fold(false, |found, byte| found | (*byte < 0x20)) {
                return Err(Fault::Invalid);
            }
            self.at += stop + 1;
            if rest[stop] == b'"' {
                return Ok(());
            }
            let escape = self.peek().ok_or(Fault::Invalid)?;
            self.at += 1;
            match escape {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => {
                    let digits = self.bytes.get(self.at..self.at + 4).ok_or(Fault::Invalid)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return Err(Fault::Invalid);
                    }
                    self.at += 4;
                }
                _ => return Err(Fault::Invalid),
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
