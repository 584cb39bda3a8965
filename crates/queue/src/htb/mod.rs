//! HTB: hierarchical token buckets.
//!
//! Source: Linux `sch_htb.c`; tc-htb(8).
//!
//! Each class has a guaranteed rate and a ceiling, each controlled by a token bucket whose tokens
//! are nanoseconds. A class with tokens of its rate sends. A class that has only tokens of its
//! ceiling borrows from its parent, and the parent may borrow from its own parent.
//! Classes of one level and priority take turns by deficit round robin. A class that can neither
//! send nor borrow sleeps until it can.
//!
//! Invariants: in any period a class sends at most its ceiling times the period plus `cburst` and
//! one packet. A class that always has packets gets its rate, if the rates of the children of each
//! class add up to at most the rate of that class.

mod params;
mod rows;

pub use params::{Bucket, Constants, LEVELS, MBUFFER, Params};

use crate::classes::{Children, earlier};
use crate::declaration::Configured;
use crate::discipline::{Call, Dequeue, Discipline, Draws, Leaf, Return, Sink, visit_fields};
use crate::fifo;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use crate::params::Params as Any;
use crate::speed::Speed;
use params::FAR;
use rows::Row;
use sojourn_units::{Nanos, SECOND};
use std::collections::{BTreeMap, BTreeSet};

/// Number of priorities of classes.
const PRIOS: usize = 8;

/// Mode of a class; the values are the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// The class may not send: it has no tokens of its ceiling.
    Wait = 0,
    /// The class may borrow from its parent: it has tokens of its ceiling only.
    Borrow = 1,
    /// The class may send: it has tokens of its rate and of its ceiling.
    #[default]
    Send = 2,
}

/// A class. Tokens are nanoseconds of transmission time.
#[derive(Clone, Debug)]
struct Class {
    id: u16,
    /// Index of the parent class; `None` for an outermost class.
    parent: Option<usize>,
    level: usize,
    prio: u8,
    constants: Constants,
    tokens: i64,
    ctokens: i64,
    /// Time at which the tokens were last updated.
    checked: Nanos,
    mode: Mode,
    /// Set of priorities (bit n for n) in which a leaf has packets, or an inner class lends.
    active: u8,
    /// Remaining bytes of the class's turn at each level.
    deficit: [i64; LEVELS],
    /// Time at which the class wakes, and number of the entry in `sleeping`; `None` if it is awake.
    wake: Option<(Nanos, u64)>,
    lends: u64,
    borrows: u64,
    /// Children that borrow from the class, for each priority.
    feeds: [Row; PRIOS],
    /// Place of a leaf's queue; `None` for an inner class.
    queue: Option<usize>,
}

/// An HTB queue.
#[derive(Clone, Debug)]
pub struct Htb<P> {
    params: Params,
    children: Children<P>,
    /// Place of the queue that bypasses all classes.
    direct: usize,
    direct_packets: u64,
    classes: Vec<Option<Class>>,
    places: BTreeMap<u16, usize>,
    /// Classes that may send without borrowing, for each level and priority.
    rows: [[Row; PRIOS]; LEVELS],
    /// Sleeping classes of each level: time at which they wake, number of the entry, index.
    sleeping: [BTreeSet<(Nanos, u64, usize)>; LEVELS],
    /// Time before which no class of a level wakes.
    near: [Nanos; LEVELS],
    /// Number of entries inserted into `sleeping` since creation, which is the number of the last
    /// entry.
    slept: u64,
    /// Number of times that a class has reached its ceiling.
    overlimits: u64,
}

/// Owner of the row in which a class's turn is recorded: a level, or the class that lends.
#[derive(Clone, Copy)]
enum At {
    Level(usize),
    Class(usize),
}

/// Returns the priorities in a set of bits.
fn prios(bits: u8) -> impl Iterator<Item = usize> {
    (0..PRIOS).filter(move |prio| bits >> prio & 1 == 1)
}

