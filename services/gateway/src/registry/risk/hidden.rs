//! Pure. Characters that a person does not see: they can carry words for the model, or show words in another order than the
//! model reads them.

use super::excerpt;

/// The first such character of a text, in an excerpt.
pub(super) fn find(text: &str) -> Option<String> {
    // All of them are outside of ASCII, or controls.
    if text.bytes().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')) {
        return None;
    }
    let chars: Vec<char> = text.chars().collect();
    let found = (0..chars.len()).find(|place| is_hidden(&chars, *place))?;
    Some(excerpt(&chars, found, found + 1))
}

/// Whether the character at `place` is one that should not be there. Joiners and selectors are right within emoji and in the
/// scripts that need them.
pub(super) fn is_hidden(chars: &[char], place: usize) -> bool {
    let Some(character) = chars.get(place) else { return false };
    let before = place.checked_sub(1).and_then(|before| chars.get(before));
    let after = chars.get(place + 1);
    match character {
        '\t' | '\n' | '\r' => false,
        // ZWNJ and ZWJ: between letters of Arabic, Persian and the scripts of India, and between emoji.
        '\u{200c}' | '\u{200d}' => !(before.is_some_and(|c| joins(*c)) && after.is_some_and(|c| joins(*c))),
        // How an emoji is drawn.
        '\u{fe0e}' | '\u{fe0f}' => !before.is_some_and(|c| is_emoji(*c) || matches!(c, '#' | '*' | '0'..='9')),
        // How an ideograph is drawn: one selector each.
        '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => !before.is_some_and(|c| is_ideograph(*c)),
        '\u{e0000}'..='\u{e007f}' => !is_in_flag(chars, place),
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' => true,
        other => other.is_control(),
    }
}

fn joins(character: char) -> bool {
    matches!(character, '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}')
        || is_emoji(character)
        || character == '\u{fe0f}'
}

fn is_emoji(character: char) -> bool {
    matches!(character, '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{27bf}' | '\u{2900}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// A black flag with at most six tags and the end tag: the flag of a region.
fn is_in_flag(chars: &[char], place: usize) -> bool {
    let tag = |c: &char| matches!(c, '\u{e0000}'..='\u{e007f}');
    let begin = chars[..place].iter().rposition(|c| !tag(c));
    let length = chars[place..].iter().take_while(|c| tag(c)).count();
    begin.is_some_and(|begin| {
        let tags = place + length - begin - 1;
        chars[begin] == '\u{1f3f4}' && (3..=7).contains(&tags) && chars[begin + tags] == '\u{e007f}'
    })
}
