//! A client's messages until all of their fragments have been acknowledged.
//!
//! Memory is reused, so steady sending does not allocate.

use crate::server::fragments;
use sojourn_units::Bytes;
use std::collections::VecDeque;

/// A message in flight.
#[derive(Default)]
pub(crate) struct Message {
    pub(crate) data: Vec<u8>,
    /// Acknowledged fragments.
    have: Vec<u64>,
    missing: u32,
    /// Fragments that have been sent at least once.
    pub(crate) next: u32,
}

impl Message {
    pub(crate) fn is_missing(&self, index: u32) -> bool {
        self.have[(index / 64) as usize] & (1 << (index % 64)) == 0
    }
}

/// Messages by their consecutive numbers.
pub(crate) struct Outgoing {
    first: u64,
    items: VecDeque<Option<Message>>,
    queued: Bytes,
    spare: Vec<Message>,
    spared: Bytes,
    /// Largest amount of memory kept for later messages, in bytes.
    most: Bytes,
}

impl Outgoing {
    pub(crate) fn new(most: Bytes) -> Self {
        Self { first: 0, items: VecDeque::new(), queued: 0, spare: Vec::new(), spared: 0, most }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the bytes of all messages.
    pub(crate) fn queued(&self) -> Bytes {
        self.queued
    }

    /// Returns the number of the oldest message, or of the next if there is no message.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of the next message.
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

    /// Adds a message of `length` bytes.
    pub(crate) fn push(&mut self, data: Vec<u8>, length: u32, chunk: u16) {
        let missing = fragments(length, chunk);
        let mut have = self.spare.last_mut().map_or(Vec::new(), |m| std::mem::take(&mut m.have));
        have.clear();
        have.resize(missing.div_ceil(64) as usize, 0);
        self.queued += Bytes::from(length);
        self.items.push_back(Some(Message { data, have, missing, next: 0 }));
    }

    /// Returns memory of a finished message with its old content; empty without one.
    pub(crate) fn spare(&mut self) -> Vec<u8> {
        let data = self.spare.pop().map_or(Vec::new(), |m| m.data);
        self.spared = self.spared.saturating_sub(data.capacity() as Bytes);
        data
    }

    /// Records an acknowledged fragment. Returns the message's length if it was the last one.
    pub(crate) fn settle(&mut self, number: u64, index: u32) -> Option<Bytes> {
        let i = self.place(number)?;
        let m = self.items.get_mut(i)?.as_mut()?;
        if !m.is_missing(index) {
            return None;
        }
        m.have[(index / 64) as usize] |= 1 << (index % 64);
        m.missing -= 1;
        if m.missing > 0 {
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
