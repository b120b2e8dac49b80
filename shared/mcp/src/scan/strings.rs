//! Pure
//!
//! Where a JSON string ends, and whether it is one. Payloads are mostly long strings: this is where the time goes.

use super::Fault;

/// How many bytes of a string are crossed by words.
const SHORT: usize = 48;
/// How many bytes of a string are judged together: as many as a word has bits.
const BLOCK: usize = 64;

/// Where a string ends whose inside begins at `at`. The first bytes are crossed by words, for most strings are short; then come
/// blocks, which cost more to begin with and less per byte; then the bytes that fill no block.
pub(super) fn end(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let at = match cross_words(bytes, at, at + SHORT)? {
        Place::End(end) => return Ok(end),
        Place::Inside(at) => at,
    };
    let at = match cross_blocks(bytes, at)? {
        Place::End(end) => return Ok(end),
        Place::Inside(at) => at,
    };
    match cross_words(bytes, at, usize::MAX)? {
        Place::End(end) => Ok(end),
        Place::Inside(_) => Err(Fault::Invalid),
    }
}

/// Where crossing a string has come to.
enum Place {
    /// Behind its closing quote.
    End(usize),
    /// In its inside, and not within an escape.
    Inside(usize),
}

/// Crosses the inside of a string eight plain bytes at a time, to `until` or a little further.
fn cross_words(bytes: &[u8], mut at: usize, until: usize) -> Result<Place, Fault> {
    while at < until {
        if let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let stops = stops(u64::from_le_bytes(*word));
            if stops == 0 {
                at += 8;
                continue;
            }
            at += stops.trailing_zeros() as usize / 8;
        }
        match bytes.get(at) {
            Some(b'"') => return Ok(Place::End(at + 1)),
            Some(b'\\') => at = escape_end(bytes, at + 1)?,
            Some(0..0x20) | None => return Err(Fault::Invalid),
            Some(_) => at += 1,
        }
    }
    Ok(Place::Inside(at))
}

/// Crosses the inside of a string in blocks, as far as whole ones go. The next block does not wait for what is found in this one, as
/// the next word above does: where escapes are dense, that is most of the time.
fn cross_blocks(bytes: &[u8], begin: usize) -> Result<Place, Fault> {
    let mut crossed = begin;
    let mut at = begin;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let mut stops = block_stops(block);
        while stops != 0 {
            let stop = at + stops.trailing_zeros() as usize;
            stops &= stops - 1;
            // What an escape has crossed is no quote and no backslash of the string's own.
            if stop < crossed {
                continue;
            }
            match bytes[stop] {
                b'"' => return Ok(Place::End(stop + 1)),
                b'\\' => crossed = escape_end(bytes, stop + 1)?,
                _ => return Err(Fault::Invalid),
            }
        }
        at += BLOCK;
    }
    Ok(Place::Inside(at.max(crossed)))
}

/// A bit for each byte of a block that is a quote, a backslash or a control character.
fn block_stops(block: &[u8; BLOCK]) -> u64 {
    // Two plain loops over arrays: the compiler makes vector instructions of the first.
    let mut is_stop = [0_u8; BLOCK];
    for (is_stop, byte) in is_stop.iter_mut().zip(block) {
        *is_stop = u8::from(*byte == b'"') | u8::from(*byte == b'\\') | u8::from(*byte < 0x20);
    }
    let mut stops = 0;
    for (place, word) in is_stop.as_chunks::<8>().0.iter().enumerate() {
        // Gathers the eight bytes, each 0 or 1, into the highest byte.
        let bits = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        stops |= bits << (8 * place);
    }
    stops
}

/// Where an escape ends whose letter is at `at`.
fn escape_end(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    match bytes.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => {
            let digits = bytes.get(at + 1..at + 5).ok_or(Fault::Invalid)?;
            if digits.iter().all(u8::is_ascii_hexdigit) { Ok(at + 5) } else { Err(Fault::Invalid) }
        }
        _ => Err(Fault::Invalid),
    }
}

/// The highest bit of each byte of a word that is a quote, a backslash or a control character. The lowest such bit is exact; those
/// above it may be set for nothing, for a borrow runs upwards.
const fn stops(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5c);
    let zero_byte = (quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (zero_byte | control) & HIGH
}
