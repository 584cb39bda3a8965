//! All sending and receiving ends of flows at one host in a run.

use crate::net::{Ends, World};
use crate::{bulk, datagrams, transfers, writes};
use rustix::event::epoll::EventFlags;
use rustix::fd::AsFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use sojourn_plan::{Flow, Group, Plan, Transport};
use sojourn_traffic::App;
use sojourn_traffic::transfer::Transfers;
use sojourn_units::{EPOCH, Nanos, SECOND};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

/// One sending or receiving end of a flow.
#[derive(Debug)]
enum Role {
    SendDatagrams(Box<datagrams::Sender>),
    ReceiveDatagrams(Box<datagrams::Receiver>),
    Write(Box<writes::Sender>),
    ReceiveWrites(Box<writes::Receiver>),
    Transfer(Box<transfers::Sender>),
    ReceiveTransfers(Box<transfers::Receiver>),
    Bulk(Box<bulk::Sender>),
    ReceiveBulk(Box<bulk::Receiver>),
}

/// Tokens of events: the low 32 bits are the index of the role; the high 32 bits are the number of
/// the connection plus 1, or 0 for the role's own socket. The following two tokens belong to no
/// role.
const TIMER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

fn token(role: usize, connection: u64) -> u64 {
    connection << 32 | role as u64
}

/// The sending and receiving ends of one host's flows in a run, for packet sources and transfers.
///
/// The receiving ends listen from [`new`](Self::new) on. [`run`](Self::run) starts the sending
/// ends.
#[derive(Debug)]
pub struct Endpoint {
    roles: Vec<Role>,
    duration: Nanos,
}

impl Endpoint {
    /// Creates the ends of flows at node `node`; those of endless transfers (`bulk`) only if the
    /// parameter `bulk` is true.
    ///
    /// # Errors
    /// If a socket cannot be created.
    pub fn new(plan: &Plan, seed: u64, node: usize, bulk: bool) -> io::Result<Self> {
        let mut roles = Vec::new();
        let mut number = 0;
        for group in &plan.groups {
            let played = bulk || !matches!(group.app, App::Bulk(_));
            for flow in group.flows(seed, plan.duration) {
                let ends = Ends { flow: number, receiver: flow.pair.1, tos: group.dscp << 2 };
                number += 1;
                if !played {
                    continue;
                }
                if flow.pair.1 == node
                    && let Some(role) = receiving(group, ends)?
                {
                    roles.push(role);
                }
                if flow.pair.0 == node
                    && flow.start.is_some()
                    && let Some(role) = sending(plan, group, &flow, ends)?
                {
                    roles.push(role);
                }
            }
        }
        Ok(Self { roles, duration: plan.duration })
    }

    /// Returns the number of sending and receiving ends.
    pub fn len(&self) -> usize {
        self.roles.len()
    }

    /// Returns whether the host has no sending or receiving end.
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Serves all senders and receivers until the run ends, or until `stop` becomes readable.
    ///
    /// `start` is the time of the run's start on the machine's monotonic clock, in nanoseconds. All
    /// events are written to `log`.
    ///
    /// # Errors
    /// If a system call for the whole host fails, or if the log cannot be written. A failure of one
    /// flow's connection is logged instead.
    pub fn run(&mut self, start: u64, log: File, stop: impl AsFd) -> io::Result<()> {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let mut world = World::new(start, self.duration, log)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        world.watch(&timer, TIMER, EventFlags::IN)?;
        world.watch(&stop, STOP, EventFlags::IN)?;
        for (i, role) in self.roles.iter().enumerate() {
            match role {
                Role::ReceiveDatagrams(r) => {
                    world.watch(r.socket(), token(i, 0), EventFlags::IN)?;
                }
                Role::ReceiveWrites(r) => world.watch(r.socket(), token(i, 0), EventFlags::IN)?,
                Role::ReceiveTransfers(r) => {
                    world.watch(r.socket(), token(i, 0), EventFlags::IN)?;
                }
                Role::ReceiveBulk(r) => world.watch(r.socket(), token(i, 0), EventFlags::IN)?,
                Role::SendDatagrams(_) | Role::Write(_) | Role::Transfer(_) | Role::Bulk(_) => {}
            }
        }
        let outcome = self.serve(&mut world, &timer);
        world.flush()?;
        outcome
    }

