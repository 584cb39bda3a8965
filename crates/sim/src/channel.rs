//! Channels: messages between hosts over TCP connections that stay open.
//!
//! A channel leads from the host that opens it to another, and carries messages both ways, each whole
//! and in order, as TCP delivers their last bytes. Its connection is opened with the first message. What
//! is on its way when the connection breaks is lost, and the next message opens another one.

use crate::engine::{Engine, hash};
use crate::store::Message;
use crate::tcp_host::{Opening, Purpose};
use sojourn_network::{Place, Tally, node};
use sojourn_plan::Plan;
use sojourn_random::Key;
use sojourn_tcp::Params;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A host of the store: nodes first, then clients.
pub(crate) type Host = u32;

/// A message that has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mail {
    pub(crate) from: Host,
    pub(crate) to: Host,
    pub(crate) message: Message,
}

/// One channel; of pairs, the opener's side comes first.
#[derive(Clone, Debug)]
struct Channel {
    hosts: [Host; 2],
    /// Slot of its connection's first end, if it is open.
    slot: Option<u32>,
    places: [Place; 2],
    accounts: [u32; 2],
    connections: u32,
    /// Nothing gets through: hosts hear each other no more.
    cut: bool,
    /// Messages on their way by their sender, each with the bytes written up to its end.
    queues: [VecDeque<(u64, Message)>; 2],
    written: [u64; 2],
}

/// All channels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channels {
    list: Vec<Channel>,
    of: BTreeMap<(Host, Host), u32>,
    params: Option<Arc<Params>>,
    key: Option<Key>,
    inbox: VecDeque<Mail>,
    broken: VecDeque<(Host, Host)>,
    /// What the connections that are gone had done.
    pub(crate) tally: Tally,
    /// Messages lost with their connections.
    pub(crate) lost: u64,
}

impl Channels {
    /// None yet.
    pub(crate) fn new(plan: &Plan, seed: u64) -> Self {
        let Some(store) = &plan.store else { return Self::default() };
        let params = Some(Arc::new(store.tcp.clone()));
        Self { params, key: Some(Key::new(seed, &store.name)), ..Self::default() }
    }

    /// Whether anything waits to be taken.
    pub(crate) fn has_news(&self) -> bool {
        !self.inbox.is_empty() || !self.broken.is_empty()
    }

    /// The next message that has come.
    pub(crate) fn next_mail(&mut self) -> Option<Mail> {
        self.inbox.pop_front()
    }

    /// The next channel that broke: who opened it, and to whom.
    pub(crate) fn next_broken(&mut self) -> Option<(Host, Host)> {
        self.broken.pop_front()
    }

    pub(crate) fn is_cut(&self, channel: u32) -> bool {
        self.list[channel as usize].cut
    }

    /// Who is cut from whom is settled anew.
    pub(crate) fn cut(&mut self, is_cut: impl Fn(Host, Host) -> bool) {
        for channel in &mut self.list {
            channel.cut = is_cut(channel.hosts[0], channel.hosts[1]);
        }
    }

    /// `delivered` bytes have come to side `to` of a channel.
    pub(crate) fn deliver(&mut self, channel: u32, to: u32, delivered: u64) {
        let channel = &mut self.list[channel as usize];
        let from = (to ^ 1) as usize;
        while let Some(&(end, message)) = channel.queues[from].front()
            && end <= delivered
        {
            channel.queues[from].pop_front();
            let (from, to) = (channel.hosts[from], channel.hosts[to as usize]);
            self.inbox.push_back(Mail { from, to, message });
        }
    }

    /// A channel's connection is gone.
    pub(crate) fn broke(&mut self, channel: u32) {
        let channel = &mut self.list[channel as usize];
        channel.slot = None;
        channel.written = [0; 2];
        for queue in &mut channel.queues {
            self.lost += queue.len() as u64;
            queue.clear();
        }
        self.broken.push_back((channel.hosts[0], channel.hosts[1]));
    }

    /// Messages on their way.
    pub(crate) fn under_way(&self) -> u64 {
        let queues = self.list.iter().flat_map(|channel| &channel.queues);
        queues.map(|queue| queue.len() as u64).sum::<u64>() + self.inbox.len() as u64
    }
}

