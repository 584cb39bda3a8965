//! Requests to a running wire.
//!
//! Requests are sent over a channel and answered between two turns of the loop. An event descriptor
//! wakes the loop. A program that sends requests, such as the thread of a control socket, has a
//! [`Handle`].

use crate::record::Snapshot;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::{Deserialize, Serialize};
use sojourn_queue::Params;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// A change of a link. Values that are `None` stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Name of the link, which is one direction of a connection.
    pub link: String,
    /// New rate in bit/s.
    #[serde(default)]
    pub rate: Option<u64>,
    /// New impairments and delay in netem's syntax; they replace all previous ones.
    #[serde(default)]
    pub netem: Option<String>,
    /// New parameters of the queue in `tc`'s syntax. The queue discipline must be the same.
    #[serde(default)]
    pub queue: Option<String>,
    /// New parameters of the queue in a plan's form, for queues that have no `tc` syntax.
    #[serde(default)]
    pub params: Option<Params>,
}

/// A request to a running wire, with the channel for its answer.
#[derive(Debug)]
pub enum Request {
    /// Ends the run and keeps its measurements.
    Stop,
    /// Asks for all counters at the current time.
    Counters(Reply<Snapshot>),
    /// Changes a link.
    Set(Box<Change>, Reply<Result<(), String>>),
}

/// Sender of one answer. The answer is discarded if the caller no longer waits.
#[derive(Debug)]
pub struct Reply<T>(SyncSender<T>);

impl<T> Reply<T> {
    /// Sends the answer.
    pub fn send(self, answer: T) {
        drop(self.0.try_send(answer));
    }
}

/// The end of the channel that belongs to the wire's loop.
#[derive(Debug)]
pub struct Inbox {
    requests: Receiver<Request>,
    bell: Arc<OwnedFd>,
}

/// Sending end of the channel of requests to a wire.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: Sender<Request>,
    bell: Arc<OwnedFd>,
}

/// Returns both ends of a new channel to a wire.
///
/// # Errors
/// If the system provides no event descriptor.
pub fn connect() -> io::Result<(Handle, Inbox)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = channel();
    let handle = Handle { requests: sender, bell: Arc::clone(&bell) };
    Ok((handle, Inbox { requests: receiver, bell }))
}

impl Inbox {
    /// Returns the event descriptor, which is readable if a request may wait.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Returns the next request; `None` if no request waits.
    pub fn take(&mut self) -> Option<Request> {
        let request = self.requests.try_recv().ok();
        if request.is_none() {
            // Reset the event descriptor first, then check again: a request may have arrived in
            // between.
            let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
            return self.requests.try_recv().ok();
        }
        request
    }
}

impl Handle {
    fn ask(&self, request: Request) -> bool {
        let sent = self.requests.send(request).is_ok();
        // The write fails only if the counter is full, and then the loop is already being woken.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        sent
    }

    /// Ends the run. Returns false if the run has already ended.
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
    /// If the wire has no such link, the netem or queue text is invalid, the change is not
    /// possible, or the run has ended. Nothing is changed in these cases.
    pub fn set(&self, change: Change) -> Result<(), String> {
        let (sender, receiver) = sync_channel(1);
        self.ask(Request::Set(Box::new(change), Reply(sender)));
        receiver.recv().unwrap_or_else(|_| Err("the wire has ended".to_owned()))
    }
}
