//! Messages of a client, from their creation until all fragments have been acknowledged.
//!
//! Memory of messages is reused, so that a client that sends steadily does not allocate memory.

use crate::fragments::{Fragments, fragments};
use sojourn_units::Bytes;
use std::collections::VecDeque;

/// A message that is not completely acknowledged.
#[derive(Default)]
pub(crate) struct Message {
    pub(crate) data: Vec<u8>,
    /// The acknowledged fragments.
    fragments: Fragments,
    /// Number of the first fragment that has never been sent.
    pub(crate) next: u32,
}

impl Message {
    pub(crate) fn is_missing(&self, index: u32) -> bool {
        self.fragments.is_missing(index)
    }
}

/// Messages with consecutive numbers.
pub(crate) struct Outgoing {
    first: u64,
    items: VecDeque<Option<Message>>,
    queued: Bytes,
    spare: Vec<Message>,
    spared: Bytes,
    /// Maximum memory that is kept for later messages, in bytes.
    most: Bytes,
}

impl Outgoing {
    pub(crate) fn new(most: Bytes) -> Self {
        Self { first: 0, items: VecDeque::new(), queued: 0, spare: Vec::new(), spared: 0, most }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the total length of all messages in bytes.
    pub(crate) fn queued(&self) -> Bytes {
        self.queued
    }

    /// Returns the number of the oldest message; if there is no message, the number of the next
    /// one.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number that the next message will have.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    fn place(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).map(|i| i as usize)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Message> {
        self.items.get(self.place(number)?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Message> {
        let i = self.place(number)?;
        self.items.get_mut(i)?.as_mut()
    }

    /// Adds the message `data` of `length` bytes, with `chunk` bytes in each fragment except the
    /// last.
    pub(crate) fn push(&mut self, data: Vec<u8>, length: u32, chunk: u16) {
        let spare = self.spare.last_mut().map(|m| std::mem::take(&mut m.fragments));
        let fragments = spare.unwrap_or_default().renewed(fragments(length, chunk));
        self.queued += Bytes::from(length);
        self.items.push_back(Some(Message { data, fragments, next: 0 }));
    }

    /// Returns the memory of an acknowledged message, which still holds its content; empty memory
    /// if none is kept.
    pub(crate) fn spare(&mut self) -> Vec<u8> {
        let data = self.spare.pop().map_or(Vec::new(), |m| m.data);
        self.spared = self.spared.saturating_sub(data.capacity() as Bytes);
        data
    }

    /// Records the acknowledgement of a fragment. Returns the message's length if this was the last
    /// missing fragment.
    pub(crate) fn settle(&mut self, number: u64, index: u32) -> Option<Bytes> {
        let i = self.place(number)?;
        let m = self.items.get_mut(i)?.as_mut()?;
        if !m.fragments.add(index) || !m.fragments.is_complete() {
            return None;
        }
        let m = self.items[i].take()?;
        let length = m.data.len() as Bytes;
        self.queued -= length;
        let capacity = m.data.capacity() as Bytes;
        if self.spared + capacity <= self.most {
            self.spared += capacity;
            self.spare.push(m);
        }
        while let Some(None) = self.items.front() {
            self.items.pop_front();
            self.first += 1;
        }
        Some(length)
    }
}
