//! Rust source with the insides of strings, characters and comments blanked out, so that rules see code only.

/// What the scanner is inside of.
enum State {
    Code,
    Line,
    Block(usize),
    /// An ordinary string; a backslash hides the next character.
    Text,
    /// A raw string with this many hashes.
    Raw(usize),
}

/// Returns `source` with strings, character literals and comments replaced by blanks. Lines and columns stay the same.
pub(crate) fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut masked = String::with_capacity(source.len());
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let (next, length) = step(&state, &chars, at);
        let keep = matches!((&state, &next), (State::Code, State::Code)) && length == 1;
        for &hidden in &chars[at..at + length] {
            masked.push(if keep || hidden == '\n' { hidden } else { ' ' });
        }
        at += length;
        state = next;
    }
    masked
}

/// The state after the token at `at`, and how many characters that token has.
fn step(state: &State, chars: &[char], at: usize) -> (State, usize) {
    let here = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    match state {
        State::Line => (if here(0) == '\n' { State::Code } else { State::Line }, 1),
        State::Block(depth) => match (here(0), here(1)) {
            ('*', '/') if *depth == 1 => (State::Code, 2),
            ('*', '/') => (State::Block(depth - 1), 2),
            ('/', '*') => (State::Block(depth + 1), 2),
            _ => (State::Block(*depth), 1),
        },
        State::Text => match here(0) {
            '\\' => (State::Text, 2.min(chars.len() - at)),
            '"' => (State::Code, 1),
            _ => (State::Text, 1),
        },
        State::Raw(hashes) => {
            let ends = here(0) == '"' && (1..=*hashes).all(|offset| here(offset) == '#');
            if ends { (State::Code, 1 + hashes) } else { (State::Raw(*hashes), 1) }
        }
        State::Code => begin(chars, at),
    }
}

/// What begins at `at`, which is code.
fn begin(chars: &[char], at: usize) -> (State, usize) {
    let here = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match here(0) {
        '/' if here(1) == '/' => (State::Line, 2),
        '/' if here(1) == '*' => (State::Block(1), 2),
        '"' => (State::Text, 1),
        'r' if !in_word || chars[at - 1] == 'b' => {
            let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
            if here(1 + hashes) == '"' { (State::Raw(hashes), 2 + hashes) } else { (State::Code, 1) }
        }
        '\'' => match (here(1), here(2)) {
            // A character literal; anything else that starts with a quote is a lifetime.
            ('\\', _) => {
                let length = chars[at + 3..].iter().position(|&c| c == '\'').map_or(1, |end| end + 4);
                (State::Code, length)
            }
            (_, '\'') => (State::Code, 3),
            _ => (State::Code, 1),
        },
        _ => (State::Code, 1),
    }
}

/// Byte offsets at which `word` stands as a whole word.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| !text[..at].ends_with(joins) && !text[at + word.len()..].starts_with(joins))
}

/// The line, counted from 1, of a byte offset.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Offset of the bracket that closes the one at `open`.
pub(crate) fn closing(masked: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, c) in masked[open..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + offset);
        }
    }
    None
}
