//! The flows of a group with their nodes and times, for the simulator and for real programs.

use crate::address::FIRST_PORT;
use crate::{Group, Plan, Transport};
use sojourn_random::Key;
use sojourn_traffic::App;
use sojourn_units::{EPOCH, Nanos, data};

/// One flow of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Number of the flow within the group.
    pub number: u32,
    /// Indices of the sending and the receiving node.
    pub pair: (usize, usize),
    /// Key of the flow's random streams.
    pub key: Key,
    /// Start of the flow, on a clock that shows [`EPOCH`] at the run's start; `None` if the flow
    /// never starts.
    pub start: Option<Nanos>,
    /// Time at which the flow's application stops offering data; `None` if only the run's end stops
    /// it.
    pub stop: Option<Nanos>,
}

impl Flow {
    /// Returns the time at which the flow's random streams begin: its start, or the latest possible
    /// start if it never starts.
    pub fn begins(&self, duration: Nanos) -> Nanos {
        let last = EPOCH + duration;
        self.start.unwrap_or(self.stop.map_or(last, |stop| stop.min(last)))
    }
}

/// A flow for programs that generate the same traffic as the simulator. Times are in nanoseconds
/// after the run's start.
#[data]
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedFlow {
    /// Number of the flow in the plan.
    pub flow: u32,
    /// Index of the flow's group.
    pub group: u32,
    /// Name of the flow's group.
    pub name: String,
    /// Number of the flow in its group.
    pub number: u32,
    /// Name of the flow in messages and file names, such as `bulk.3`.
    pub label: String,
    /// Index of the node that sends the data.
    pub sender: usize,
    /// Index of the node that receives the data.
    pub receiver: usize,
    /// Indices of the nodes that serve a Web session; empty for other applications.
    pub servers: Vec<usize>,
    /// Port on which the flow's server listens: [`FIRST_PORT`] plus the number of the flow.
    pub port: u32,
    /// Start, as the simulator draws it; `None` if the flow never starts.
    pub start: Option<Nanos>,
    /// Latest end of the flow's application.
    pub stop: Nanos,
    /// Differentiated services code point of the flow's packets.
    pub dscp: u8,
    /// Name of the application.
    pub app: String,
    /// Longest packet or write of the application, in bytes; 0 for streams.
    pub payload: u32,
    /// TCP of the flow; `None` over UDP.
    pub tcp: Option<sojourn_tcp::Params>,
    /// The user's own programs; `None` for other applications.
    pub command: Option<sojourn_traffic::command::Params>,
}

impl Plan {
    /// Returns the flows of the run with this `seed`, in the order of the groups.
    pub fn planned_flows(&self, seed: u64) -> Vec<PlannedFlow> {
        let all = self.groups.iter().enumerate().flat_map(|(number, group)| {
            group.flows(seed, self.duration).map(move |flow| (number as u32, group, flow))
        });
        let planned = |(place, (number, group, flow)): (usize, (u32, &Group, Flow))| PlannedFlow {
            flow: place as u32,
            group: number,
            name: group.name.clone(),
            number: flow.number,
            label: format!("{}.{}", group.name, flow.number),
            sender: flow.pair.0,
            receiver: flow.pair.1,
            servers: match group.app {
                App::Web(_) => group.servers(flow.pair.1),
                _ => Vec::new(),
            },
            port: u32::from(FIRST_PORT) + place as u32,
            start: flow.start.map(|at| at - EPOCH),
            stop: group.stop.map_or(self.duration, |stop| stop.min(self.duration)),
            dscp: group.dscp,
            app: group.app.name().to_owned(),
            payload: group.app.longest_payload(),
            tcp: match &group.transport {
                Transport::Tcp(params) => Some(params.clone()),
                Transport::Udp => None,
            },
            command: match &group.app {
                App::Command(params) => Some(params.clone()),
                _ => None,
            },
        };
        all.enumerate().map(planned).collect()
    }
}

impl Group {
    /// Returns a group of one flow from the run's start to its end, without balancer, code point,
    /// ports and mark.
    pub fn new(name: &str, pairs: Vec<(usize, usize)>, transport: Transport, app: App) -> Self {
        Self {
            name: name.to_owned(),
            pairs,
            balancer: None,
            count: 1,
            start: 0,
            start_spread: 0,
            start_every: 0,
            stop: None,
            dscp: 0,
            source_port: None,
            destination_port: None,
            mark: 0,
            transport,
            app,
        }
    }

