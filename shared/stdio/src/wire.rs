//! What the owner, the supervisor and the stage tell each other over a socket: first a document with open files, then lines.

use std::{
    io::{self, IoSlice, IoSliceMut, Read as _, Write as _},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Status, Usage, Why};

/// Largest document.
const DOCUMENT_BYTES: usize = 4 << 20;
/// Most open files that come with one.
const MOST_FILES: usize = 4;

/// To the supervisor: end the program gently.
pub(crate) const TERMINATE: u8 = b't';
/// To the supervisor: end everything now. So does closing the socket.
pub(crate) const KILL: u8 = b'k';

/// From the supervisor, one to a line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The program has been executed; the process at the root of its tree.
    Started(i32),
    /// It has not, in words.
    Failed(String),
    /// What it uses.
    Usage(Usage),
    /// It has ended, and all its children.
    Ended { status: Status, why: Option<Why> },
}

/// Sends a document and open files.
pub(crate) fn send(mut socket: &UnixStream, document: &impl Serialize, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let body = serde_json::to_vec(document)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= DOCUMENT_BYTES);
    let header = length.ok_or_else(|| io::Error::other("its command and environment are too large"))?.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::other("too many open files for one document"));
    }
    if sendmsg(socket.as_fd(), &[IoSlice::new(&header)], &mut control, SendFlags::NOSIGNAL)? != header.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    socket.write_all(&body)
}

/// Receives a document and open files.
pub(crate) fn receive<D: DeserializeOwned>(mut socket: &UnixStream) -> io::Result<(D, Vec<OwnedFd>)> {
    let mut header = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut header)];
    let got = recvmsg(socket.as_fd(), &mut parts, &mut control, RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC)?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    let length = u32::from_le_bytes(header) as usize;
    if got.bytes != header.len() || length > DOCUMENT_BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    Ok((serde_json::from_slice(&body)?, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_arrives_with_its_open_files() {
        let (near, far) = UnixStream::pair().unwrap();
        let (end, mut start) = std::io::pipe().unwrap();
        send(&near, &vec!["a", "b"], &[end.as_fd()]).unwrap();
        drop(end);
        let (document, files): (Vec<String>, _) = receive(&far).unwrap();
        assert_eq!((document.join(" ").as_str(), files.len()), ("a b", 1));
        start.write_all(b"x").unwrap();
        drop(start);
        let mut read = String::new();
        std::fs::File::from(files.into_iter().next().unwrap()).read_to_string(&mut read).unwrap();
        assert_eq!(read, "x");
        drop(near);
        assert!(receive::<String>(&far).is_err());
    }
}
