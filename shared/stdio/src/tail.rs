//! The end of what a program writes to stderr.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use gatehouse_types::shown;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Most lines that are kept.
pub const LINES: usize = 200;
/// Longest line that is shown, in characters.
const LINE_CHARS: usize = 500;
/// Longest line that is kept, in bytes; the rest of it is forgotten.
const LINE_BYTES: usize = 4 << 10;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// What stands in place of a secret.
const MASK: &str = "•••";
/// A value shorter than this is no secret: it would be found everywhere.
const SHORTEST_SECRET: usize = 4;

/// The last lines. They are masked when they are asked for: a program that writes without end costs nothing but reading.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    lines: Arc<Mutex<VecDeque<Vec<u8>>>>,
    secrets: Arc<Vec<SecretString>>,
}

impl Tail {
    /// Masks these values, each line of those that have several for itself.
    pub(crate) fn new(values: impl IntoIterator<Item = SecretString>) -> Self {
        let lines = |value: SecretString| value.expose_secret().lines().map(SecretString::from).collect::<Vec<_>>();
        let mut secrets: Vec<SecretString> = values.into_iter().flat_map(lines).collect();
        secrets.retain(|secret| secret.expose_secret().len() >= SHORTEST_SECRET);
        // What is part of another one would leave the rest of it.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        Self { lines: Arc::default(), secrets: Arc::new(secrets) }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lines.iter().map(|line| self.shown(line)).collect()
    }

    /// Reads to the end. A program that writes without end is read without end, and what it wrote first is forgotten.
    pub(crate) async fn read(self, mut stderr: impl AsyncRead + Unpin) {
        let mut line: Vec<u8> = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            let mut rest = &chunk[..count];
            while let Some(end) = memchr::memchr(b'\n', rest) {
                extend(&mut line, &rest[..end]);
                self.push(std::mem::take(&mut line));
                rest = &rest[end + 1..];
            }
            extend(&mut line, rest);
        }
        self.push(line);
    }

    /// Adds lines that came another way.
    pub(crate) fn add(&self, text: &str) {
        for part in text.lines() {
            let mut line = Vec::new();
            extend(&mut line, part.as_bytes());
            self.push(line);
        }
    }

    fn push(&self, line: Vec<u8>) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn shown(&self, line: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(line).into_owned();
        for secret in self.secrets.iter().map(ExposeSecret::expose_secret) {
            text = text.replace(secret, MASK);
            // A line that was cut may end within a secret.
            if line.len() == LINE_BYTES
                && let Some(begun) = (SHORTEST_SECRET..secret.len()).rev().find(|&at| ends_with_part(&text, secret, at))
            {
                text.truncate(text.len() - begun);
            }
        }
        shown::line(&text, LINE_CHARS)
    }
}

fn ends_with_part(text: &str, secret: &str, length: usize) -> bool {
    secret.get(..length).is_some_and(|part| text.ends_with(part))
}

fn extend(line: &mut Vec<u8>, part: &[u8]) {
    let room = LINE_BYTES - line.len();
    line.extend_from_slice(&part[..part.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail(text: &str, secrets: &[&str]) -> Vec<String> {
        let tail = Tail::new(secrets.iter().map(|&secret| SecretString::from(secret)));
        tail.clone().read(text.as_bytes()).await;
        tail.lines()
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_without_secrets_and_bounded() {
        let text =
            format!("first\n{}\n\n  \n", "x".repeat(30_000)) + &"noise\n".repeat(LINES) + "key=s3cr3t \u{202e}end";
        let lines = tail(&text, &["s3cr3t", "no"]).await;
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "noise"));
        let last = lines.last().unwrap();
        assert!(last.starts_with("key=•••") && !last.contains('\u{202e}'), "{last}");
        let long = tail(&("y".repeat(90_000) + "\nz"), &[]).await;
        assert_eq!(long.iter().map(|line| line.chars().count()).collect::<Vec<_>>(), [500, 1]);
    }

    #[tokio::test]
    async fn no_part_of_a_secret_is_left_by_a_line_break_a_cut_or_another_secret() {
        assert_eq!(
            tail("a: one-half two-half\nother-half", &["one-half\nother-half"]).await,
            ["a: ••• two-half", "•••"]
        );
        assert_eq!(tail("token abcd-efgh", &["abcd", "abcd-efgh"]).await, ["token •••"]);
        let secret = "s".repeat(4_000) + "t";
        let cut = tail(&(secret.clone() + &secret), &[&secret]).await;
        assert!(!cut[0].contains("ssss"), "{cut:?}");
    }
}
