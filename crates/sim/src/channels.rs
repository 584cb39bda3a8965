//! Channels: messages between hosts over TCP connections that stay open.
//!
//! A channel leads from the host that opens it to another, and carries messages both ways, each whole
//! and in order, as TCP delivers their last bytes. Its connection is opened with the first message. A
//! message that is on its way when the connection breaks is lost, and the next one opens another.

use crate::world::{Change, Handle, Opening, Owner, World, hash};
use sojourn_network::{Place, node};
use sojourn_random::Key;
use sojourn_tcp::Params;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A host, by the number that the channels' owner gives it.
pub type Host = u32;

/// A message as TCP sees it.
pub trait Message: Copy {
    /// Returns its length on the wire.
    fn bytes(&self) -> u64;
}

/// A message that has come.
#[derive(Clone, Copy, Debug)]
pub struct Mail<M> {
    /// Its sender.
    pub from: Host,
    /// Its receiver.
    pub to: Host,
    /// Its content.
    pub message: M,
}

/// One channel; of pairs, the opener's side comes first.
#[derive(Clone, Debug)]
struct Channel<M> {
    hosts: [Host; 2],
    /// Slot of its connection's first end, if it is open.
    slot: Option<u32>,
    places: [Place; 2],
    accounts: [u32; 2],
    /// Number for hashes of packet headers.
    identity: u32,
    connections: u32,
    /// Nothing gets through: hosts hear each other no more.
    cut: bool,
    /// Messages on their way by their sender, each with the bytes written up to its end.
    queues: [VecDeque<(u64, M)>; 2],
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
    /// Messages lost with their connections.
    pub lost: u64,
}

impl<M: Message> Channels<M> {
    /// The channels of application `app`: none yet.
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

    /// Takes the next message that has come.
    pub fn next_mail(&mut self) -> Option<Mail<M>> {
        self.inbox.pop_front()
    }

    /// Takes the next channel that broke: who opened it, and to whom.
    pub fn next_broken(&mut self) -> Option<(Host, Host)> {
        self.broken.pop_front()
    }

    /// Settles anew who is cut from whom.
    pub fn cut(&mut self, world: &mut World, is_cut: impl Fn(Host, Host) -> bool) {
        for channel in &mut self.list {
            channel.cut = is_cut(channel.hosts[0], channel.hosts[1]);
            if let Some(slot) = channel.slot {
                world.connections.cut(slot, channel.cut);
            }
        }
    }

    /// Something happened to the connection of a channel.
    pub fn on_change(&mut self, connection: Handle, change: Change) {
        match change {
            Change::Progress { delivered, .. } => {
                self.deliver(connection.tag, connection.slot & 1, delivered);
            }
            Change::Closed | Change::Lost => self.broke(connection.tag),
            Change::Complete | Change::Settled => {}
        }
    }

    /// `delivered` bytes have come to side `to` of a channel.
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

    /// Returns the number of messages on their way.
    pub fn pending(&self) -> u64 {
        let queues = self.list.iter().flat_map(|channel| &channel.queues);
        queues.map(|queue| queue.len() as u64).sum::<u64>() + self.inbox.len() as u64
    }

    /// Sends a message from a host to another on the channel that `from` opened. `nodes` are theirs.
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

    /// Answers on the channel that `opener` opened; the message is lost if that is not open any more.
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
        // A host that is down does not send: its ends are closed.
        if !tcp.is_closed() && world.flush(slot).is_some() {
            self.broke(id);
        }
    }

    /// A host stops dead: its own channels are gone with it; others' ends there know nothing any more,
    /// and answer with a reset once the host is back.
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

    /// Hosts give up their channels to those that they cannot reach any more.
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
