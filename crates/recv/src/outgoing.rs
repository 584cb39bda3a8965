//! A client's messages until all of their fragments have been acknowledged.
//!
//! Their memory is used again: what is sent steadily allocates nothing.

use crate::server::fragments;
use sojourn_units::Bytes;
use std::collections::VecDeque;

/// A message under way.
#[derive(Default)]
pub(crate) struct Message {
    pub(crate) data: Vec<u8>,
    /// Which fragments have been acknowledged.
    have: Vec<u64>,
    missing: u32,
    /// Fragments that have been sent once.
    pub(crate) next: u32,
}

impl Message {
    pub(crate) fn is_missing(&self, index: u32) -> bool {
        self.have[(index / 64) as usize] & (1 << (index % 64)) == 0
    }
}

/// Messages by their numbers, which follow each other.
pub(crate) struct Outgoing {
    first: u64,
    items: VecDeque<Option<Message>>,
    queued: Bytes,
    spare: Vec<Message>,
    spared: Bytes,
    /// Bytes of memory kept for later messages at most.
    most: Bytes,
}

impl Outgoing {
    pub(crate) fn new(most: Bytes) -> Self {
        Self { first: 0, items: VecDeque::new(), queued: 0, spare: Vec::new(), spared: 0, most }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of all messages.
    pub(crate) fn queued(&self) -> Bytes {
        self.queued
    }

    /// The oldest message, or the next if there is none.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Number of the message that is put in next.
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

    /// Puts a message of `length` bytes in.
    pub(crate) fn push(&mut self, data: Vec<u8>, length: u32, chunk: u16) {
        let missing = fragments(length, chunk);
        let mut have = self.spare.last_mut().map_or(Vec::new(), |m| std::mem::take(&mut m.have));
        have.clear();
        have.resize(missing.div_ceil(64) as usize, 0);
        self.queued += Bytes::from(length);
        self.items.push_back(Some(Message { data, have, missing, next: 0 }));
    }

    /// Memory of a message that is over, with what it held; empty if there is none.
    pub(crate) fn spare(&mut self) -> Vec<u8> {
        let data = self.spare.pop().map_or(Vec::new(), |m| m.data);
        self.spared = self.spared.saturating_sub(data.capacity() as Bytes);
        data
    }

    /// A fragment has been acknowledged: the message's length if that was the last of it.
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
