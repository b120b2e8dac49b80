//! Starts processes from a thread that never ends.
//!
//! A process that is to die with its owner dies, for the kernel, with the *thread* that started it (`prctl(2)`, `PR_SET_PDEATHSIG`):
//! the threads of a runtime come and go, this one stays.

use std::{io, thread};

use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::{mpsc, oneshot},
};

/// Most starts that wait.
const MOST_WAITING: usize = 64;

type Start = (Command, Handle, oneshot::Sender<io::Result<Child>>);

/// The thread. It ends when this is dropped, and what it has started ends with it.
#[derive(Debug)]
pub(crate) struct Spawner(mpsc::Sender<Start>);

impl Spawner {
    pub(crate) fn new() -> Self {
        let (starts, mut waiting) = mpsc::channel::<Start>(MOST_WAITING);
        thread::spawn(move || {
            while let Some((mut command, runtime, started)) = waiting.blocking_recv() {
                let entered = runtime.enter();
                // Who asked may have gone away; the child is killed when it is dropped.
                let _ = started.send(command.kill_on_drop(true).spawn());
                drop(entered);
            }
        });
        Self(starts)
    }

    pub(crate) async fn spawn(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the thread that starts processes has ended");
        let (started, start) = oneshot::channel();
        self.0.send((command, Handle::current(), started)).await.map_err(|_| gone())?;
        start.await.map_err(|_| gone())?
    }
}
