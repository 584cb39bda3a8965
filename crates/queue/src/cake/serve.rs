//! Departures: the choice of tin, queue and packet.

use super::Cake;
use super::flows::{Set, Tin};
use super::lists::{DECAYING, NEW, OLD};
use crate::discipline::{Call, Dequeue, Draws, DropReason, MarkReason, Sink};
use crate::packet::Packet;
use crate::packet_fifo::Queued;
use sojourn_units::Nanos;

/// Result of a queue's service.
enum Served<P> {
    /// The queue gave a packet to send.
    Packet(P),
    /// A packet was dropped and charged (`ingress`); the scheduler must choose again.
    Again,
    /// The queue had no packets.
    Empty,
}

impl<P: Packet> Cake<P> {
    /// Returns the next packet if the shaper permits one.
    pub(super) fn next_packet(
        &mut self,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Dequeue<P> {
        let mut is_first = true;
        while self.packets > 0 {
            if let Some(next) = self.shaper.wait(call.now) {
                self.totals.overlimits += 1;
                self.wake = Some(next);
                return Dequeue::NotBefore(next);
            }
            let Some(tin) = self.choose(call.now) else { break };
            if let Some(packet) = self.serve(tin, &mut is_first, call) {
                self.totals.sent(packet.len());
                self.wake = self.after_packet(call.now);
                self.overflow.sent();
                return Dequeue::Packet(packet);
            }
        }
        Dequeue::Empty
    }

    /// Returns the tin to serve; `None` if no tin is active. With a shaper it is the last active
    /// tin that is within its rate or, if all exceed their rates, the active tin that will be
    /// within its rate soonest. Without a shaper the tins take turns.
    fn choose(&mut self, now: Nanos) -> Option<usize> {
        if !self.shaper.pace.is_unlimited() {
            let mut best = None;
            for (index, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active()) {
                let ahead = (tin.time_next as i64).wrapping_sub(now as i64);
                if ahead <= 0 || best.is_none_or(|(_, least)| ahead <= least) {
                    best = Some((index, ahead));
                }
            }
            return best.map(|(index, _)| index);
        }
        if !self.tins.iter().any(Tin::is_active) {
            return None;
        }
        loop {
            let tin = &mut self.tins[self.turn];
            if tin.deficit >= 0 && tin.is_active() {
                return Some(self.turn);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.numbers.tin_quantum;
            }
            self.turn = (self.turn + 1) % self.tins.len();
        }
    }

    /// Returns the next packet of a tin, whose queues take turns. Returns `None` if a queue was
    /// found empty; the tin must then be chosen again.
    #[inline]
    fn serve(
        &mut self,
        tin: usize,
        is_first: &mut bool,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P> {
        loop {
            let lists = &self.tins[tin].lists;
            let forgetting = if *is_first { lists.head(DECAYING) } else { None };
            let queue = forgetting
                .or_else(|| lists.head(NEW))
                .or_else(|| lists.head(OLD))
                .or_else(|| lists.head(DECAYING))?;
            *is_first = false;
            if self.tins[tin].flows[queue].deficit <= 0 {
                self.end_turn(tin, queue, call.draws);
                continue;
            }
            match self.take_by_cobalt((tin, queue), call) {
                Served::Packet(packet) => return Some(packet),
                Served::Again => {}
                Served::Empty => {
                    self.leave(call.now, tin, queue);
                    return None;
                }
            }
        }
    }

    /// Ends a queue's turn: adds its quantum and moves it to the tail of the old queues.
    fn end_turn(&mut self, tin: usize, queue: usize, draws: &mut impl Draws) {
        let tin = &mut self.tins[tin];
        if tin.flows[queue].set == Set::Sparse {
            // An empty queue moves to the old queues as well, but does not count as bulk.
            let is_empty = tin.flows[queue].fifo.is_empty();
            tin.enter(queue, if is_empty { Set::SparseWait } else { Set::Bulk });
        }
        let quantum = tin.quantum(queue, draws);
        let deficit = &mut tin.flows[queue].deficit;
        *deficit = deficit.wrapping_add(quantum);
        tin.lists.push(OLD, queue);
    }

    /// Removes an empty queue from the schedule, or moves it to the decaying queues until its
    /// COBALT has decayed.
    fn leave(&mut self, now: Nanos, tin: usize, queue: usize) {
        let tin = &mut self.tins[tin];
        let cobalt = &mut tin.flows[queue].cobalt;
        if cobalt.queue_empty(&tin.numbers.constants, now) {
            tin.unresponsive = tin.unresponsive.wrapping_sub(1);
        }
        if cobalt.p_drop > 0 || cobalt.count > 0 || (now as i64) < cobalt.drop_next {
            tin.enter(queue, Set::Decaying);
            tin.lists.push(DECAYING, queue);
        } else {
            tin.enter(queue, Set::None);
            tin.lists.remove(queue);
        }
    }

    /// Takes packets from a queue until COBALT lets one pass or, in `ingress` mode, drops one. The
    /// last packet of the queue is never dropped.
    #[inline]
    fn take_by_cobalt(
        &mut self,
        (tin, queue): (usize, usize),
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Served<P> {
        loop {
            let Some(mut queued) = self.take(tin, queue) else { return Served::Empty };
            let length = queued.note;
            let Tin { flows, numbers, bulk, .. } = &mut self.tins[tin];
            let flow = &mut flows[queue];
            // In `ingress` mode, in which drops use capacity, COBALT's target is at least the time
            // of two MTUs for each bulk queue. Otherwise drops could use all capacity.
            let flows = if self.params.ingress { u32::from(*bulk) } else { 0 };
            let Queued { at, packet, .. } = &mut queued;
            let drop = flow.cobalt.should_drop(
                &numbers.constants,
                call.now,
                *at,
                packet,
                flows,
                call.draws,
            );
            let marked = flow.cobalt.ecn_marked;
            let drop = drop && !flow.fifo.is_empty();
            if marked {
                call.sink.marked(&queued.packet, MarkReason::Early);
            }
            if !drop {
                self.counters.ecn_mark += u64::from(marked);
                self.charge(call.now, tin, length, false);
                self.use_turn(tin, queue, length);
                self.left_at = Some(queued.at);
                return Served::Packet(queued.packet);
            }
            self.counters.dropped += 1;
            self.totals.drops += 1;
            call.sink.dropped(queued.packet, DropReason::Early, true);
            if self.params.ingress {
                self.charge(call.now, tin, length, true);
                self.use_turn(tin, queue, length);
                return Served::Again;
            }
        }
    }

    #[inline]
    fn use_turn(&mut self, tin: usize, queue: usize, length: u32) {
        let tin = &mut self.tins[tin];
        let deficit = &mut tin.flows[queue].deficit;
        *deficit = deficit.wrapping_sub(length as i32);
        tin.deficit = tin.deficit.wrapping_sub(length as i32);
    }

    /// Returns the time for the next `dequeue` after a sent packet. The shaper requests it for
    /// queued packets, and COBALT for the decay of an empty queue's state. `None` for no request.
    fn after_packet(&self, now: Nanos) -> Option<Nanos> {
        if self.packets > 0 {
            let is_ahead = self.shaper.time_next > now;
            return is_ahead.then_some(self.shaper.time_next.min(self.shaper.failsafe));
        }
        let forgetting = self.tins.iter().find(|tin| tin.decaying > 0);
        forgetting.map(|tin| now + tin.numbers.constants.target)
    }
}
