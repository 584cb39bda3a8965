//! Packet sources over UDP: each emission is a datagram.

use crate::app::{App, Declared, Event, Report};
use crate::emitter::Emitter;
use crate::load::{Cargo, Datagram};
use crate::world::{AGAIN, Access, World, hash};
use sojourn_measure::Imbalance;
use sojourn_network::{Body, Class, Copies, Packet};
use sojourn_plan::{PlanError, Transport};
use sojourn_traffic::UDP_HEADERS;

/// The packet source of a UDP flow.
#[derive(Clone, Debug)]
pub struct Datagrams(Emitter);

impl Datagrams {
    fn send(&mut self, world: &mut World, id: u32) {
        let now = world.now;
        let flow = &mut world.flows[id as usize];
        let group = &mut world.groups[flow.group as usize];
        if self.0.seq == 0 {
            group.begin(now);
        }
        let (emission, seq) = self.0.take();
        let over = self.0.next.at >= flow.stop;
        if over {
            flow.end = Some(now);
            group.end(now);
        }
        let tos = world.plan.groups[flow.group as usize].dscp << 2;
        let hash = hash(world.seed, id, 0, 0);
        let payload = emission.payload;
        let len = payload + UDP_HEADERS;
        let packet = Packet::new(Class::Udp, flow.nodes, flow.places.0, hash, len, tos);
        let body = Body {
            number: 0,
            sent_at: emission.at,
            endpoint: id,
            connection: 0,
            flow: flow.account,
            copies: Copies::ONE,
            load: Cargo::Datagram(Datagram { seq, payload }),
        };
        if over {
            world.clear_timer(id);
        } else {
            world.set_timer(id, self.0.next.at.max(now));
        }
        world.net.send(now, packet, body);
        if over {
            world.release(id);
        }
    }
}

impl App for Datagrams {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::Flow(group, planned) = declared else { return Ok(None) };
        let Transport::Udp = group.transport else { return Ok(None) };
        let emitter = Emitter::new(group, planned, world.plan.duration);
        Ok(emitter.map(|emitter| {
            world.start_timer(id, emitter.next.at);
            Self(emitter)
        }))
    }

    /// Sends the next datagram, and later ones that are overdue because they waited for a server.
    #[inline]
    fn on_timer(&mut self, world: &mut World, id: u32) {
        match world.access(id) {
            Access::Granted => {
                self.send(world, id);
                while self.0.next.at < world.now && self.0.next.at < world.flows[id as usize].stop {
                    self.send(world, id);
                }
            }
            // Packets that are due before the next request for a server are never sent.
            Access::Refused => {
                while self.0.next.at < world.now + AGAIN {
                    self.0.skip();
                }
                world.retry_at(id, self.0.next.at);
            }
            Access::Pending | Access::Served => {}
        }
    }

    #[inline]
    fn on_event(&mut self, world: &mut World, id: u32, event: Event) {
        let Event::Datagram(datagram, delay) = event else { return };
        let flow = &mut world.flows[id as usize];
        self.0.receiver.receive(world.now, datagram.seq, datagram.payload, delay);
        let group = &mut world.groups[flow.group as usize];
        group.delay.record(delay);
        group.bytes += u64::from(datagram.payload);
        if let Some(histogram) = &mut flow.delay {
            histogram.record(delay);
        }
    }

    fn restart(&mut self) {
        self.0.restart();
    }

    fn audit(&self, _world: &World, _id: u32) -> Result<(), Imbalance> {
        Ok(())
    }

    fn report(&self, world: &World, id: u32) -> Report {
        let flow = &world.flows[id as usize];
        let inside = world.net.accounts[flow.account as usize].in_network().packets;
        Report {
            bytes: Some(self.0.bytes()),
            jitter: self.0.receiver.jitter(),
            mos: self.0.mos(&world.plan.groups[flow.group as usize].app, inside),
            delays: self.0.receiver.delays,
            ..Report::default()
        }
    }
}
