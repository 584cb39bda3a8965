//! A replicated store: clients, coordinators and replicas, over TCP connections that stay open.
//!
//! A client asks a coordinator on a connection of its own to that node. Between nodes messages go one
//! way on each connection, as Cassandra has it: what A says to B goes on the connection that A opened,
//! B's answers on the one that B opened. So a lost packet holds up what is sent behind it until TCP has
//! mended it, and nothing else mends it: a coordinator does not ask twice. What a node does takes time,
//! some things at once and the rest in a queue.
//!
//! Who is where: [`client`] makes requests, [`coordinator`] sees them through, [`replica`] keeps data,
//! [`faults`] takes nodes away; the decisions are those of `crates/replication`.
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
mod replica;
mod report;
mod script;

use crate::channel::{Channels, Host};
use crate::engine::Engine;
use client::Client;
use coordinator::Slots;
use faults::Faults;
use replica::{Replica, Task};
use sojourn_measure::{Count, Imbalance, ledger::balance};
use sojourn_plan::{Plan, PlanError, Store as Params};
use sojourn_random::Key;
use sojourn_replication::{Hints, NodeId, Outcome, Placement, Ring, murmur3};
use sojourn_units::{EPOCH, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use report::Report;
pub use script::{Asked, Kind, script};

/// Hints that a node keeps at most.
const MOST_HINTS: usize = 1 << 20;
/// Bytes of a message beside the record: headers of the native protocol and of Cassandra's own.
const OVERHEAD: u64 = 100;

/// A request, in a slot that is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    slot: u32,
    generation: u32,
}

/// What hosts say to each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// A client to its coordinator.
    Ask { id: Id, bytes: u64 },
    /// And back.
    Answer { id: Id, outcome: Outcome, bytes: u64 },
    /// A coordinator to a replica, of whose `step` it is.
    Write { id: Id, step: u8, key: u64, version: u64, bytes: u64 },
    /// The same; `records` of 0 asks for a digest.
    Read { id: Id, step: u8, key: u64, records: u32 },
    /// And back: the version that was read, or whether it failed.
    Done { id: Id, step: u8, version: Option<u64>, bytes: u64 },
    /// A write that was kept for the replica.
    Hint { key: u64, version: u64, bytes: u64 },
    /// And back.
    Hinted,
}

impl Message {
    /// Its length on the wire.
    pub(crate) fn bytes(&self) -> u64 {
        OVERHEAD
            + match *self {
                Self::Ask { bytes, .. }
                | Self::Answer { bytes, .. }
                | Self::Write { bytes, .. }
                | Self::Done { bytes, .. }
                | Self::Hint { bytes, .. } => bytes,
                Self::Read { .. } | Self::Hinted => 0,
            }
    }
}

/// What is to happen at a time.
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

struct Due {
    at: Nanos,
    made: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.made) == (other.at, other.made)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.made).cmp(&(other.at, other.made))
    }
}

/// The store in a run.
pub(crate) struct Store {
    params: Params,
    ring: Ring,
    placement: Placement,
    /// What keys are numbered from, so that runs have keys of their own.
    base: u64,
    key: Key,
    now: Nanos,
    made: u64,
    events: BinaryHeap<Reverse<Due>>,
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
    report: Report,
    /// The nodes that a request goes to, and those that keep a key.
    found: Vec<NodeId>,
}

impl Store {
    /// The store of a plan that is valid.
    ///
    /// # Errors
    /// If its nodes make no ring, which only drawn tokens can do.
    pub(crate) fn new(params: &Params, plan: &Plan, seed: u64) -> Result<Self, PlanError> {
        let wrong = |message| PlanError { at: "store.tokens".to_owned(), message };
        let ring = params.ring(seed).map_err(wrong)?;
        let key = Key::new(seed, &params.name);
        let nodes = params.nodes.len();
        let mut store = Self {
            ring,
            placement: params.placement.clone(),
            base: params.first_key(seed),
            key,
            now: EPOCH,
            made: 0,
            events: BinaryHeap::new(),
            clients: Vec::with_capacity(params.clients.len()),
            replicas: (0..nodes).map(|n| Replica::new(key.child(n as u64))).collect(),
            hints: (0..nodes).map(|_| Hints::new(MOST_HINTS)).collect(),
            slots: Slots::default(),
            faults: Faults::new(params),
            keys: keys::Keys::new(&params.workload),
            taken: 0,
            version: 0,
            issued: 0,
            report: Report::new(EPOCH + plan.warmup, params.load.warmup, nodes),
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
        self.made += 1;
        self.events.push(Reverse(Due { at, made: self.made, event }));
    }

    /// When it acts next by itself.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.events.peek().map(|Reverse(due)| due.at)
    }