    /// Returns the flows of a run with this `seed` and `duration`, in the order of their numbers.
    pub fn flows(&self, seed: u64, duration: Nanos) -> impl Iterator<Item = Flow> {
        let key = Key::new(seed, &self.name);
        let mut sessions = match &self.app {
            App::Web(web) => web.session_starts(key, EPOCH + self.start),
            _ => None,
        };
        let stop = self.stop.map(|stop| EPOCH + stop);
        let last = stop.unwrap_or(Nanos::MAX).min(EPOCH + duration);
        (0..self.count).map(move |number| {
            let key = key.child(u64::from(number));
            let start = if let Some(starts) = &mut sessions {
                starts.next()
            } else {
                let spread = key.stream("start").below(self.start_spread + 1);
                let turn = self.start_every.saturating_mul(u64::from(number));
                Some((EPOCH + self.start + spread).saturating_add(turn))
            };
            let pair = self.pairs[number as usize % self.pairs.len()];
            Flow { number, pair, key, start: start.filter(|&at| at < last), stop }
        })
    }

    /// Returns a pair of nodes with the client first: the receiver of a
    /// [session](App::opens_sessions), otherwise the sender.
    pub fn client_first(&self, (from, to): (usize, usize)) -> (usize, usize) {
        if self.app.opens_sessions() { (to, from) } else { (from, to) }
    }

    /// Returns the servers of a Web session of `client`: the senders in its pairs, each once.
    pub fn servers(&self, client: usize) -> Vec<usize> {
        let mut servers = Vec::new();
        for &(from, to) in &self.pairs {
            if to == client && !servers.contains(&from) {
                servers.push(from);
            }
        }
        servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::SECOND;

    fn group(app: &str) -> Group {
        let pairs = vec![(0, 1), (2, 1), (0, 3), (0, 1)];
        Group {
            count: 6,
            start: SECOND,
            start_spread: 2 * SECOND,
            ..Group::new("calls", pairs, Transport::Udp, App::parse(app).unwrap())
        }
    }

    #[test]
    fn starts_are_drawn_within_their_span_and_kept_by_other_flows() {
        let group = group("voip");
        let flows: Vec<Flow> = group.flows(7, 60 * SECOND).collect();
        let span = EPOCH + SECOND..=EPOCH + 3 * SECOND;
        assert!(flows.iter().all(|flow| span.contains(&flow.start.unwrap())));
        assert_eq!(flows[5].pair, (2, 1));
        let fewer = Group { count: 2, ..group };
        let few: Vec<Flow> = fewer.flows(7, 60 * SECOND).collect();
        assert_eq!(few, flows[..2]);
        assert_ne!(few[0].start, few[1].start);
        assert_ne!(fewer.flows(8, 60 * SECOND).next().unwrap().start, few[0].start);
    }

    #[test]
    fn those_after_the_end_never_start() {
        let mut group = group("voip");
        (group.start_spread, group.start_every, group.stop) = (0, SECOND, Some(4 * SECOND));
        let starts = |group: &Group, duration| -> Vec<Option<Nanos>> {
            let since = |at: Nanos| (at - EPOCH) / SECOND;
            group.flows(1, duration).map(|flow| flow.start.map(since)).collect()
        };
        let three = [Some(1), Some(2), Some(3), None, None, None];
        assert_eq!(starts(&group, 60 * SECOND), three);
        group.stop = None;
        assert_eq!(starts(&group, 4 * SECOND), three);
        let late = group.flows(1, 4 * SECOND).last().unwrap();
        assert_eq!(late.begins(4 * SECOND), EPOCH + 4 * SECOND);
    }

    #[test]
    fn sessions_follow_each_other() {
        let group = group("web pages 2 intersession 500ms");
        let starts: Vec<_> = group.flows(1, 3 * SECOND).map(|flow| flow.start).collect();
        let after = |ms: u64| Some(EPOCH + SECOND + ms * 1_000_000);
        assert_eq!(starts, [after(500), after(1000), after(1500), None, None, None]);
        assert_eq!((group.servers(1), group.servers(3)), (vec![0, 2], vec![0]));
    }
}
