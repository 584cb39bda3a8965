//! The scheduler of `prio`, `ets`, `drr` and `mq`: strict classes are served in order, the other
//! classes in turn.

use super::Children;
use super::children::earlier;
use super::classful::Classful;
use super::rounds::Rounds;
use super::tree::ClassParams;
use crate::declaration::Configured;
use crate::discipline::{Call, Dequeue, Discipline, Draws, Leaf, Return, Sink};
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use sojourn_units::Nanos;
use std::collections::BTreeMap;

/// Maximum number of bands, for a discipline that has a class for each band.
pub(crate) const BANDS: usize = 16;

/// The way in which classes take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// No turns: all classes are served in strict order.
    None,
    /// Deficit round robin in bytes. A class that must wait stops the round.
    Bytes,
    /// Round robin, one packet per turn. A class that must wait is skipped.
    Packets,
}

/// Parameters of a discipline that serves its classes in strict order or in turn.
pub trait Ranked: Classful {
    /// Way in which the classes that are not strict take turns.
    const TURNS: Turns;

    /// Returns the minor numbers of the classes; strict classes are in the order of service.
    fn ids(&self) -> Vec<u16> {
        self.tree().ids()
    }

    /// Returns the largest minor number of a strict class; strict classes are served before all
    /// others.
    fn strict(&self) -> u16 {
        0
    }

    /// Returns the bytes that a class may send per turn.
    fn turn(&self, _id: u16) -> u32 {
        0
    }

    /// Returns the class of a packet; `None` to drop it. `has` returns whether a class exists.
    fn class_of<P: Packet>(
        &self,
        packet: &P,
        sink: &impl Sink<P>,
        has: impl Fn(u16) -> bool,
    ) -> Option<u16>;
}

/// Scheduling data of a class: whether it is strict, and the bytes of its turn.
#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    id: u16,
    is_strict: bool,
    /// Bytes that the class may send per turn.
    turn: u32,
}

/// A discipline with strict classes, and classes that take turns while no strict class can send.
#[derive(Clone, Debug)]
pub struct Scheduler<P, D> {
    params: D,
    children: Children<P>,
    rounds: Rounds,
    /// Place of each class by its minor number.
    places: BTreeMap<u16, usize>,
    /// Scheduling data of each place.
    ranks: Vec<Rank>,
    /// Places of the strict classes, in the order of service.
    strict: Vec<usize>,
}

impl<P: Packet, D: Ranked> Scheduler<P, D> {
    fn place(&self, packet: &P, sink: &impl Sink<P>) -> Option<usize> {
        let class = self.params.class_of(packet, sink, |id| self.places.contains_key(&id))?;
        self.places.get(&class).copied()
    }

    /// Creates missing classes, and updates how each class is served. A class with packets that is
    /// no longer strict joins the end of the round.
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

    /// Replaces the parameters. Packets in classes that no longer exist are dropped. A new quantum
    /// applies from the next turn on.
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
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let Some(place) = self.place(&packet, call.sink) else {
            return self.children.refuse(packet, call.sink);
        };
        let result = self.children.enqueue(place, packet, call);
        let Rank { is_strict, turn, .. } = self.ranks[place];
        if !is_strict && !self.children.is_empty(place) && !self.rounds.is_active(place) {
            self.rounds.add(place, turn);
        }
        result
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.children.begin();
        let mut wait = None;
        for place in &self.strict {
            match self.children.dequeue(*place, call) {
                Dequeue::Packet(packet) => return Dequeue::Packet(packet),
                Dequeue::Empty => {}
                Dequeue::NotBefore(time) => wait = Some(earlier(wait, time)),
            }
        }
        let turn = |place: usize| self.ranks[place].turn;
        let result = match D::TURNS {
            Turns::Packets => self.rounds.serve_packets(&mut self.children, call),
            _ => self.rounds.serve(&mut self.children, turn, call),
        };
        match result {
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

    /// Visits the state of the class with this minor number; bands without a class have zeros.
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

    fn leaves(&self, visit: &mut dyn FnMut(&str, Leaf<'_>)) {
        for (id, place) in &self.places {
            self.children.leaves(*place, &self.params.tree().name(*id), visit);
        }
    }

    fn restart(&mut self) {
        self.children.restart();
    }

    /// Visits the classes in the round, in the order of service.
    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.rounds.active().for_each(|place| visit(0, self.ranks[place].id.into()));
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.children.counters(visit);
    }
}