/// Returns the tokens after a packet of `length` bytes, in nanoseconds. As in the kernel, they stay
/// above minus `MBUFFER`.
fn charged(tokens: i64, since: i64, depth: i64, speed: &Speed, length: u32) -> i64 {
    let left = (tokens + since).min(depth) - speed.time(length) as i64;
    if left <= -MBUFFER { 1 - MBUFFER } else { left }
}

impl<P: Packet> Htb<P> {
    fn get(&self, place: usize) -> &Class {
        self.classes[place].as_ref().expect("a place in use has a class")
    }

    fn get_mut(&mut self, place: usize) -> &mut Class {
        self.classes[place].as_mut().expect("a place in use has a class")
    }

    fn row_mut(&mut self, at: At, prio: usize) -> &mut Row {
        match at {
            At::Level(level) => &mut self.rows[level][prio],
            At::Class(place) => &mut self.get_mut(place).feeds[prio],
        }
    }

    /// Creates a class, or updates the constants of an existing one.
    fn put(&mut self, id: u16, now: Nanos) {
        let Some(class) = self.params.tree.class(id) else { return };
        let (constants, prio) = (class.words.constants(self.params.r2q), class.words.prio);
        let parent = self.places.get(&class.parent).copied();
        if let Some(place) = self.places.get(&id) {
            let class = self.get_mut(*place);
            (class.constants, class.prio) = (constants, prio);
            return;
        }
        let level = self.params.level(id);
        let queue = self.params.tree.is_leaf(id).then(|| {
            let child = self.params.tree.child(id);
            self.children.add(child, now)
        });
        let class = Class {
            id,
            parent,
            level,
            prio,
            constants,
            tokens: constants.buffer,
            ctokens: constants.cbuffer,
            checked: now,
            mode: Mode::Send,
            active: 0,
            deficit: [0; LEVELS],
            wake: None,
            lends: 0,
            borrows: 0,
            feeds: Default::default(),
            queue,
        };
        let free = self.classes.iter().position(Option::is_none);
        let place = free.unwrap_or(self.classes.len());
        if free.is_none() {
            self.classes.push(None);
        }
        self.classes[place] = Some(class);
        self.places.insert(id, place);
    }

    /// Returns the class that a packet enters; `None` for the queue that bypasses all classes.
    fn place(&self, packet: &P, sink: &impl Sink<P>) -> Option<usize> {
        let leaf = |id: u16| {
            let place = *self.places.get(&id)?;
            self.get(place).queue.map(|_| place)
        };
        let default = || leaf(self.params.default);
        if let Some(id) = packet.class() {
            if id == 0 {
                return None;
            }
            if let Some(place) = leaf(id) {
                return Some(place);
            }
        }
        match self.params.tree.filtered(packet, sink) {
            Some(0) => None,
            Some(id) => leaf(id).or_else(default),
            None => default(),
        }
    }

    /// Returns the mode of a class with `since` more tokens, and the time until it may change, in
    /// nanoseconds.
    fn mode(class: &Class, since: i64) -> (Mode, i64) {
        let (tokens, ctokens) = (class.tokens + since, class.ctokens + since);
        if ctokens < 0 {
            (Mode::Wait, -ctokens)
        } else if tokens >= 0 {
            (Mode::Send, 0)
        } else {
            (Mode::Borrow, -tokens)
        }
    }

    /// Enters an active class into its level's row if it may send, or into its parent's row if it
    /// borrows; the parent is then active and is entered too.
    fn link(&mut self, place: usize) {
        let mut at = place;
        let mut bits = self.get(place).active;
        while bits != 0
            && let Class { id, mode: Mode::Borrow, parent: Some(parent), .. } = *self.get(at)
        {
            let lender = self.get_mut(parent);
            for prio in prios(bits) {
                if !lender.feeds[prio].is_empty() {
                    bits &= !(1 << prio);
                }
                lender.feeds[prio].add(id, at);
            }
            lender.active |= bits;
            at = parent;
        }
        let Class { id, mode, level, .. } = *self.get(at);
        if mode == Mode::Send {
            prios(bits).for_each(|prio| self.rows[level][prio].add(id, at));
        }
    }

