//! Round robin of classes: deficit round robin (Shreedhar, Varghese 1995) as in Linux's `drr` and
//! `ets`, and round robin by packets.

use super::{Children, earlier};
use crate::discipline::{Call, Dequeue, Draws, Sink};
use crate::packet::Packet;
use std::collections::VecDeque;

/// Minimum and maximum of a quantum, in bytes; a value outside is clamped.
const QUANTUM: (u32, u32) = (256, 1 << 20);

/// Returns the effective quantum in bytes; 0 means the largest frame of the device.
pub(crate) fn quantum(given: u32, frame: u32) -> u32 {
    let quantum = if given == 0 { frame } else { given };
    quantum.clamp(QUANTUM.0, QUANTUM.1)
}

/// Active classes in the order of service, and the deficit of each class in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    active: VecDeque<usize>,
    deficits: Vec<u32>,
}

impl Rounds {
    /// Extends the deficits to `count` places.
    pub fn grow(&mut self, count: usize) {
        if self.deficits.len() < count {
            self.deficits.resize(count, 0);
        }
    }

    /// Returns whether the class at `place` is in the round.
    pub fn is_active(&self, place: usize) -> bool {
        self.active.contains(&place)
    }

    /// Adds a class to the end of the round with a deficit of one quantum.
    pub fn add(&mut self, place: usize, quantum: u32) {
        self.active.push_back(place);
        self.deficits[place] = quantum;
    }

    /// Removes a class from the round.
    pub fn remove(&mut self, place: usize) {
        self.active.retain(|active| *active != place);
    }

    /// Removes a class from the round and resets its deficit.
    pub fn forget(&mut self, place: usize) {
        self.remove(place);
        self.deficits[place] = 0;
    }

    pub fn deficit(&self, place: usize) -> u32 {
        self.deficits.get(place).copied().unwrap_or_default()
    }

    /// Returns the places of the active classes, in the order of service.
    pub fn active(&self) -> impl Iterator<Item = usize> + '_ {
        self.active.iter().copied()
    }

    /// Returns the next packet by deficit round robin. A class without packets, because its
    /// discipline has dropped them, leaves the round. A class that is a shaper and must wait stops
    /// the round, as in Linux.
    pub fn serve<P: Packet>(
        &mut self,
        children: &mut Children<P>,
        quantum: impl Fn(usize) -> u32,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Dequeue<P> {
        while let Some(&place) = self.active.front() {
            let length = match children.peek(place, call) {
                Dequeue::Packet(length) => length,
                Dequeue::Empty => {
                    self.active.pop_front();
                    continue;
                }
                Dequeue::NotBefore(time) => return children.wait(Some(time)),
            };
            if length <= self.deficits[place] {
                self.deficits[place] -= length;
                let given = children.dequeue(place, call);
                if children.is_empty(place) {
                    self.active.pop_front();
                }
                return given;
            }
            self.deficits[place] = self.deficits[place].wrapping_add(quantum(place));
            self.active.rotate_left(1);
        }
        Dequeue::Empty
    }

    /// Returns the next packet by round robin, one packet per class and turn. A class leaves the
    /// round when a dequeue finds it empty, so that its discipline observes the empty queue. A
    /// class that is a shaper and must wait is skipped.
    pub fn serve_packets<P: Packet>(
        &mut self,
        children: &mut Children<P>,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Dequeue<P> {
        let mut wait = None;
        for _ in 0..self.active.len() {
            let Some(place) = self.active.pop_front() else { break };
            match children.dequeue(place, call) {
                Dequeue::Packet(packet) => {
                    self.active.push_back(place);
                    return Dequeue::Packet(packet);
                }
                Dequeue::Empty => {}
                Dequeue::NotBefore(time) => {
                    self.active.push_back(place);
                    wait = Some(earlier(wait, time));
                }
            }
        }
        children.wait(wait)
    }
}
