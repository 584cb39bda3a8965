//! A replicated store: clients, coordinators and replicas, over TCP connections that stay open.
//!
//! A client sends requests to a coordinator on a connection of its own to that node. Between nodes
//! messages go one way on each connection, as in Cassandra: A's messages to B use the connection
//! that A opened, B's answers the one that B opened. A lost packet therefore delays everything
//! behind it until TCP has repaired the loss, and nothing else repairs it: a coordinator does not
//! send a request twice. A node's work takes time, some of it at once and the rest in a queue.
//!
//! The files are: `client` makes requests, `coordinator` handles them, `service` does the nodes'
//! work, `outage` stops nodes; the decisions are those of `crates/replication`. These files act on
//! the types of `message`, `request`, `replica`, `faults`, `probe`, `staleness` and on [`Store`].
//!
//! Departures from Cassandra: the snitch does not learn who is fast; writes to another data centre go to
//! each replica there, not by one of them; a scan reads the replicas of its first record; nodes learn of
//! a failure a fixed time after it, not by gossip; hints are handed over without a limit of rate.
//!
//! Events of the store are ordered by time and then by the order in which they were made.

mod client;
mod coordinator;
mod faults;
mod keys;
mod message;
mod outage;
mod probe;
mod replica;
mod request;
mod script;
mod service;
mod staleness;
mod summary;

pub use script::{Asked, Kind, script};

use crate::app::{App, Declared, Report};
use crate::channels::{Channels, Host, Mail};
use crate::schedule::Schedule;
use crate::world::{Change, World};
use faults::Faults;
use message::{Id, Message};
use probe::{NAMES, Probe};
use replica::{Replica, Task};
use request::Slots;
use sojourn_measure::{Count, Imbalance, ledger::balance};
use sojourn_plan::{PlanError, Store as Params, at};
use sojourn_random::{Key, Stream};
use sojourn_replication::{Chooser, Hints, NodeId, Placement, Ring, murmur3};
use sojourn_units::{EPOCH, Nanos};
use staleness::Staleness;
use std::collections::{BTreeSet, VecDeque};

/// Hints that a node keeps at most.
const MOST_HINTS: usize = 1 << 20;

/// An event that is due at a time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A client makes a request, in a closed loop.
    Issue { client: u32 },
    /// A request comes due, in an open loop.
    Arrive { client: u32 },
    /// A node is done with something it began in this life.
    Served { node: NodeId, life: u32, task: Task },
    /// A client has waited long enough.
    ClientExpires { id: Id },
    /// A coordinator has.
    Expires { id: Id },
    /// A coordinator asks another replica.
    Speculate { id: Id },
    /// A fault begins, is noticed, ends, is noticed to have ended.
    Fault { index: u32, stage: u8 },
}

/// One client.
pub(super) struct Client {
    data_centre: u32,
    chooser: Chooser,
    work: Stream,
    gaps: Stream,
    /// Requests under way.
    active: u32,
    /// Those that wait until fewer are.
    backlog: VecDeque<Id>,
}

/// The store in a run.
pub struct Store {
    params: Params,
    ring: Ring,
    placement: Placement,
    /// First number of keys, so that runs have different keys.
    base: u64,
    key: Key,
    now: Nanos,
    schedule: Schedule<Event>,
    channels: Channels<Message>,
    clients: Vec<Client>,
    replicas: Vec<Replica>,
    hints: Vec<Hints<(u64, u64)>>,
    slots: Slots,
    faults: Faults,
    keys: keys::Keys,
    /// Messages that have come.
    taken: u64,
    /// Versions given out.
    version: u64,
    /// Requests made, and those that may be.
    issued: u64,
    probe: Probe,
    staleness: Staleness,
    /// The nodes that a request goes to, and those that keep a key.
    found: Vec<NodeId>,
}

impl Store {
    /// Returns the store of a plan that is valid.
    ///
    /// # Errors
    /// If its nodes make no ring, which only drawn tokens can do.
    fn new(params: &Params, world: &World, (number, id): (usize, u32)) -> Result<Self, PlanError> {
        let seed = world.seed;
        let wrong = |message| PlanError::new(at!["apps", number, "tokens"], message);
        let ring = params.ring(seed).map_err(wrong)?;
        let key = Key::new(seed, &params.name);
        let nodes = params.nodes.len();
        let reading: BTreeSet<u32> = params.clients.iter().map(|c| c.data_centre).collect();
        let need = |&local: &u32| params.read_level.need(&params.placement, local);
        let mut store = Self {
            ring,
            placement: params.placement.clone(),
            base: params.first_key(seed),
            key,
            now: EPOCH,
            schedule: Schedule::default(),
            channels: Channels::new(id, &params.tcp, key),
            clients: Vec::with_capacity(params.clients.len()),
            replicas: (0..nodes).map(|n| Replica::new(key.child(n as u64))).collect(),
            hints: (0..nodes).map(|_| Hints::new(MOST_HINTS)).collect(),
            slots: Slots::default(),
            faults: Faults::new(params),
            keys: keys::Keys::new(&params.workload),
            taken: 0,
            version: 0,
            issued: 0,
            probe: Probe::new(EPOCH + world.plan.warmup, params.load.warmup, nodes),
            staleness: Staleness::new(reading.iter().map(need).collect()),
            found: Vec::new(),
            params: params.clone(),
        };
        store.begin_clients();
        for (index, at, stage) in store.faults.schedule() {
            store.at(at, Event::Fault { index, stage });
        }
        Ok(store)
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.schedule.add(at, event);
    }

