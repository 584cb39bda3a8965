//! Requests to a running wire.
//!
//! Requests come over a channel, and are answered between two turns of the loop; an event
//! descriptor wakes it. Listeners to the outside (a socket's thread) hold a [`Handle`].

use crate::record::Snapshot;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::{Deserialize, Serialize};
use sojourn_queue::Params;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// A change of a link; values that are not named stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Name of the link, one direction.
    pub link: String,
    /// Its rate in bit/s.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Impairments and delay in netem's words; they replace all there were.
    #[serde(default)]
    pub netem: Option<String>,
    /// The queue in tc's words: other parameters of the same discipline.
    #[serde(default)]
    pub queue: Option<String>,
    /// The queue's parameters as a plan has them, where words do not name it.
    #[serde(default)]
    pub params: Option<Params>,
}

/// A request, with where its answer goes.
#[derive(Debug)]
pub enum Request {
    /// End the run and keep what is measured.
    Stop,
    /// All counters now.
    Counters(Reply<Snapshot>),
    /// Change a link.
    Set(Box<Change>, Reply<Result<(), String>>),
}

/// Takes one answer, with or without a waiting caller.
#[derive(Debug)]
pub struct Reply<T>(SyncSender<T>);

impl<T> Reply<T> {
    /// Answers.
    pub fn send(self, answer: T) {
        drop(self.0.try_send(answer));
    }
}

/// The loop's side.
#[derive(Debug)]
pub struct Inbox {
    requests: Receiver<Request>,
    bell: Arc<OwnedFd>,
}

/// The others' side.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: Sender<Request>,
    bell: Arc<OwnedFd>,
}

/// Both sides of a channel to a wire.
///
/// # Errors
/// An event descriptor is not available.
pub fn connect() -> io::Result<(Handle, Inbox)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = channel();
    let handle = Handle { requests: sender, bell: Arc::clone(&bell) };
    Ok((handle, Inbox { requests: receiver, bell }))
}

impl Inbox {
    /// Readable when something was asked.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Returns the next request, if there is one.
    pub fn take(&mut self) -> Option<Request> {
        let request = self.requests.try_recv().ok();
        if request.is_none() {
            // Reset first, then look again: a request may have come in between.
            let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
            return self.requests.try_recv().ok();
        }
        request
    }
}

impl Handle {
    fn ask(&self, request: Request) -> bool {
        let sent = self.requests.send(request).is_ok();
        // The counter is full only if the loop is asked already.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        sent
    }

    /// Ends the run. False if it has ended.
    pub fn stop(&self) -> bool {
        self.ask(Request::Stop)
    }

    /// Returns all counters; `None` if the run has ended.
    pub fn counters(&self) -> Option<Snapshot> {
        let (sender, receiver) = sync_channel(1);
        self.ask(Request::Counters(Reply(sender)));
        receiver.recv().ok()
    }

    /// Changes a link.
    ///
    /// # Errors
    /// The link is unknown, its words cannot be read, the change is not possible, or the run has
    /// ended; nothing is changed then.
    pub fn set(&self, change: Change) -> Result<(), String> {
        let (sender, receiver) = sync_channel(1);
        self.ask(Request::Set(Box::new(change), Reply(sender)));
        receiver.recv().unwrap_or_else(|_| Err("the wire has ended".to_owned()))
    }
}