impl Engine<'_> {
    /// Sends a message from a host to another on the channel that `from` opened.
    pub(crate) fn post(
        &mut self,
        from: Host,
        to: Host,
        nodes: [u32; 2],
        message: Message,
        cut: bool,
    ) {
        let id = match self.channels.of.get(&(from, to)) {
            Some(&id) => id,
            None => self.make_channel([from, to], nodes, cut),
        };
        if self.channels.list[id as usize].slot.is_none() {
            self.connect_channel(id, nodes);
        }
        self.write_message(id, 0, message);
    }

    /// Answers on the channel that `opener` opened; what cannot be sent any more is lost.
    pub(crate) fn post_back(&mut self, from: Host, opener: Host, message: Message) {
        match self.channels.of.get(&(opener, from)) {
            Some(&id) if self.channels.list[id as usize].slot.is_some() => {
                self.write_message(id, 1, message);
            }
            _ => self.channels.lost += 1,
        }
    }

    fn make_channel(&mut self, hosts: [Host; 2], nodes: [u32; 2], cut: bool) -> u32 {
        let mut path =
            |from, to| self.net.routes.path(from, to).expect("a plan's hosts are linked");
        let places = [path(nodes[0], nodes[1]), path(nodes[1], nodes[0])];
        let accounts = [self.net.open_account(), self.net.open_account()];
        let id = self.channels.list.len() as u32;
        self.channels.list.push(Channel {
            hosts,
            slot: None,
            places,
            accounts,
            connections: 0,
            cut,
            queues: Default::default(),
            written: [0; 2],
        });
        self.channels.of.insert((hosts[0], hosts[1]), id);
        id
    }

    fn connect_channel(&mut self, id: u32, nodes: [u32; 2]) {
        let channels = &mut self.channels;
        let channel = &mut channels.list[id as usize];
        let count = channel.connections;
        channel.connections += 1;
        // Flows and channels share the hash's numbers.
        let owner = self.flows.len() as u32 + id;
        let params = channels.params.clone().expect("a plan with channels has parameters");
        let key = channels.key.expect("a plan with channels has a store");
        let key = key.child(u64::from(channel.hosts[0])).child(u64::from(channel.hosts[1]));
        let ends = (node(nodes[0]), node(nodes[1]), channel.places[0], channel.places[1]);
        let accounts = channel.accounts;
        let slot = self.install(&Opening {
            params: &params,
            owner: id,
            purpose: Purpose::Channel,
            ends,
            accounts,
            hashes: [0, 1].map(|way| hash(self.seed, owner, count, way)),
            phase: key.child(u64::from(count)).stream("tcp").next_u32(),
            tos: 0,
        });
        self.channels.list[id as usize].slot = Some(slot);
    }

    fn write_message(&mut self, id: u32, side: u32, message: Message) {
        let channel = &mut self.channels.list[id as usize];
        let slot = channel.slot.expect("open") + side;
        let bytes = message.bytes();
        let way = side as usize;
        channel.written[way] += bytes;
        channel.queues[way].push_back((channel.written[way], message));
        self.connections.end(slot).write(bytes);
        // A host that is down does not send: its ends are closed.
        if !self.connections.end(slot).is_closed() {
            self.pump(slot);
        }
    }

    /// A host stops dead: its own channels are gone with it; others' ends there know nothing any more,
    /// and answer with a reset once the host is back.
    pub(crate) fn stop_host(&mut self, host: Host) {
        for id in 0..self.channels.list.len() as u32 {
            let channel = &self.channels.list[id as usize];
            let Some(slot) = channel.slot else { continue };
            if channel.hosts[0] == host {
                self.free_pair(slot);
                self.channels.broke(id);
            } else if channel.hosts[1] == host {
                self.connections.end(slot + 1).abort();
                self.timers.clear(self.connections.first_timer() + slot + 1);
            }
        }
    }

    /// A host gives up its channels to those that it cannot reach any more.
    pub(crate) fn give_up(&mut self, gone: impl Fn(Host, Host) -> bool) {
        for id in 0..self.channels.list.len() as u32 {
            let channel = &self.channels.list[id as usize];
            let Some(slot) = channel.slot else { continue };
            if gone(channel.hosts[0], channel.hosts[1]) {
                self.free_pair(slot);
                self.channels.broke(id);
            }
        }
    }
}
