//! Turns of classes: deficit round robin (Shreedhar, Varghese 1995), as Linux's `drr` and `ets` do it, and round
//! robin by packets.

use super::{Children, earlier};
use crate::discipline::{Dequeue, Draws, Sink};
use crate::packet::Packet;
use sojourn_units::Nanos;
use std::collections::VecDeque;

/// The least and the greatest quantum; a discipline clamps what it is given.
const QUANTUM: (u32, u32) = (256, 1 << 20);

/// Returns a quantum as it counts; without one it is a frame of the device.
pub(crate) fn quantum(given: u32, frame: u32) -> u32 {
    let quantum = if given == 0 { frame } else { given };
    quantum.clamp(QUANTUM.0, QUANTUM.1)
}

/// The classes that have packets, the next to be served first, and what each may still send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    active: VecDeque<usize>,
    deficits: Vec<u32>,
}

impl Rounds {
    /// Makes room for classes at the first `count` places.
    pub fn grow(&mut self, count: usize) {
        if self.deficits.len() < count {
            self.deficits.resize(count, 0);
        }
    }

    /// Returns whether the class at `place` is served in turn.
    pub fn is_active(&self, place: usize) -> bool {
        self.active.contains(&place)
    }

    /// Puts a class at the end of the round.
    pub fn add(&mut self, place: usize, quantum: u32) {
        self.active.push_back(place);
        self.deficits[place] = quantum;
    }

    /// Takes a class out of the round.
    pub fn remove(&mut self, place: usize) {
        self.active.retain(|active| *active != place);
    }

    /// Forgets a class.
    pub fn forget(&mut self, place: usize) {
        self.remove(place);
        self.deficits[place] = 0;
    }

    pub fn deficit(&self, place: usize) -> u32 {
        self.deficits.get(place).copied().unwrap_or_default()
    }

    /// Returns the places of the active classes in their order.
    pub fn active(&self) -> impl Iterator<Item = usize> + '_ {
        self.active.iter().copied()
    }

    /// Returns the next packet. A class that has none any more, since its own discipline dropped
    /// them, leaves the round; one that must wait stops it, as in Linux.
    pub fn serve<P: Packet>(
        &mut self,
        children: &mut Children<P>,
        now: Nanos,
        quantum: impl Fn(usize) -> u32,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        while let Some(&place) = self.active.front() {
            let length = match children.peek(place, now, draws, sink) {
                Dequeue::Packet(length) => length,
                Dequeue::Empty => {
                    self.active.pop_front();
                    continue;
                }
                Dequeue::NotBefore(time) => return children.wait(Some(time)),
            };
            if length <= self.deficits[place] {
                self.deficits[place] -= length;
                let given = children.dequeue(place, now, draws, sink);
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

    /// The next packet, where each class sends one in its turn. A class leaves the round when it is asked and has
    /// none, so its discipline learns that it is empty. One that must wait lets the others send.
    pub fn serve_packets<P: Packet>(
        &mut self,
        children: &mut Children<P>,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        let mut wait = None;
        for _ in 0..self.active.len() {
            let Some(place) = self.active.pop_front() else { break };
            match children.dequeue(place, now, draws, sink) {
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
