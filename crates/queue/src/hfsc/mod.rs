//! HFSC: hierarchical fair service curves.
//!
//! Source: Linux `sch_hfsc.c`; Stoica, Zhang, Ng, SIGCOMM 1997; tc-hfsc(7).
//!
//! A service curve gives the bytes that a class may send, over the time since it became active.
//! Real-time curves of leaves are guarantees: of the eligible packets the one with the earliest
//! deadline is served first. Link-sharing curves divide the remaining capacity along the tree: the
//! class with the smallest virtual time is served, unless its upper-limit curve forbids it. Delay
//! and share of a class can therefore be set independently.
//!
//! Invariants: a leaf with a real-time curve gets at least the curve, less one largest packet, if
//! the sum of all real-time curves is below the line's rate. A class without a real-time curve
//! exceeds its upper limit by at most one packet.

mod curve;
mod params;

pub use curve::Internal;
pub use params::{Curve, Curves, Params};

use crate::classes::Children;
use crate::declaration::Configured;
use crate::discipline::{Call, Dequeue, Discipline, Draws, Leaf, Return, Sink, View, visit_fields};
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use crate::speed::TICK;
use curve::Running;
use sojourn_units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A class. Times are in ticks of 64 ns; fields have the kernel's names.
#[derive(Clone, Debug, Default)]
struct Class {
    /// Index of the parent class; `None` for the root.
    parent: Option<usize>,
    /// Place of a leaf's queue; `None` for an inner class.
    queue: Option<usize>,
    rt: Option<Internal>,
    ls: Option<Internal>,
    ul: Option<Internal>,
    deadlines: Running,
    eligibles: Running,
    virtuals: Running,
    limits: Running,
    /// Number of bytes sent, and number of bytes sent by the real-time criterion.
    total: u64,
    cumul: u64,
    /// Deadline of the next packet, and time at which it becomes eligible.
    d: u64,
    e: u64,
    /// Number of the class's entry in `Hfsc::eligible`; `None` without an entry.
    listed: Option<u64>,
    /// `vt` is the virtual time. `f`, `myf` and `cfmin` are the earliest times to send by all upper
    /// limits, by the class's own, and by those of its children.
    vt: u64,
    f: u64,
    myf: u64,
    cfmin: u64,
    cvtmin: u64,
    vtadj: u64,
    cvtoff: u64,
    /// Number of active children; a leaf with packets counts as 1.
    nactive: u32,
    vtperiod: u32,
    parentperiod: u32,
    /// Active children in the order of virtual time; equal times keep their order of insertion.
    active: Vec<usize>,
}

/// An HFSC queue.
#[derive(Clone, Debug)]
pub struct Hfsc<P> {
    params: Params,
    children: Children<P>,
    /// All classes; the root has index 0.
    classes: Vec<Class>,
    places: BTreeMap<u16, usize>,
    /// Leaves with packets and a real-time curve: time at which they become eligible, number of the
    /// entry, index.
    eligible: BTreeSet<(u64, u64, usize)>,
    /// Number of entries inserted into `eligible` since creation, which is the number of the last
    /// entry.
    listed: u64,
}

const ROOT: usize = 0;

fn ticks(now: Nanos) -> u64 {
    now / TICK
}

impl<P: Packet> Hfsc<P> {
    /// Adds a class that does not exist yet.
    fn add(&mut self, id: u16, now: Nanos) {
        let Some(class) = self.params.tree.class(id) else { return };
        let Curves { rt, ls, ul } = class.words;
        let parent = self.places.get(&class.parent).copied().unwrap_or(ROOT);
        let queue = self.params.tree.is_leaf(id).then(|| {
            let child = self.params.tree.child(id);
            self.children.add(child, now)
        });
        let place = self.classes.len();
        self.classes.push(Class { parent: Some(parent), queue, ..Class::default() });
        self.places.insert(id, place);
        let starts = Starts { rt: (0, 0), ls: (0, 0), ul: (0, 0) };
        self.set(place, [rt, ls, ul], &starts);
    }

