//! Classes of which the first are served in order, and the others in turn: `prio`, `ets`, `drr` and `mq`.

use super::Children;
use super::children::earlier;
use super::classful::Classful;
use super::rounds::Rounds;
use super::tree::ClassParams;
use crate::declaration::Configured;
use crate::discipline::{Dequeue, Discipline, Draws, Return, Sink};
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use sojourn_units::Nanos;
use std::collections::BTreeMap;

/// Bands at most, where a discipline has a class for each band.
pub(crate) const BANDS: usize = 16;

/// How classes take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// They do not: all are served in order.
    None,
    /// By bytes: each has a deficit. One that must wait stops the others.
    Bytes,
    /// By packets: each sends one. One that must wait lets the others send.
    Packets,
}

/// Parameters of a discipline that serves its classes in order or in turn.
pub trait Ranked: Classful {
    /// How its classes take turns.
    const TURNS: Turns;

    /// Returns the numbers of its classes; classes served in order keep their places in it.
    fn ids(&self) -> Vec<u16>;

    /// Returns the classes up to this number are served in order, before all others.
    fn strict(&self) -> u16;

    /// Bytes that a class may send in its turn.
    fn turn(&self, id: u16) -> u32;

    /// Returns the class of a packet; `has` says which classes there are.
    fn class_of<P: Packet>(
        &self,
        packet: &P,
        sink: &impl Sink<P>,
        has: impl Fn(u16) -> bool,
    ) -> Option<u16>;
}

/// How a class is served: in strict order, or in turns.
#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    id: u16,
    is_strict: bool,
    /// Bytes of a turn.
    turn: u32,
}

/// Classes that are served in order, and classes that take turns while those have no packets.
#[derive(Clone, Debug)]
pub struct Scheduler<P, D> {
    params: D,
    children: Children<P>,
    rounds: Rounds,
    /// Places of classes by their number.
    places: BTreeMap<u16, usize>,
    /// By place.
    ranks: Vec<Rank>,
    /// Places of the classes that are served in order.
    strict: Vec<usize>,
}

impl<P: Packet, D: Ranked> Scheduler<P, D> {
    fn place(&self, packet: &P, sink: &impl Sink<P>) -> Option<usize> {
        let class = self.params.class_of(packet, sink, |id| self.places.contains_key(&id))?;
        self.places.get(&class).copied()
    }

    /// Makes the classes that are not there, and takes over how all are served: one that takes turns from now on
    /// and has packets goes to the end of the round.
    fn rank(&mut self, now: Nanos) {
        self.strict.clear();
        for id in self.params.ids() {
            let place = match self.places.get(&id) {
                Some(place) => *place,
                None => self.children.add(self.params.tree().child(id), now),
            };
            self.places.insert(id, place);
            self.rounds.grow(place + 1);
            if self.ranks.len() <= place {
                self.ranks.resize(place + 1, Rank::default());
            }
            let is_strict = id <= self.params.strict();
            let rank = Rank { id, is_strict, turn: self.params.turn(id) };
            let before = std::mem::replace(&mut self.ranks[place], rank);
            if is_strict {
                self.strict.push(place);
                self.rounds.remove(place);
            } else if before.is_strict && !self.children.is_empty(place) {
                self.rounds.add(place, rank.turn);
            }
        }
    }
}

impl<P: Packet, D: Ranked> Configured<P, D> for Scheduler<P, D> {
    fn new(params: D, now: Nanos) -> Self {
        let mut scheduler = Self {
            params,
            children: Children::default(),
            rounds: Rounds::default(),
            places: BTreeMap::new(),
            ranks: Vec::new(),
            strict: Vec::new(),
        };
        scheduler.rank(now);
        scheduler
    }

    fn params(&self) -> &D {
        &self.params
    }

    /// Replaces the parameters. Classes that are no more lose their packets; bytes of a turn count from the next
    /// one on.
    fn change(&mut self, params: D, now: Nanos, sink: &mut impl Sink<P>) {
        let before = std::mem::replace(&mut self.params, params).ids();
        let after = self.params.ids();
        for id in before.iter().filter(|id| !after.contains(id)) {
            let Some(place) = self.places.remove(id) else { continue };
            self.rounds.forget(place);
            self.children.remove(place, now, sink);
            self.ranks[place] = Rank::default();
        }
        for id in after {
            if let Some(place) = self.places.get(&id) {
                self.children.change(*place, &self.params.tree().child(id), now, sink);
            }
        }
        self.rank(now);
    }
}

viewed!(Scheduler<D: Ranked> in children);

impl<P: Packet, D: Ranked> Discipline<P> for Scheduler<P, D> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let Some(place) = self.place(&packet, sink) else {
            return self.children.refuse(packet, sink);
        };
        let given = self.children.enqueue(place, now, packet, draws, sink);
        let Rank { is_strict, turn, .. } = self.ranks[place];
        if !is_strict && !self.children.is_empty(place) && !self.rounds.is_active(place) {
            self.rounds.add(place, turn);
        }
        given
    }

    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        self.children.begin();
        let mut wait = None;
        for place in &self.strict {
            match self.children.dequeue(*place, now, draws, sink) {
                Dequeue::Packet(packet) => return Dequeue::Packet(packet),
                Dequeue::Empty => {}
                Dequeue::NotBefore(time) => wait = Some(earlier(wait, time)),
            }
        }
        let turn = |place: usize| self.ranks[place].turn;
        let given = match D::TURNS {
            Turns::Packets => self.rounds.serve_packets(&mut self.children, now, draws, sink),
            _ => self.rounds.serve(&mut self.children, now, turn, draws, sink),
        };
        match given {
            Dequeue::Packet(packet) => Dequeue::Packet(packet),
            Dequeue::Empty => self.children.wait(wait),
            Dequeue::NotBefore(time) => self.children.wait(Some(earlier(wait, time))),
        }
    }

    fn wake_up(&self) -> Option<Nanos> {
        self.children.wake_up()
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.children.next_timer()
    }

    fn on_timer(&mut self, now: Nanos) {
        self.children.on_timer(now);
    }

    fn state(&self, _visit: &mut dyn FnMut(&'static str, i128)) {}

    /// Visits the state of a class, by its number. All possible bands have one.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        let place = u16::try_from(flow).ok().and_then(|id| self.places.get(&id).copied());
        if place.is_none() && !(D::Class::IMPLICIT && (1..=BANDS).contains(&flow)) {
            return;
        }
        self.children.state(place, visit);
        if D::TURNS == Turns::Bytes {
            visit("deficit", place.map_or(0, |place| self.rounds.deficit(place)).into());
        }
    }

    fn leaves(&self, visit: &mut dyn FnMut(&str, usize, u64)) {
        for (id, place) in &self.places {
            self.children.leaves(*place, &self.params.tree().name(*id), visit);
        }
    }

    /// Visits the classes that have packets and take turns, the next one first.
    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.rounds.active().for_each(|place| visit(0, self.ranks[place].id.into()));
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.children.counters(visit);
    }
}