    /// Number of a node or client among all hosts.
    fn client_host(&self, client: u32) -> Host {
        self.replicas.len() as Host + client
    }

    /// Returns the plan's node of a host.
    fn node_of(&self, host: Host) -> u32 {
        let nodes = self.params.nodes.len();
        let host = host as usize;
        let of =
            if host < nodes { self.params.nodes[host] } else { self.params.clients[host - nodes] };
        of.node as u32
    }

    /// The bytes of a record's key, as Cassandra's `bigint` has them, hashed.
    fn find_replicas(&mut self, record: u64) {
        let key = self.base.wrapping_add(record).to_be_bytes();
        self.placement.replicas(&self.ring, murmur3::token(&key), &mut self.found);
    }

    /// Sends a message on the sender's own channel.
    fn send(&mut self, world: &mut World, from: Host, to: Host, message: Message) {
        let nodes = [self.node_of(from), self.node_of(to)];
        let cut = self.faults.cut(from, to, self.now);
        self.probe.messages += 1;
        self.channels.post(world, (from, to), nodes, message, cut);
    }

    /// Does what is due, takes what has come, and sets the timer.
    fn act(&mut self, world: &mut World, id: u32) {
        self.now = world.now;
        while let Some((_, event)) = self.schedule.take_due(self.now) {
            match event {
                Event::Issue { client } => self.issue(world, client),
                Event::Arrive { client } => self.arrive(world, client),
                Event::Served { node, life, task } => self.served(world, node, life, task),
                Event::ClientExpires { id } => self.client_expires(world, id),
                Event::Expires { id } => self.expires(world, id),
                Event::Speculate { id } => self.speculate(world, id),
                Event::Fault { index, stage } => self.fault(world, index, stage),
            }
        }
        loop {
            if let Some(mail) = self.channels.next_mail() {
                self.taken += 1;
                self.take(world, mail);
            } else if let Some((from, to)) = self.channels.next_broken() {
                self.broken(world, from, to);
            } else {
                break;
            }
        }
        match self.schedule.next_at() {
            Some(at) => world.set_timer(id, at.max(world.now)),
            None => world.clear_timer(id),
        }
    }

    /// A message has come to a host.
    fn take(&mut self, world: &mut World, Mail { from, to, message }: Mail<Message>) {
        match message {
            Message::Ask { id, .. } => self.enqueue(world, to, Task::Coordinate { id }),
            Message::Answer { id, outcome, .. } => self.answered(world, id, outcome),
            Message::Write { id, step, key, version, .. } => {
                self.enqueue(world, to, Task::Write { from, id, step, key, version });
            }
            Message::Read { id, step, key, records } => {
                self.enqueue(world, to, Task::Read { from, id, step, key, records });
            }
            Message::Done { id, step, version, .. } => {
                self.done(world, from, to, id, step, version);
            }
            Message::Hint { key, version, .. } => {
                self.enqueue(world, to, Task::Hint { from, key, version });
            }
            Message::Hinted => self.hand_over(world, to, from),
        }
    }
}

impl App for Store {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::App(number, sojourn_plan::App::Store(params)) = declared else {
            return Ok(None);
        };
        let store = Self::new(params, world, (number, id))?;
        if let Some(at) = store.schedule.next_at() {
            world.set_timer(id, at);
        }
        Ok(Some(store))
    }

    fn on_timer(&mut self, world: &mut World, id: u32) {
        self.act(world, id);
    }

    fn on_event(&mut self, world: &mut World, id: u32, event: crate::app::Event) {
        let crate::app::Event::Connection(connection, change) = event else { return };
        self.channels.on_change(connection, change);
        if change == Change::Settled {
            self.act(world, id);
        }
    }

    /// Requests carry whether they are measured, so nothing is forgotten here.
    fn restart(&mut self) {}

    /// Compares the ledgers with the messages and requests at hand.
    fn audit(&self, _world: &World, _id: u32) -> Result<(), Imbalance> {
        let name = &self.params.name;
        let count = |packets| Count { packets, bytes: 0 };
        let gone = self.taken + self.channels.lost;
        let booked = count(self.probe.messages.wrapping_sub(gone));
        let found = count(self.channels.pending());
        balance(|| format!("messages of {name}"), booked, found)?;
        for (kind, (what, ledger)) in NAMES.iter().zip(&self.probe.ledgers).enumerate() {
            // More outcomes than requests show as a number that nothing can match.
            let booked = count(ledger.pending().unwrap_or(u64::MAX));
            let found = count(self.slots.waiting(kind));
            balance(|| format!("{what} of {name}"), booked, found)?;
        }
        let held = self.probe.ledgers.iter().map(|ledger| ledger.offered).sum::<u64>();
        balance(|| format!("requests of {name}"), count(held), count(self.issued))
    }

    fn report(&self, world: &World, id: u32) -> Report {
        Report {
            rows: self.rows(world, id),
            distributions: self.distributions(),
            ..Report::default()
        }
    }
}
