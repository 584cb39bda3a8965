//! A queue of any discipline: one enum over all disciplines, dispatched by match.

use crate::declaration::{Configured, DisciplineParams};
use crate::discipline::{Call, Dequeue, Discipline, Draws, Leaf, Return, Sink, View};
use crate::packet::Packet;
use sojourn_units::{Nanos, each};

macro_rules! family {
    ($($(#[$serde:meta])? $module:ident::$Queue:ident $(in $Box:ident $open:tt $close:tt)?,)*) => {
        /// A queue of any discipline.
        #[derive(Clone, Debug)]
        pub enum Queue<P> {
            $(
                #[doc = concat!("See [`", stringify!($module), "`](crate::", stringify!($module), ").")]
                $Queue($($Box $open)? crate::$module::$Queue<P> $($close)?),
            )*
        }
    };
}

disciplines!(family!);

impl<P: Packet> Queue<P> {
    /// Returns the name of the queue's discipline.
    pub fn name(&self) -> &'static str {
        disciplines!(each! (Queue, self, queue => queue.params().table().name))
    }
}

impl<P: Packet> View for Queue<P> {
    fn packets(&self) -> usize {
        disciplines!(each! (Queue, self, queue => queue.packets()))
    }

    fn bytes(&self) -> u64 {
        disciplines!(each! (Queue, self, queue => queue.bytes()))
    }

    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        disciplines!(each! (Queue, self, queue => queue.enqueued_at(n)))
    }

    fn left_at(&self) -> Option<Nanos> {
        disciplines!(each! (Queue, self, queue => queue.left_at()))
    }
}

impl<P: Packet> Discipline<P> for Queue<P> {
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        disciplines!(each! (Queue, self, queue => queue.enqueue(packet, call)))
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        disciplines!(each! (Queue, self, queue => queue.dequeue(call)))
    }

    fn pass(&mut self, now: Nanos, packet: &P) -> bool {
        disciplines!(each! (Queue, self, queue => queue.pass(now, packet)))
    }

    fn rests(&self) -> bool {
        disciplines!(each! (Queue, self, queue => queue.rests()))
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        disciplines!(each! (Queue, self, queue => queue.head()))
    }

    fn wake_up(&self) -> Option<Nanos> {
        disciplines!(each! (Queue, self, queue => queue.wake_up()))
    }

    fn next_timer(&self) -> Option<Nanos> {
        disciplines!(each! (Queue, self, queue => queue.next_timer()))
    }

    fn on_timer(&mut self, now: Nanos) {
        disciplines!(each! (Queue, self, queue => queue.on_timer(now)));
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        disciplines!(each! (Queue, self, queue => queue.state(visit)));
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        disciplines!(each! (Queue, self, queue => queue.flow_state(flow, visit)));
    }

    fn leaves(&self, visit: &mut dyn FnMut(&str, Leaf<'_>)) {
        disciplines!(each! (Queue, self, queue => queue.leaves(visit)));
    }

    fn restart(&mut self) {
        disciplines!(each! (Queue, self, queue => queue.restart()));
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        disciplines!(each! (Queue, self, queue => queue.lists(visit)));
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        disciplines!(each! (Queue, self, queue => queue.counters(visit)));
    }
}