    fn serve(&mut self, world: &mut World, timer: &OwnedFd) -> io::Result<()> {
        let mut alarms = Alarms::new(self.roles.len());
        for (i, role) in self.roles.iter().enumerate() {
            alarms.set(i, role.deadline());
        }
        let mut events = Vec::with_capacity(256);
        // System calls dominate the CPU time of a host. Therefore the due times are checked only
        // after the timer has expired, and the timer is set only if its time has changed.
        let mut rang = true;
        let mut armed = None;
        loop {
            if rang {
                if world.now() >= world.end {
                    self.roles.iter_mut().for_each(|role| role.end(world));
                    return Ok(());
                }
                // Serves the roles that are due, with at most as many calls as there are roles.
                // Afterwards the sockets are served, even if a role is due again.
                for _ in 0..self.roles.len() {
                    let Some(i) = alarms.due(world.now()) else { break };
                    self.roles[i].due(world, i);
                    alarms.set(i, self.roles[i].deadline());
                }
                armed = None;
            }
            let next = alarms.first().unwrap_or(Nanos::MAX).min(world.end);
            if armed != Some(next) {
                set(timer, world.monotonic(next))?;
                armed = Some(next);
            }
            world.wait(&mut events)?;
            rang = false;
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(()),
                    TIMER => rang = true,
                    whom => {
                        let (i, connection) = (whom as u32 as usize, whom >> 32);
                        self.roles[i].ready(world, i, connection)?;
                        alarms.set(i, self.roles[i].deadline());
                    }
                }
            }
        }
    }
}

/// Sets the timer to the time `at` of the machine's monotonic clock, in nanoseconds. If `at` has
/// passed, the timer expires at once.
fn set(timer: impl AsFd, at: u64) -> io::Result<()> {
    let value = Timespec { tv_sec: (at / SECOND) as i64, tv_nsec: (at % SECOND) as i64 };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(())
}

fn receiving(group: &Group, ends: Ends) -> io::Result<Option<Role>> {
    Ok(match (&group.transport, &group.app) {
        (Transport::Udp, app) if app.sends_packets() => {
            Some(Role::ReceiveDatagrams(Box::new(datagrams::Receiver::new(ends)?)))
        }
        (Transport::Tcp(_), app) if app.sends_packets() => {
            Some(Role::ReceiveWrites(Box::new(writes::Receiver::new(ends)?)))
        }
        (Transport::Tcp(_), App::Bulk(_)) => {
            Some(Role::ReceiveBulk(Box::new(bulk::Receiver::new(ends)?)))
        }
        (Transport::Tcp(_), App::Transfer(_)) => {
            Some(Role::ReceiveTransfers(Box::new(transfers::Receiver::new(ends)?)))
        }
        _ => None,
    })
}

fn sending(plan: &Plan, group: &Group, flow: &Flow, ends: Ends) -> io::Result<Option<Role>> {
    let end = EPOCH + plan.duration;
    let stop = flow.stop.unwrap_or(Nanos::MAX);
    let last = stop.min(end);
    let start = flow.begins(plan.duration);
    Ok(match (&group.transport, &group.app) {
        (Transport::Tcp(tcp), App::Bulk(_)) => {
            Some(Role::Bulk(Box::new(bulk::Sender::new(ends, tcp.clone(), start, last))))
        }
        (Transport::Tcp(tcp), App::Transfer(params)) => {
            let jobs = Transfers::new(params, flow.key);
            let sender = transfers::Sender::new(ends, tcp.clone(), jobs, start, last);
            Some(Role::Transfer(Box::new(sender)))
        }
        (transport, app) => match (app.packet_source(flow.key, start), transport) {
            (Some(source), Transport::Udp) => {
                let longest = app.longest_payload();
                let sender = datagrams::Sender::new(ends, source, last, longest)?;
                Some(Role::SendDatagrams(Box::new(sender)))
            }
            (Some(source), Transport::Tcp(tcp)) => {
                let times = (start, stop, end);
                Some(Role::Write(Box::new(writes::Sender::new(ends, tcp.clone(), source, times))))
            }
            (None, _) => None,
        },
    })
}