    /// Removes a class without children. Its index is not used again.
    fn forget(&mut self, id: u16, now: Nanos, sink: &mut impl Sink<P>) {
        let Some(place) = self.places.remove(&id) else { return };
        if let Some(queue) = self.classes[place].queue.take() {
            self.children.remove(queue, now, sink);
        }
        self.deactivate(place);
    }

    /// Sets the curves of a class. A curve that differs from the present one begins anew at its
    /// origin in `starts`.
    fn set(&mut self, place: usize, [rt, ls, ul]: [Option<Curve>; 3], starts: &Starts) {
        let internal = |curve: Option<Curve>| curve.map(|curve| Internal::new(&curve));
        let class = &mut self.classes[place];
        let begin = |curve: Internal, (x, y): (u64, u64)| Running::new(curve, x, y);
        let (rt, ls, ul) = (internal(rt), internal(ls), internal(ul));
        if let Some(curve) = rt.filter(|_| rt != class.rt) {
            class.deadlines = begin(curve, starts.rt);
            class.eligibles = class.deadlines.eligible(&curve);
        }
        if let Some(curve) = ls.filter(|_| ls != class.ls) {
            class.virtuals = begin(curve, starts.ls);
        }
        if let Some(curve) = ul.filter(|_| ul != class.ul) {
            class.limits = begin(curve, starts.ul);
        }
        (class.rt, class.ls, class.ul) = (rt, ls, ul);
    }

    /// Returns the index of the leaf for a packet; `None` if no leaf is found.
    fn place(&self, packet: &P, sink: &impl Sink<P>) -> Option<usize> {
        let leaf = |id: u16| {
            let place = *self.places.get(&id)?;
            self.classes[place].queue.map(|_| place)
        };
        let filtered = || self.params.tree.filtered(packet, sink);
        packet
            .class()
            .and_then(leaf)
            .or_else(|| filtered().and_then(leaf))
            .or_else(|| leaf(self.params.default))
    }

    /// Inserts a leaf with packets into `eligible`.
    fn list(&mut self, place: usize) {
        self.listed += 1;
        let class = &mut self.classes[place];
        class.listed = Some(self.listed);
        self.eligible.insert((class.e, self.listed, place));
    }

    fn unlist(&mut self, place: usize) {
        let class = &mut self.classes[place];
        if let Some(number) = class.listed.take() {
            self.eligible.remove(&(class.e, number, place));
        }
    }

    /// Starts the real-time curve of a leaf that gets its first packet.
    fn begin_real_time(&mut self, place: usize, length: u32, now: u64) {
        let class = &mut self.classes[place];
        let Some(rt) = class.rt else { return };
        class.deadlines.lower(&rt, now, class.cumul);
        class.eligibles = class.deadlines.eligible(&rt);
        class.e = class.eligibles.when(class.cumul);
        class.d = class.deadlines.when(class.cumul.wrapping_add(length.into()));
        self.list(place);
    }

    /// Updates a leaf after the real-time criterion has sent its packet; the next packet has
    /// `length` bytes.
    fn go_on_real_time(&mut self, place: usize, length: u32) {
        self.unlist(place);
        let class = &mut self.classes[place];
        class.e = class.eligibles.when(class.cumul);
        self.set_deadline(place, length);
        self.list(place);
    }

    fn set_deadline(&mut self, place: usize, length: u32) {
        let class = &mut self.classes[place];
        class.d = class.deadlines.when(class.cumul.wrapping_add(length.into()));
    }

    fn insert_active(&mut self, parent: usize, place: usize) {
        let vt = self.classes[place].vt;
        let active = &self.classes[parent].active;
        let at = active.partition_point(|other| self.classes[*other].vt <= vt);
        self.classes[parent].active.insert(at, place);
    }

    fn remove_active(&mut self, parent: usize, place: usize) {
        self.classes[parent].active.retain(|other| *other != place);
    }