    /// Removes a class from the rows into which `link` has entered it.
    fn unlink(&mut self, place: usize) {
        let mut at = place;
        let mut bits = self.get(place).active;
        while bits != 0
            && let Class { id, mode: Mode::Borrow, parent: Some(parent), .. } = *self.get(at)
        {
            let lender = self.get_mut(parent);
            for prio in prios(bits) {
                lender.feeds[prio].remove_lender(id);
                if !lender.feeds[prio].is_empty() {
                    bits &= !(1 << prio);
                }
            }
            lender.active &= !bits;
            at = parent;
        }
        let Class { id, mode, level, .. } = *self.get(at);
        if mode == Mode::Send {
            prios(bits).for_each(|prio| self.rows[level][prio].remove(id));
        }
    }

    /// Updates the mode of a class with `since` more tokens; returns the time until it may change,
    /// in nanoseconds.
    fn update_mode(&mut self, place: usize, since: i64) -> i64 {
        let class = self.get(place);
        let (old, is_active) = (class.mode, class.active != 0);
        let (new, wait) = Self::mode(class, since);
        if new == old {
            return wait;
        }
        self.overlimits += u64::from(new == Mode::Wait);
        if is_active && old != Mode::Wait {
            self.unlink(place);
        }
        self.get_mut(place).mode = new;
        if is_active && new != Mode::Wait {
            self.link(place);
        }
        wait
    }

    /// Lets a class sleep for `wait` nanoseconds, but at least 1.
    fn sleep(&mut self, place: usize, now: Nanos, wait: i64) {
        let at = now + (wait as Nanos).max(1);
        self.slept += 1;
        let number = self.slept;
        let class = self.get_mut(place);
        class.wake = Some((at, number));
        let level = class.level;
        self.sleeping[level].insert((at, number, place));
        self.near[level] = self.near[level].min(at);
    }

    /// Removes a class from the sleeping ones.
    fn stay_awake(&mut self, place: usize) {
        let class = self.get_mut(place);
        let level = class.level;
        if let Some((at, number)) = class.wake.take() {
            self.sleeping[level].remove(&(at, number, place));
        }
    }

    /// Updates the classes of a level that are due at `now`; returns the time at which the next one
    /// is due, or one second from now without one.
    fn wake(&mut self, level: usize, now: Nanos) -> Nanos {
        while let Some(&(at, _, place)) = self.sleeping[level].first() {
            if at > now {
                return at;
            }
            self.stay_awake(place);
            let since = (now - self.get(place).checked) as i64;
            let wait = self.update_mode(place, since.min(MBUFFER));
            if self.get(place).mode != Mode::Send {
                self.sleep(place, now, wait);
            }
        }
        now + SECOND
    }

    /// Returns the leaf whose turn it is in a row of a level; `None` if the row is empty.
    fn leaf(&mut self, level: usize, prio: usize) -> Option<usize> {
        let mut path = [At::Level(level); LEVELS + 1];
        let mut depth = 0;
        if self.rows[level][prio].is_empty() {
            return None;
        }
        loop {
            match self.row_mut(path[depth], prio).next() {
                Some(place) if self.get(place).level == 0 => return Some(place),
                Some(place) => {
                    depth += 1;
                    path[depth] = At::Class(place);
                }
                None if depth > 0 => {
                    depth -= 1;
                    self.row_mut(path[depth], prio).advance();
                }
                None => {}
            }
        }
    }

    /// Removes a leaf that has no more packets from its rows.
    fn deactivate(&mut self, place: usize) {
        self.unlink(place);
        self.get_mut(place).active = 0;
    }

