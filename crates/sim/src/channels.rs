//! Channels: messages between hosts over TCP connections that stay open.
//!
//! A channel leads from the host that opens it to another host, and carries messages in both
//! directions. A message arrives when TCP has delivered its last byte. The channel's connection is
//! opened for the first message. When the connection breaks, all messages in transit are lost, and
//! the next message opens a new connection.

use crate::world::{Change, Handle, Opening, Owner, World, hash};
use sojourn_network::{Place, node};
use sojourn_random::Key;
use sojourn_tcp::Params;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Number of a host, which the owner of the channels assigns.
pub type Host = u32;

/// A message, of which TCP needs only the length.
pub trait Message: Copy {
    /// Returns the message's length in bytes, without TCP's headers.
    fn bytes(&self) -> u64;
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Mail<M> {
    /// The sending host.
    pub from: Host,
    /// The receiving host.
    pub to: Host,
    /// The message.
    pub message: M,
}

/// One channel. In arrays of two, the opener's value is first.
#[derive(Clone, Debug)]
struct Channel<M> {
    hosts: [Host; 2],
    /// Slot of the opener's end of the connection; `None` if no connection is open.
    slot: Option<u32>,
    places: [Place; 2],
    accounts: [u32; 2],
    /// Number for hashes of packet headers.
    identity: u32,
    /// Number of connections opened so far.
    connections: u32,
    /// Whether a partition separates the hosts, so that they discard the channel's packets.
    cut: bool,
    /// Messages in transit by sending side, each with the number of bytes written up to its end.
    queues: [VecDeque<(u64, M)>; 2],
    /// Bytes that each side has written on the present connection.
    written: [u64; 2],
}

/// All channels of an application.
#[derive(Clone, Debug)]
pub struct Channels<M> {
    app: u32,
    params: Arc<Params>,
    key: Key,
    list: Vec<Channel<M>>,
    of: BTreeMap<(Host, Host), u32>,
    inbox: VecDeque<Mail<M>>,
    broken: VecDeque<(Host, Host)>,
    /// Number of messages lost because their connections broke or were not open.
    pub lost: u64,
}

impl<M: Message> Channels<M> {
    /// Returns an empty set of channels of the application with number `app`.
    pub fn new(app: u32, params: &Params, key: Key) -> Self {
        Self {
            app,
            params: Arc::new(params.clone()),
            key,
            list: Vec::new(),
            of: BTreeMap::new(),
            inbox: VecDeque::new(),
            broken: VecDeque::new(),
            lost: 0,
        }
    }

    /// Removes and returns the next message that has arrived.
    pub fn next_mail(&mut self) -> Option<Mail<M>> {
        self.inbox.pop_front()
    }

    /// Removes and returns the next channel whose connection broke: its opener and the other host.
    pub fn next_broken(&mut self) -> Option<(Host, Host)> {
        self.broken.pop_front()
    }

    /// Sets for all channels whether a partition separates their hosts.
    pub fn cut(&mut self, world: &mut World, is_cut: impl Fn(Host, Host) -> bool) {
        for channel in &mut self.list {
            channel.cut = is_cut(channel.hosts[0], channel.hosts[1]);
            if let Some(slot) = channel.slot {
                world.connections.cut(slot, channel.cut);
            }
        }
    }

    /// Handles a change of a channel's connection.
    pub fn on_change(&mut self, connection: Handle, change: Change) {
        match change {
            Change::Progress { delivered, .. } => {
                self.deliver(connection.tag, connection.slot & 1, delivered);
            }
            Change::Closed | Change::Lost => self.broke(connection.tag),
            Change::Complete | Change::Settled => {}
        }
    }

    /// Moves into the inbox the messages to side `to` (0 for the opener, 1 for the other host) that
    /// end within the first `delivered` bytes of their direction.
    fn deliver(&mut self, id: u32, to: u32, delivered: u64) {
        let channel = &mut self.list[id as usize];
        let from = (to ^ 1) as usize;
        while let Some(&(end, message)) = channel.queues[from].front()
            && end <= delivered
        {
            channel.queues[from].pop_front();
            let (from, to) = (channel.hosts[from], channel.hosts[to as usize]);
            self.inbox.push_back(Mail { from, to, message });
        }
    }

    /// Handles the end of a channel's connection: counts its messages as lost and reports the
    /// break.
    fn broke(&mut self, id: u32) {
        let channel = &mut self.list[id as usize];
        channel.slot = None;
        channel.written = [0; 2];
        for queue in &mut channel.queues {
            self.lost += queue.len() as u64;
            queue.clear();
        }
        self.broken.push_back((channel.hosts[0], channel.hosts[1]));
    }

