//! The end of what a program writes to stderr.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use gatehouse_types::shown;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Most lines that are kept.
pub const LINES: usize = 200;
/// Longest line that is kept, in characters.
const LINE_CHARS: usize = 500;
/// Longest line that is read, in bytes; what follows is a line of its own.
const LINE_BYTES: usize = 8 << 10;
/// What stands in place of a secret.
const MASK: &str = "•••";
/// A value shorter than this is no secret: it would be found everywhere.
const SHORTEST_SECRET: usize = 4;

/// The last lines, without the program's secrets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn push(&self, line: &str, secrets: &[SecretString]) {
        let line = masked(line, secrets);
        if line.trim().is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(shown::line(&line, LINE_CHARS));
    }

    /// Reads to the end. A program that writes without end is read without end, and what it wrote first is forgotten.
    pub(crate) async fn read(self, mut stderr: impl AsyncRead + Unpin, secrets: Vec<SecretString>) {
        let mut buffer: Vec<u8> = Vec::with_capacity(LINE_BYTES);
        let mut chunk = [0; 4_096];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            for byte in &chunk[..count] {
                if *byte == b'\n' || buffer.len() == LINE_BYTES {
                    self.push(&String::from_utf8_lossy(&buffer), &secrets);
                    buffer.clear();
                }
                if *byte != b'\n' {
                    buffer.push(*byte);
                }
            }
        }
        self.push(&String::from_utf8_lossy(&buffer), &secrets);
    }
}

/// A line without secrets.
fn masked(line: &str, secrets: &[SecretString]) -> String {
    let mut line = line.to_owned();
    for secret in secrets {
        // A value of several lines is printed line by line.
        for part in secret.expose_secret().lines().filter(|part| part.len() >= SHORTEST_SECRET) {
            if line.contains(part) {
                line = line.replace(part, MASK);
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_without_secrets_and_bounded() {
        let text =
            format!("first\n{}\n\n  \n", "x".repeat(30_000)) + &"noise\n".repeat(LINES) + "key=s3cr3t \u{202e}end";
        let tail = Tail::default();
        tail.clone().read(text.as_bytes(), vec![SecretString::from("s3cr3t"), SecretString::from("no")]).await;
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "noise"));
        let last = lines.last().unwrap();
        assert!(last.starts_with("key=•••") && !last.contains('\u{202e}'), "{last}");
        let long = Tail::default();
        long.clone().read("y".repeat(9_000).as_bytes(), Vec::new()).await;
        assert_eq!(long.lines().iter().map(|line| line.chars().count()).collect::<Vec<_>>(), [500, 500]);
    }
}