    fn set_cfmin(&mut self, place: usize) {
        let least = self.classes[place].active.iter().map(|below| self.classes[*below].f).min();
        self.classes[place].cfmin = least.unwrap_or_default();
    }

    /// Activates a leaf and its ancestors. The leaf has a link-sharing curve and its first packet.
    fn activate(&mut self, leaf: usize, now: u64) {
        let mut goes_on = true;
        let mut place = leaf;
        while let Some(parent) = self.classes[place].parent {
            if goes_on {
                goes_on = self.classes[place].nactive == 0;
                self.classes[place].nactive += 1;
            }
            if goes_on {
                self.join(place, parent, now);
            }
            let class = &mut self.classes[place];
            let f = class.myf.max(class.cfmin);
            class.f = f;
            self.set_cfmin(parent);
            place = parent;
        }
    }

    /// Sets the virtual time of a class that becomes active, and inserts it among the active
    /// children of its parent.
    fn join(&mut self, place: usize, parent: usize, now: u64) {
        let above = &mut self.classes[parent];
        let (vt, period) = if let Some(&last) = above.active.last() {
            let (cvtmin, period) = (above.cvtmin, above.vtperiod);
            let mut vt = self.classes[last].vt;
            if cvtmin != 0 {
                vt = cvtmin.wrapping_add(vt) / 2;
            }
            let class = &self.classes[place];
            let keeps = period == class.parentperiod && vt <= class.vt;
            (if keeps { class.vt } else { vt }, period)
        } else {
            above.cvtmin = 0;
            (above.cvtoff, above.vtperiod)
        };
        let period = period.wrapping_add(u32::from(self.classes[parent].nactive == 0));
        let class = &mut self.classes[place];
        class.vt = vt;
        if let Some(ls) = class.ls {
            class.virtuals.lower(&ls, class.vt, class.total);
        }
        class.vtadj = 0;
        class.vtperiod = class.vtperiod.wrapping_add(1);
        class.parentperiod = period;
        class.f = 0;
        if let Some(ul) = class.ul {
            class.limits.lower(&ul, now, class.total);
            class.myf = class.limits.when(class.total);
        }
        self.insert_active(parent, place);
    }

    /// Updates virtual times and limits of a leaf and its ancestors after `length` bytes were sent.
    fn advance(&mut self, leaf: usize, length: u32) {
        let first = &self.classes[leaf];
        let is_empty = first.queue.is_none_or(|queue| self.children.is_empty(queue));
        let mut leaves = is_empty && first.ls.is_some() && first.nactive > 0;
        let mut place = leaf;
        while let Some(parent) = self.classes[place].parent {
            let class = &mut self.classes[place];
            class.total = class.total.wrapping_add(length.into());
            if class.ls.is_some() && class.nactive > 0 {
                if leaves {
                    class.nactive -= 1;
                    leaves = class.nactive == 0;
                }
                class.vt = class.virtuals.when(class.total).wrapping_add(class.vtadj);
                let cvtmin = self.classes[parent].cvtmin;
                let class = &mut self.classes[place];
                if class.vt < cvtmin {
                    class.vtadj = class.vtadj.wrapping_add(cvtmin.wrapping_sub(class.vt));
                    class.vt = cvtmin;
                }
                self.settle(place, parent, leaves);
            }
            place = parent;
        }
    }

    /// Moves a class to its position among the active children of its parent, or removes it if it
    /// has become passive.
    fn settle(&mut self, place: usize, parent: usize, leaves: bool) {
        self.remove_active(parent, place);
        if leaves {
            let vt = self.classes[place].vt;
            let above = &mut self.classes[parent];
            above.cvtoff = above.cvtoff.max(vt);
            self.set_cfmin(parent);
            return;
        }
        self.insert_active(parent, place);
        let class = &mut self.classes[place];
        if class.ul.is_some() {
            class.myf = class.limits.when(class.total);
        }
        let f = class.myf.max(class.cfmin);
        if f != class.f {
            class.f = f;
            self.set_cfmin(parent);
        }
    }

