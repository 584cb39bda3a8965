//! Links without events of their own: a link hands packets over to the next link in advance, and
//! its own events are booked later. See [`crate::roles`].

use super::{NONE, Network, Seen, Tap, View};
use crate::roles::{Role, roles};
use crate::routes::Place;
use crate::slab::Packet;
use sojourn_link::{Backlog, Link, Observer, Watch};
use sojourn_plan::Plan;
use sojourn_units::{NEVER, Nanos};

impl<T: Copy, W: for<'a> Observer<Seen<'a, T>>> Watch<Packet> for Tap<'_, T, W> {
    #[inline]
    fn on_backlog(&mut self, at: Nanos, backlog: Backlog) {
        if self.options.probes {
            self.probe.backlog(at, backlog);
        }
    }
}

impl<T: Copy, W: for<'a> Observer<Seen<'a, T>>> Network<T, W> {
    /// Gives links the roles that save events without a change of results. Must be called when all
    /// paths are known and before the first packet is sent.
    pub fn fuse(&mut self, plan: &Plan) {
        if !self.options.fused {
            return;
        }
        let exact = |hop: &super::Hop| hop.observed || hop.member != NONE;
        let mut exact: Vec<_> = self.hops.iter().map(exact).collect();
        let servers = plan.balancers.iter().flat_map(|balancer| &balancer.servers);
        servers.for_each(|server| exact[server.port] = true);
        for (id, role) in (0..).zip(roles(plan, &self.routes, &exact)) {
            let hop = &mut self.hops[id as usize];
            hop.role = role;
            if role != Role::default() {
                self.fused.push(id);
            }
            if role.deferred {
                hop.port.plain().go_direct(plan.links[id as usize].params.queue.limit());
            }
        }
    }

    /// Gives all links events of their own from `now` on. Packets that were handed over in advance
    /// are still on the link from which they come.
    pub(super) fn split(&mut self, now: Nanos) {
        self.catch_up(now);
        for id in std::mem::take(&mut self.fused) {
            if self.hops[id as usize].role.deferred {
                self.direct(id, |link, tap| link.leave_direct(now, tap));
            }
            self.hops[id as usize].role = Role::default();
            self.due.set(id, self.hops[id as usize].next_wakeup());
        }
    }

    /// Returns the path from node `from` to node `to`; `None` if no path exists. A new path may
    /// bring packets from a second link to a link that was fed by only one, so all links then get
    /// events of their own.
    pub fn path(&mut self, now: Nanos, from: u32, to: u32) -> Option<Place> {
        let known = self.routes.places();
        let path = self.routes.path(from, to);
        if self.routes.places() > known {
            self.split(now);
        }
        path
    }

    /// Books the events before `now` of links without events of their own, so that their state and
    /// measurements are up to date.
    pub fn catch_up(&mut self, now: Nanos) {
        for i in 0..self.fused.len() {
            let id = self.fused[i];
            let role = self.hops[id as usize].role;
            if role.deferred {
                self.book(now - 1, id, role);
                continue;
            }
            // Advance the link to each arrival, as the events do: the state of a discipline is that
            // of its last call.
            while let at = self.hops[id as usize].port.link().next_arrival()
                && at < now
            {
                self.call(at, id, false, |port, media, tap| port.poll(at, media, tap));
            }
        }
        debug_assert!(self.moving.is_empty(), "a packet was due before {now}");
    }

    /// Calls `call` with the deferred link `id` and with the [`Tap`] that records its events.
    #[inline]
    fn direct<R>(
        &mut self,
        id: u32,
        call: impl FnOnce(&mut Link<Packet>, &mut Tap<'_, T, W>) -> R,
    ) -> R {
        // `Link::take` returns the packets that arrive, so `lands` is false.
        let view = View { observed: false, forwards: true, lands: false };
        self.tapped(id, view, |port, _, tap| call(port.plain(), tap))
    }

    /// Books the events on the deferred link `id` until `now`. If the link forwards, its packets
    /// were handed over before, and those that have arrived are removed from it.
    #[inline]
    fn book(&mut self, now: Nanos, id: u32, role: Role) {
        if self.hops[id as usize].port.plain().is_behind(now) {
            self.direct(id, |link, tap| link.book(now, tap));
        }
        if role.forwards {
            self.hops[id as usize].port.plain().forget(now);
        }
    }

    /// Runs the deferred link `id`: passes on the packets that are due at its far end.
    #[inline]
    pub(super) fn run_deferred(&mut self, now: Nanos, id: u32) {
        loop {
            let (packet, next) = self.direct(id, |link, tap| {
                link.book(now, tap);
                (link.take(now, tap), link.next_arrival())
            });
            let Some(packet) = packet else { return };
            if next > now {
                self.due.set(id, next);
            }
            self.move_on(now, packet);
            if next > now {
                return;
            }
        }
    }

    /// Offers a packet to the deferred link `id`.
    #[inline]
    pub(super) fn bring(&mut self, now: Nanos, id: u32, packet: Packet) {
        let role = self.hops[id as usize].role;
        if role.forwards {
            self.book(now, id, role);
        }
        let (idle, arrives) = self
            .direct(id, |link, tap| (link.next_arrival() == NEVER, link.bring(now, packet, tap)));
        let Some(at) = arrives else { return };
        self.hops[id as usize].probe.runs.accepted();
        if role.forwards {
            self.feed(now, at, packet);
        } else if idle {
            self.due.set(id, at);
        }
    }

    /// Hands over the packets whose transmission on link `id` has begun. The link must forward, and
    /// must not be deferred.
    pub(super) fn hand_over(&mut self, now: Nanos, id: u32) {
        loop {
            let hop = &mut self.hops[id as usize];
            let link = hop.port.link();
            let Some(later) = (link.stats().departed.packets - hop.handed).checked_sub(1) else {
                return;
            };
            let (at, &packet) = link.on_wire(later as usize).expect("the packet is on the wire");
            hop.handed += 1;
            self.feed(now, at, packet);
        }
    }

    /// Announces a packet to the next link on its path, at which it will arrive at `at`; if that
    /// link forwards, also to the links after it.
    #[inline]
    fn feed(&mut self, now: Nanos, mut at: Nanos, mut packet: Packet) {
        loop {
            packet.place += 1;
            packet.queued_at = at;
            let id = self.routes.link(packet.place);
            let role = self.hops[id as usize].role;
            debug_assert!(role.fed, "a link passes a packet to a link that it does not feed");
            if role.forwards {
                self.book(now, id, role);
            }
            let link = self.hops[id as usize].port.plain();
            let idle = link.next_arrival() == NEVER;
            at = link.announce(packet);
            if !role.forwards {
                if idle {
                    self.due.set(id, at);
                }
                return;
            }
        }
    }
}