    /// Returns the number of messages in transit or in the inbox.
    pub fn pending(&self) -> u64 {
        let queues = self.list.iter().flat_map(|channel| &channel.queues);
        queues.map(|queue| queue.len() as u64).sum::<u64>() + self.inbox.len() as u64
    }

    /// Sends a message on the channel that `from` opened to `to`. `nodes` are the plan's nodes of
    /// both hosts; `cut` is whether a partition separates the hosts, for a new channel.
    pub fn post(
        &mut self,
        world: &mut World,
        (from, to): (Host, Host),
        nodes: [u32; 2],
        message: M,
        cut: bool,
    ) {
        let id = match self.of.get(&(from, to)) {
            Some(&id) => id,
            None => self.make(world, [from, to], nodes, cut),
        };
        if self.list[id as usize].slot.is_none() {
            self.connect(world, id, nodes);
        }
        self.write(world, id, 0, message);
    }

    /// Sends a message to `opener` on the channel that `opener` opened to `from`. The message is
    /// lost if the channel's connection is no longer open.
    pub fn post_back(&mut self, world: &mut World, from: Host, opener: Host, message: M) {
        match self.of.get(&(opener, from)) {
            Some(&id) if self.list[id as usize].slot.is_some() => {
                self.write(world, id, 1, message);
            }
            _ => self.lost += 1,
        }
    }

    fn make(&mut self, world: &mut World, hosts: [Host; 2], nodes: [u32; 2], cut: bool) -> u32 {
        let mut path =
            |from, to| world.net.path(world.now, from, to).expect("a plan's hosts are linked");
        let places = [path(nodes[0], nodes[1]), path(nodes[1], nodes[0])];
        let accounts = [world.net.open_account(), world.net.open_account()];
        let id = self.list.len() as u32;
        self.list.push(Channel {
            hosts,
            slot: None,
            places,
            accounts,
            identity: world.new_identity(),
            connections: 0,
            cut,
            queues: Default::default(),
            written: [0; 2],
        });
        self.of.insert((hosts[0], hosts[1]), id);
        id
    }

    fn connect(&mut self, world: &mut World, id: u32, nodes: [u32; 2]) {
        let channel = &mut self.list[id as usize];
        let count = channel.connections;
        channel.connections += 1;
        let key = self.key.child(u64::from(channel.hosts[0])).child(u64::from(channel.hosts[1]));
        channel.slot = Some(world.install(&Opening {
            params: &self.params,
            owner: Owner::App(self.app),
            tag: id,
            forward: true,
            followed: true,
            ends: (node(nodes[0]), node(nodes[1]), channel.places[0], channel.places[1]),
            accounts: channel.accounts,
            hashes: [0, 1].map(|way| hash(world.seed, channel.identity, count, way)),
            draw: key.child(u64::from(count)).stream("tcp").next_u32(),
            tos: 0,
            cut: channel.cut,
        }));
    }

    fn write(&mut self, world: &mut World, id: u32, side: u32, message: M) {
        let channel = &mut self.list[id as usize];
        let slot = channel.slot.expect("open") + side;
        let bytes = message.bytes();
        let way = side as usize;
        channel.written[way] += bytes;
        channel.queues[way].push_back((channel.written[way], message));
        let tcp = world.connections.end(slot);
        tcp.write(bytes);
        // The ends of a crashed host are closed and send nothing.
        if !tcp.is_closed() && world.flush(slot).is_some() {
            self.broke(id);
        }
    }

    /// Handles the crash of a host: removes the connections that it opened, and aborts its ends of
    /// all other connections, which answer with a reset after the host's restart.
    pub fn stop_host(&mut self, world: &mut World, host: Host) {
        for id in 0..self.list.len() as u32 {
            let channel = &self.list[id as usize];
            let Some(slot) = channel.slot else { continue };
            if channel.hosts[0] == host {
                world.remove(slot);
                self.broke(id);
            } else if channel.hosts[1] == host {
                world.abort(slot + 1);
            }
        }
    }

    /// Removes the connections of all channels for which `gone(opener, other host)` holds.
    pub fn give_up(&mut self, world: &mut World, gone: impl Fn(Host, Host) -> bool) {
        for id in 0..self.list.len() as u32 {
            let channel = &self.list[id as usize];
            let Some(slot) = channel.slot else { continue };
            if gone(channel.hosts[0], channel.hosts[1]) {
                world.remove(slot);
                self.broke(id);
            }
        }
    }
}