    /// Removes a leaf without packets from the eligible and active classes.
    fn deactivate(&mut self, place: usize) {
        self.unlist(place);
        self.advance(place, 0);
    }

    /// Returns the leaf to serve, and whether it is chosen by the real-time criterion; `None` if
    /// none may send.
    fn choose(&mut self, now: u64) -> Option<(usize, bool)> {
        let due = self.eligible.iter().take_while(|(e, ..)| *e <= now);
        // Of equal deadlines the first in order of eligibility is chosen.
        if let Some((.., place)) = due.min_by_key(|(.., place)| self.classes[*place].d) {
            return Some((*place, true));
        }
        if self.classes[ROOT].cfmin > now {
            return None;
        }
        let mut place = ROOT;
        while self.classes[place].queue.is_none() {
            let fits = |below: &&usize| self.classes[**below].f <= now;
            let next = *self.classes[place].active.iter().find(fits)?;
            let vt = self.classes[next].vt;
            let above = &mut self.classes[place];
            above.cvtmin = above.cvtmin.max(vt);
            place = next;
        }
        Some((place, false))
    }

    /// Returns the time at which a leaf may send again; `None` if it is unknown.
    fn next_time(&self) -> Option<Nanos> {
        let eligible = self.eligible.first().map(|(e, ..)| *e);
        let fits = self.classes[ROOT].cfmin;
        let next = eligible.into_iter().chain([fits]).filter(|time| *time != 0).min()?;
        Some(next.wrapping_mul(TICK))
    }
}

/// Origins (time, bytes) at which new curves of a class begin.
struct Starts {
    rt: (u64, u64),
    ls: (u64, u64),
    ul: (u64, u64),
}

impl<P: Packet> Configured<P, Params> for Hfsc<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let mut hfsc = Self {
            params,
            children: Children::default(),
            classes: vec![Class::default()],
            places: BTreeMap::new(),
            eligible: BTreeSet::new(),
            listed: 0,
        };
        for id in hfsc.params.tree.ids() {
            hfsc.add(id, now);
        }
        hfsc
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. A curve that differs begins anew, and a class that no longer exists
    /// loses its packets. If a class gets another parent, or a leaf becomes an inner class or the
    /// reverse, all classes begin anew and lose their packets.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        let before = std::mem::replace(&mut self.params, params);
        let time = ticks(now);
        if before.tree.keeps_shape(&self.params.tree) {
            // A parent precedes its children in the list.
            for class in before.tree.classes.iter().rev() {
                if self.params.tree.class(class.id).is_none() {
                    self.forget(class.id, now, sink);
                }
            }
        } else {
            for queue in self.classes.drain(..).filter_map(|class| class.queue) {
                self.children.remove(queue, now, sink);
            }
            self.classes.push(Class::default());
            self.places.clear();
            self.eligible.clear();
        }
        for new in self.params.tree.classes.clone() {
            let Some(&place) = self.places.get(&new.id) else {
                self.add(new.id, now);
                continue;
            };
            let queue = self.classes[place].queue;
            if let Some(queue) = queue {
                self.children.change(queue, &self.params.tree.child(new.id), now, sink);
                if self.children.is_empty(queue) {
                    self.deactivate(place);
                }
            }
            if before.tree.class(new.id).is_some_and(|old| old.words == new.words) {
                continue;
            }
            let class = &self.classes[place];
            let had = (class.rt.is_some(), class.ls.is_some());
            let starts = Starts {
                rt: (time, class.cumul),
                ls: (class.vt, class.total),
                ul: (time, class.total),
            };
            let Curves { rt, ls, ul } = new.words;
            self.set(place, [rt, ls, ul], &starts);
            let Some(queue) = queue.filter(|queue| !self.children.is_empty(*queue)) else {
                continue;
            };
            if rt.is_some()
                && let Dequeue::Packet(length) = self.children.peek_in_change(queue, now, sink)
            {
                if had.0 {
                    self.go_on_real_time(place, length);
                } else {
                    self.begin_real_time(place, length, time);
                }
            }
            match (ls.is_some(), had.1) {
                (true, true) => self.advance(place, 0),
                (true, false) => self.activate(place, time),
                _ => {}
            }
        }
    }
}

