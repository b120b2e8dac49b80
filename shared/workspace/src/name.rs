//! Pure. Names of files: safe on every file system, and the same for the same result each time.

mod media;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

/// Longest name in bytes, with its extension. File systems take 255; what is left is for the names of temporary files.
pub const NAME_BYTES: usize = 120;
/// Longest extension in bytes that is kept when a name is cut; what is longer is no extension.
const EXTENSION_BYTES: usize = 16;
/// Names of devices on Windows, whatever follows their first dot.
const DEVICES: [&str; 7] = ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];
/// Names of devices on Windows with a digit behind them.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// What part of a result a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An embedded resource.
    Resource,
    /// Text.
    Text,
    /// An image.
    Image,
    /// Sound.
    Audio,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Resource => "file",
            Self::Text => "text",
            Self::Image => "image",
            Self::Audio => "audio",
        }
    }
}

/// What a name is made of.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// What the file holds.
    pub kind: Kind,
    /// Place within the result, from 0.
    pub place: u32,
    /// URI that the name is taken from; empty for none.
    pub uri: &'a str,
    /// Media type, as the server says; empty for none.
    pub media_type: &'a str,
}

/// Names for the files of one result, in order. No two of them are the same, also where letter case does not count, and
/// none is one of `taken` (as [`key`] gives them).
pub fn names(sources: &[Source<'_>], taken: &BTreeSet<String>) -> Vec<String> {
    let mut taken = taken.clone();
    let distinct = |source: &Source<'_>| {
        let name = name(source);
        // There are fewer taken names than numbers to try.
        let free = (1..=taken.len() + 1).map(|number| numbered(&name, number)).find(|name| !taken.contains(&key(name)));
        let name = free.unwrap_or(name);
        taken.insert(key(&name));
        name
    };
    sources.iter().map(distinct).collect()
}

/// The name for a file: the last segment of its URI made safe, else one from its kind, place and media type.
pub fn name(source: &Source<'_>) -> String {
    last_segment(source.uri).and_then(|segment| safe(&percent_decoded(segment))).unwrap_or_else(|| {
        let number = u64::from(source.place) + 1;
        format!("{}-{number}.{}", source.kind.word(), media::extension(source.kind, source.media_type))
    })
}

/// What two names have in common that a file system without letter case takes for one.
pub fn key(name: &str) -> String {
    name.to_lowercase()
}

/// The name with a number before its extension; 1 is the name itself.
pub fn numbered(name: &str, number: usize) -> String {
    if number < 2 {
        return name.to_owned();
    }
    let (stem, extension) = split(name);
    cut(stem, &format!("-{number}{extension}"))
}

/// The last segment of a URI's path that is not empty; for a URI without a path whatever stands for one, but no host.
fn last_segment(uri: &str) -> Option<&str> {
    let uri = uri.split('#').next().unwrap_or_default();
    let uri = uri.split('?').next().unwrap_or_default();
    let (scheme, rest) = match uri.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", uri),
    };
    if scheme.eq_ignore_ascii_case("data") {
        return None;
    }
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let path = match rest.strip_prefix("//") {
        // `note://first` names its note where others name a host.
        Some(rest) if is_web => rest.split_once('/').map_or("", |(_, path)| path),
        Some(rest) => rest,
        None if scheme.is_empty() => rest,
        // `urn:example:report`
        None => rest.rsplit(':').next().unwrap_or_default(),
    };
    path.rsplit(['/', '\\']).find(|segment| !segment.is_empty())
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    // One letter is a drive.
    text.len() > 1
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Percent-decoding (RFC 3986, 2.1), once. What is no UTF-8 then becomes U+FFFD; a `%` that begins no code stays.
fn percent_decoded(text: &str) -> String {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = match (first, after) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        let (byte, after) = code.map_or((first, after), |(high, low)| (high << 4 | low, &after[2..]));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text as a name: normalized (NFC), without what cannot be seen or changes the direction, without separators and
/// what Windows refuses, not hidden, no option, no device, at most [`NAME_BYTES`]. `None` when nothing is left.
pub fn safe(text: &str) -> Option<String> {
    let seen = |letter: char| match letter {
        letter if is_invisible(letter) => None,
        letter if letter.is_whitespace() => Some(' '),
        '<' | '>' | ':' | '"' | '/' | '\\' | '|' | '?' | '*' | '`' | char::REPLACEMENT_CHARACTER => Some('_'),
        letter => Some(letter),
    };
    // Normalized first, because that can give letters that are refused; and last, because letters have met.
    let text: String = text.nfc().filter_map(seen).nfc().collect();
    let text = text.trim_start_matches(['.', '-', ' ']).trim_end_matches(['.', ' ']);
    if text.is_empty() {
        return None;
    }
    let (stem, extension) = split(text);
    let whole = cut(stem, extension);
    Some(if is_device(&whole) { undeviced(&whole) } else { whole })
}

/// The name in two: before the extension, and the extension with its dot.
fn split(name: &str) -> (&str, &str) {
    let at = name.rfind('.').filter(|at| *at > 0 && (2..=EXTENSION_BYTES + 1).contains(&(name.len() - at)));
    name.split_at(at.unwrap_or(name.len()))
}

/// The stem with its end, cut before the end so that both fit.
fn cut(stem: &str, end: &str) -> String {
    let room = NAME_BYTES.saturating_sub(end.len());
    let stem = &stem[..stem.floor_char_boundary(room)];
    let whole = format!("{stem}{end}");
    whole.trim_end_matches(['.', ' ']).to_owned()
}

/// A device's name counts also with an extension, and with spaces before it.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let numbered = |device: &str| {
        let rest = stem.strip_prefix(device).unwrap_or_default();
        matches!(rest, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(|device| numbered(device))
}

fn undeviced(name: &str) -> String {
    let (stem, rest) = name.split_at(name.find('.').unwrap_or(name.len()));
    let name = format!("{}_{rest}", stem.trim_end());
    let (stem, extension) = split(&name);
    cut(stem, extension)
}

/// Letters that show nothing or turn others around: controls, format characters (Unicode category Cf), line separators,
/// fillers, private and unassigned specials.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{AD}' | '\u{34F}' | '\u{600}'..='\u{605}' | '\u{61C}' | '\u{6DD}' | '\u{70F}' | '\u{890}' | '\u{891}'
                | '\u{8E2}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
                | '\u{E000}'..='\u{F8FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
                | '\u{110BD}' | '\u{110CD}' | '\u{13430}'..='\u{1343F}' | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{10FFFF}'
        )
}