impl Role {
    fn deadline(&self) -> Option<Nanos> {
        match self {
            Self::SendDatagrams(sender) => sender.deadline(),
            Self::Write(sender) => sender.deadline(),
            Self::Transfer(sender) => sender.deadline(),
            Self::Bulk(sender) => sender.deadline(),
            Self::ReceiveBulk(receiver) => receiver.deadline(),
            Self::ReceiveDatagrams(_) | Self::ReceiveWrites(_) | Self::ReceiveTransfers(_) => None,
        }
    }

    fn due(&mut self, world: &mut World, i: usize) {
        match self {
            Self::SendDatagrams(sender) => sender.due(world),
            Self::Write(sender) => sender.due(world, token(i, 0)),
            Self::Transfer(sender) => sender.due(world, token(i, 0)),
            Self::Bulk(sender) => sender.due(world, token(i, 0)),
            Self::ReceiveBulk(receiver) => receiver.due(world),
            Self::ReceiveDatagrams(_) | Self::ReceiveWrites(_) | Self::ReceiveTransfers(_) => {}
        }
    }

    /// Takes the last sample of endless transfers at the end of the run.
    fn end(&mut self, world: &mut World) {
        match self {
            Self::Bulk(sender) => sender.end(world),
            Self::ReceiveBulk(receiver) => receiver.due(world),
            _ => {}
        }
    }

    fn ready(&mut self, world: &mut World, i: usize, connection: u64) -> io::Result<()> {
        match self {
            Self::ReceiveDatagrams(receiver) => receiver.ready(world)?,
            Self::ReceiveWrites(receiver) => receiver.ready(world, token(i, 0))?,
            Self::ReceiveTransfers(receiver) if connection == 0 => {
                receiver.ready(world, |number| token(i, u64::from(number) + 1))?;
            }
            Self::ReceiveTransfers(receiver) => receiver.take(world, connection as u32 - 1),
            Self::Write(sender) => sender.ready(world),
            Self::Transfer(sender) => sender.ready(world),
            Self::Bulk(sender) => sender.ready(world),
            Self::ReceiveBulk(receiver) => receiver.ready(world, token(i, 0))?,
            Self::SendDatagrams(_) => {}
        }
        Ok(())
    }
}

/// Times when the roles are due, as a heap. If the time of a role changes, the earlier entry stays
/// in the heap; it is skipped when it reaches the top.
#[derive(Debug)]
struct Alarms {
    heap: BinaryHeap<Reverse<(Nanos, usize)>>,
    set: Vec<Option<Nanos>>,
}

impl Alarms {
    fn new(roles: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(2 * roles), set: vec![None; roles] }
    }

    fn set(&mut self, role: usize, at: Option<Nanos>) {
        if self.set[role] != at {
            self.set[role] = at;
            if let Some(at) = at {
                self.heap.push(Reverse((at, role)));
            }
        }
    }

    fn first(&mut self) -> Option<Nanos> {
        while let Some(&Reverse((at, role))) = self.heap.peek() {
            if self.set[role] == Some(at) {
                return Some(at);
            }
            self.heap.pop();
        }
        None
    }

    /// Returns the role with the earliest time if this time is not after `now`, and removes its
    /// time; `None` if no role is due.
    fn due(&mut self, now: Nanos) -> Option<usize> {
        self.first().filter(|&at| at <= now)?;
        let Reverse((_, role)) = self.heap.pop()?;
        self.set[role] = None;
        Some(role)
    }
}