    /// Number of a node or client among all hosts.
    fn client_host(&self, client: u32) -> Host {
        self.replicas.len() as Host + client
    }

    /// The plan's node of a host.
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
    fn send(&mut self, engine: &mut Engine, from: Host, to: Host, message: Message) {
        let nodes = [self.node_of(from), self.node_of(to)];
        let cut = self.faults.cut(from, to, self.now);
        self.report.messages += 1;
        engine.post(from, to, nodes, message, cut);
    }

    /// Does what is due, and takes what has come.
    fn act(&mut self, engine: &mut Engine) {
        self.now = engine.now;
        while let Some(Reverse(due)) = self.events.peek()
            && due.at <= self.now
        {
            let Some(Reverse(due)) = self.events.pop() else { break };
            match due.event {
                Event::Issue { client } => self.issue(engine, client),
                Event::Arrive { client } => self.arrive(engine, client),
                Event::Served { node, life, task } => self.served(engine, node, life, task),
                Event::ClientExpires { id } => self.client_expires(engine, id),
                Event::Expires { id } => self.expires(engine, id),
                Event::Speculate { id } => self.speculate(engine, id),
                Event::Fault { index, stage } => self.fault(engine, index, stage),
            }
        }
        loop {
            if let Some(mail) = engine.channels.next_mail() {
                self.taken += 1;
                self.take(engine, mail.from, mail.to, mail.message);
            } else if let Some((from, to)) = engine.channels.next_broken() {
                self.broken(engine, from, to);
            } else {
                break;
            }
        }
    }

    /// A message has come to a host.
    fn take(&mut self, engine: &mut Engine, from: Host, to: Host, message: Message) {
        match message {
            Message::Ask { id, .. } => self.enqueue(engine, to, Task::Coordinate { id }),
            Message::Answer { id, outcome, .. } => self.answered(engine, id, outcome),
            Message::Write { id, step, key, version, .. } => {
                self.enqueue(engine, to, Task::Write { from, id, step, key, version });
            }
            Message::Read { id, step, key, records } => {
                self.enqueue(engine, to, Task::Read { from, id, step, key, records });
            }
            Message::Done { id, step, version, .. } => {
                self.done(engine, from, to, id, step, version);
            }
            Message::Hint { key, version, .. } => {
                self.enqueue(engine, to, Task::Hint { from, key, version });
            }
            Message::Hinted => self.hand_over(engine, to, from),
        }
    }

    /// Compares the books with the requests at hand.
    ///
    /// # Errors
    /// The imbalance, if there is one.
    pub(crate) fn audit(&self, channels: &Channels) -> Result<(), Imbalance> {
        let count = |packets| Count { packets, bytes: 0 };
        let gone = self.taken + channels.lost;
        let booked = count(self.report.messages.wrapping_sub(gone));
        let found = count(channels.under_way());
        balance(|| format!("messages of {}", self.params.name), booked, found)?;
        for kind in 0..report::KINDS {
            let ledger = self.report.ledgers[kind];
            // More outcomes than requests show as a number that nothing can match.
            let booked = count(ledger.pending().unwrap_or(u64::MAX));
            let found = count(self.slots.waiting(kind));
            balance(|| format!("{} of {}", report::NAMES[kind], self.params.name), booked, found)?;
        }
        let held = self.report.ledgers.iter().map(|ledger| ledger.offered).sum::<u64>();
        balance(|| format!("requests of {}", self.params.name), count(held), count(self.issued))
    }
}

impl Engine<'_> {
    /// The store's time has come.
    pub(crate) fn store_due(&mut self) {
        self.serve();
    }

    /// The store takes its messages, and does what is due.
    pub(crate) fn serve(&mut self) {
        let Some(mut store) = self.store.take() else { return };
        store.act(self);
        let timer = self.flows.len() as u32;
        match store.next_event() {
            Some(at) => self.timers.set(timer, at.max(self.now)),
            None => self.timers.clear(timer),
        }
        self.store = Some(store);
    }
}