viewed!(Hfsc in children);

impl<P: Packet> Discipline<P> for Hfsc<P> {
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let place = self.place(&packet, call.sink);
        let leaf = place.and_then(|place| Some((place, self.classes[place].queue?)));
        let Some((place, queue)) = leaf else {
            return self.children.refuse(packet, call.sink);
        };
        let length = packet.len();
        let result = self.children.enqueue(queue, packet, call);
        let class = &self.classes[place];
        let is_idle = class.listed.is_none() && class.nactive == 0;
        if !is_idle || self.children.is_empty(queue) {
            return result;
        }
        let (has_rt, has_ls) = (class.rt.is_some(), class.ls.is_some());
        if has_rt {
            self.begin_real_time(place, length, ticks(call.now));
        }
        if has_ls {
            self.activate(place, ticks(call.now));
        }
        // `peek` fixes the class's next packet: the packet whose length was used above.
        if has_rt && !matches!(self.children.peek(queue, call), Dequeue::Packet(_)) {
            self.deactivate(place);
        }
        result
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.children.begin();
        let time = ticks(call.now);
        loop {
            if self.children.packets() == 0 {
                return Dequeue::Empty;
            }
            let Some((place, is_real_time)) = self.choose(time) else {
                self.children.count_overlimit();
                let next = self.next_time();
                return self.children.wait(next);
            };
            let Some(queue) = self.classes[place].queue else { return Dequeue::Empty };
            let packet = match self.children.dequeue(queue, call) {
                Dequeue::Packet(packet) => packet,
                Dequeue::Empty => {
                    self.deactivate(place);
                    continue;
                }
                Dequeue::NotBefore(time) => return self.children.wait(Some(time)),
            };
            let length = packet.len();
            self.advance(place, length);
            if is_real_time {
                let class = &mut self.classes[place];
                class.cumul = class.cumul.wrapping_add(length.into());
            }
            if self.classes[place].rt.is_some() {
                match self.children.peek(queue, call) {
                    Dequeue::Packet(next) if is_real_time => self.go_on_real_time(place, next),
                    Dequeue::Packet(next) => self.set_deadline(place, next),
                    Dequeue::Empty => {
                        self.deactivate(place);
                    }
                    Dequeue::NotBefore(_) => {}
                }
            }
            return Dequeue::Packet(packet);
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

    /// Visits the state of the class with the minor number `flow`; 0 is the root.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        let place = match flow {
            0 => Some(&ROOT),
            flow => u16::try_from(flow).ok().and_then(|id| self.places.get(&id)),
        };
        let Some(class) = place.map(|place| &self.classes[*place]) else { return };
        // A time that never comes is -1 in recordings.
        let Class { total, cumul, d, e, vt, f, myf, cfmin, cvtmin, vtadj, cvtoff, .. } = *class;
        for (name, value) in [
            ("total", total),
            ("cumul", cumul),
            ("d", d),
            ("e", e),
            ("vt", vt),
            ("f", f),
            ("myf", myf),
            ("cfmin", cfmin),
            ("cvtmin", cvtmin),
            ("vtadj", vtadj),
            ("cvtoff", cvtoff),
        ] {
            visit(name, i128::from(value as i64));
        }
        visit_fields!(visit, class, [nactive, vtperiod, parentperiod]);
        self.children.state(class.queue, visit);
    }

    fn leaves(&self, visit: &mut dyn FnMut(&str, Leaf<'_>)) {
        for (id, place) in &self.places {
            if let Some(queue) = self.classes[*place].queue {
                self.children.leaves(queue, &self.params.tree.name(*id), visit);
            }
        }
    }

    fn restart(&mut self) {
        self.children.restart();
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.children.counters(visit);
    }
}