    /// Passes the turn from a leaf that is served at `level` to the next leaf.
    fn pass_on(&mut self, place: usize, level: usize, prio: usize) {
        let at = match self.get(place).parent {
            Some(parent) if level > 0 => At::Class(parent),
            _ => At::Level(level),
        };
        self.row_mut(at, prio).advance();
    }

    /// Removes and returns a packet of the class whose turn it is in the row of `level` and `prio`.
    /// Classes whose disciplines are shapers and hold their packets are skipped; `wait` becomes the
    /// earliest time at which one of them may send.
    fn serve(
        &mut self,
        level: usize,
        prio: usize,
        wait: &mut Option<Nanos>,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P> {
        let mut first_held = None;
        loop {
            let place = self.leaf(level, prio)?;
            let queue = self.get(place).queue?;
            if self.children.is_empty(queue) {
                self.deactivate(place);
                continue;
            }
            match self.children.dequeue(queue, call) {
                Dequeue::Packet(packet) => {
                    let length = packet.len();
                    let class = self.get_mut(place);
                    class.deficit[level] -= i64::from(length);
                    if class.deficit[level] < 0 {
                        class.deficit[level] += class.constants.quantum;
                        self.pass_on(place, level, prio);
                    }
                    if self.children.is_empty(queue) {
                        self.deactivate(place);
                    }
                    self.charge(place, level, call.now, length);
                    return Some(packet);
                }
                Dequeue::Empty => self.deactivate(place),
                Dequeue::NotBefore(time) => {
                    *wait = Some(earlier(*wait, time));
                    if first_held == Some(place) {
                        return None;
                    }
                    first_held = first_held.or(Some(place));
                    self.pass_on(place, level, prio);
                }
            }
        }
    }

    /// Charges a packet to a leaf and its ancestors; those below `level` borrow.
    fn charge(&mut self, leaf: usize, level: usize, now: Nanos, length: u32) {
        let mut next = Some(leaf);
        while let Some(place) = next {
            let class = self.get_mut(place);
            next = class.parent;
            let since = ((now - class.checked) as i64).min(MBUFFER);
            let constants = &class.constants;
            class.ctokens =
                charged(class.ctokens, since, constants.cbuffer, &constants.ceil, length);
            if class.level >= level {
                class.tokens =
                    charged(class.tokens, since, constants.buffer, &constants.rate, length);
                class.lends += u64::from(class.level == level);
            } else {
                class.tokens += since;
                class.borrows += 1;
            }
            class.checked = now;
            let old = class.mode;
            let wait = self.update_mode(place, 0);
            let new = self.get(place).mode;
            if new != old {
                if old != Mode::Send {
                    self.stay_awake(place);
                }
                if new != Mode::Send {
                    self.sleep(place, now, wait);
                }
            }
        }
    }

    /// Removes a class and drops its packets.
    fn forget(&mut self, id: u16, now: Nanos, sink: &mut impl Sink<P>) {
        let Some(place) = self.places.remove(&id) else { return };
        if self.get(place).active != 0 {
            self.deactivate(place);
        }
        self.stay_awake(place);
        if let Some(queue) = self.get(place).queue {
            self.children.remove(queue, now, sink);
        }
        self.classes[place] = None;
    }
}

/// Returns the parameters of the queue that bypasses all classes.
fn direct(params: &Params) -> Any {
    Any::Fifo(fifo::Params { unit: Unit::Packets, limit: params.direct_limit() })
}

impl<P: Packet> Configured<P, Params> for Htb<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let mut children = Children::default();
        let direct = children.add(direct(&params), now);
        let mut htb = Self {
            params,
            children,
            direct,
            direct_packets: 0,
            classes: Vec::new(),
            places: BTreeMap::new(),
            rows: Default::default(),
            sleeping: Default::default(),
            near: [0; LEVELS],
            slept: 0,
            overlimits: 0,
        };
        for id in htb.params.tree.ids() {
            htb.put(id, now);
        }
        htb
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; tokens and modes are kept. A class that no longer exists loses its
    /// packets. If a class gets another parent, or a leaf becomes an inner class or the reverse,
    /// all classes begin anew and lose their packets.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        let before = std::mem::replace(&mut self.params, params);
        let keeps_shape = before.tree.keeps_shape(&self.params.tree);
        for class in before.tree.classes.iter().rev() {
            if !keeps_shape || self.params.tree.class(class.id).is_none() {
                self.forget(class.id, now, sink);
            }
        }
        self.children.change(self.direct, &direct(&self.params), now, sink);
        for id in self.params.tree.ids() {
            if let Some(queue) = self.places.get(&id).and_then(|place| self.get(*place).queue) {
                let child = self.params.tree.child(id);
                self.children.change(queue, &child, now, sink);
            }
            self.put(id, now);
        }
    }
}

