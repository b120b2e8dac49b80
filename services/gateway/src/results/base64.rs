//! Pure: base64 (RFC 4648) as servers send it.

use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    engine::{
        DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig,
        general_purpose::{STANDARD, STANDARD_NO_PAD},
    },
};

/// Characters that are looked at in one go. A multiple of four.
const CHUNK: usize = 4_096;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// How many bytes a text stands for that is base64 to the letter, padding included; `None` when it is not. Nothing is allocated.
pub(super) fn strict_len(text: &str) -> Option<usize> {
    let mut decoded = [0; CHUNK / 4 * 3];
    let mut length = 0;
    let mut chunks = text.as_bytes().chunks(CHUNK).peekable();
    while let Some(chunk) = chunks.next() {
        // Padding is for the end alone.
        let engine = if chunks.peek().is_some() { &STANDARD_NO_PAD } else { &STANDARD };
        length += engine.decode_slice(chunk, &mut decoded).ok()?;
    }
    Some(length)
}

/// The bytes of a text that is base64, also with line breaks, without padding, in the alphabet for URLs, or within a data URL.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    if let Ok(bytes) = STANDARD.decode(text) {
        return Some(bytes);
    }
    let text = match text.split_once(',') {
        Some((head, data)) if head.starts_with("data:") && head.ends_with(";base64") => data,
        _ => text,
    };
    let plain = |byte: u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        byte => byte,
    };
    let mut plain: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(plain).collect();
    let padding = plain.iter().rev().take_while(|byte| **byte == b'=').count();
    plain.truncate(plain.len() - padding.min(2));
    LENIENT.decode(plain).ok()
}

/// Bytes as base64 to the letter.
pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_servers_call_base64_is_read_and_what_is_not_is_refused() {
        for text in ["+/8A", "-_8A", "+/\r\n8A\n", "data:image/png;base64,+/8A", " +/8A "] {
            assert_eq!(decoded(text), Some(vec![0xfb, 0xff, 0]), "{text}");
        }
        for text in ["AA==", "AA", "AA=", "AB=="] {
            assert_eq!(decoded(text), Some(vec![0]), "{text}");
        }
        for text in ["A", "AAAAA", "AA=A", "A===", "!!!!", "é", "data:,AAAA", "AA====", "AAAA,AAAA"] {
            assert_eq!(decoded(text), None, "{text}");
        }
        assert_eq!(decoded(""), Some(Vec::new()));
    }

    #[test]
    fn only_the_letter_is_strict() {
        assert_eq!((strict_len("AAAA"), strict_len("AAA="), strict_len("")), (Some(3), Some(2), Some(0)));
        for text in ["AA", "AB==", "AA\n==", "-_8A"] {
            assert_eq!(strict_len(text), None, "{text}");
        }
        let long = "AA==".repeat(CHUNK / 2);
        assert_eq!(strict_len(&long), None);
    }

    proptest! {
        #[test]
        fn every_strict_text_is_decoded_to_its_length(bytes in proptest::collection::vec(any::<u8>(), 0..9_000)) {
            let text = encoded(&bytes);
            prop_assert_eq!(strict_len(&text), Some(bytes.len()));
            prop_assert_eq!(decoded(&text), Some(bytes));
        }

        #[test]
        fn whatever_is_strict_can_be_decoded(text in "[A-Z=+/_ -]{0,40}") {
            if let Some(length) = strict_len(&text) {
                prop_assert_eq!(decoded(&text).map(|bytes| bytes.len()), Some(length));
            }
        }
    }
}