viewed!(Htb in children);

impl<P: Packet> Discipline<P> for Htb<P> {
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let Some(place) = self.place(&packet, call.sink) else {
            let result = self.children.enqueue(self.direct, packet, call);
            self.direct_packets += u64::from(result == Return::Success);
            return result;
        };
        let Some(queue) = self.get(place).queue else {
            return self.children.refuse(packet, call.sink);
        };
        let result = self.children.enqueue(queue, packet, call);
        let is_filled = !self.children.is_empty(queue);
        let class = self.get_mut(place);
        if is_filled && class.active == 0 {
            class.active = 1 << class.prio;
            self.link(place);
        }
        result
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        use crate::discipline::View;
        self.children.begin();
        if let Dequeue::Packet(packet) = self.children.dequeue(self.direct, call) {
            return Dequeue::Packet(packet);
        }
        if self.children.packets() == 0 {
            return Dequeue::Empty;
        }
        let mut next = call.now + FAR;
        let mut held = None;
        for level in 0..LEVELS {
            if call.now >= self.near[level] {
                self.near[level] = self.wake(level, call.now);
            }
            next = next.min(self.near[level]);
            for prio in 0..PRIOS {
                if let Some(packet) = self.serve(level, prio, &mut held, call) {
                    return Dequeue::Packet(packet);
                }
            }
        }
        if self.children.packets() == 0 {
            return Dequeue::Empty;
        }
        self.children.wait(Some(earlier(held, next)))
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

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("direct_qlen", self.children.len(self.direct) as i128);
    }

    /// Visits the state of the class with this minor number.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        const DEFICITS: [&str; LEVELS] = [
            "deficit0", "deficit1", "deficit2", "deficit3", "deficit4", "deficit5", "deficit6",
            "deficit7",
        ];
        let Some(place) = u16::try_from(flow).ok().and_then(|id| self.places.get(&id)) else {
            return;
        };
        let class = self.get(*place);
        visit_fields!(visit, class, [tokens, ctokens]);
        visit("t_c", class.checked.into());
        visit("cmode", class.mode as i128);
        visit("prio_activity", class.active.into());
        visit("wake", class.wake.map_or(0, |(at, _)| at).into());
        visit_fields!(visit, class, [lends, borrows]);
        self.children.state(class.queue, visit);
        for (name, deficit) in DEFICITS.into_iter().zip(class.deficit) {
            visit(name, deficit.into());
        }
    }

    fn leaves(&self, visit: &mut dyn FnMut(&str, Leaf<'_>)) {
        for (id, place) in &self.places {
            if let Some(queue) = self.get(*place).queue {
                self.children.leaves(queue, &self.params.tree.name(*id), visit);
            }
        }
    }

    fn restart(&mut self) {
        self.children.restart();
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.children.counters(visit);
        visit("direct_pkts", self.direct_packets);
        visit("overlimits_", self.overlimits);
    }
}
