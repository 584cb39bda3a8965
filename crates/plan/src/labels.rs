//! Ports and marks that filters read, for packets of the simulation and real packets.
//!
//! This module provides the ports and mark of a packet by its flow: the scenario's values, else the
//! port of the flow's server, else the values that the caller gives.

use crate::{Group, address};
use sojourn_queue::Headers;
use sojourn_traffic::App;

/// Ports and mark of one flow.
#[derive(Clone, Copy, Debug)]
struct Label {
    /// Index of the node that opens the flow's connections or sends its datagrams.
    client: u32,
    /// Ports of the client and of the server; `None` if the packet's own port is used.
    ports: (Option<u16>, Option<u16>),
    mark: u32,
}

impl Label {
    fn new(group: &Group, pair: (usize, usize), number: u32) -> Self {
        let (client, _) = group.client_first(pair);
        let given = (group.source_port, group.destination_port);
        let (mine, server) = if client == pair.0 { given } else { (given.1, given.0) };
        // The programs of a user select their ports themselves.
        let is_left = given == (None, None) && !matches!(group.app, App::Command(_));
        let server = if is_left { address::port(number) } else { server };
        Self { client: client as u32, ports: (mine, server), mark: group.mark }
    }
}

/// Ports and marks of all flows.
#[derive(Clone, Debug, Default)]
pub struct Labels(Vec<Label>);

impl Labels {
    /// Returns the labels of all flows of a plan's groups, in their order.
    pub fn new(groups: &[Group]) -> Self {
        let flows = groups.iter().flat_map(|group| {
            (0..group.count).map(move |n| (group, group.pairs[n as usize % group.pairs.len()]))
        });
        Self(flows.zip(0..).map(|((group, pair), n)| Label::new(group, pair, n)).collect())
    }

    /// Returns the headers that a filter reads for a packet of flow number `flow` of all groups.
    /// The packet leaves the node `from` and has the headers `own`. The ports of packets in the
    /// opposite direction are swapped. A packet that belongs to no flow keeps its own headers.
    pub fn headers(&self, flow: u32, from: u32, own: Headers) -> Headers {
        let Some(label) = self.0.get(flow as usize) else { return own };
        let (client, server) = label.ports;
        let (source, destination) =
            if from == label.client { (client, server) } else { (server, client) };
        Headers {
            ports: (source.unwrap_or(own.ports.0), destination.unwrap_or(own.ports.1)),
            mark: if label.mark == 0 { own.mark } else { label.mark },
            ..own
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transport;

    fn group(app: &str) -> Group {
        let app = App::parse(app).unwrap();
        Group { count: 3, ..Group::new("g", vec![(0, 1), (2, 1)], Transport::Udp, app) }
    }

    const OWN: Headers = Headers { protocol: 17, ports: (50_001, 50_002), mark: 0 };

    #[test]
    fn a_server_has_the_port_of_its_flow() {
        let all = Labels::new(&[group("voip"), group("web")]);
        let ports = |flow, from| all.headers(flow, from, OWN).ports;
        assert_eq!((ports(0, 0), ports(1, 2)), ((50_001, 20_000), (50_001, 20_001)));
        assert_eq!(ports(1, 1), (20_001, 50_002));
        // In Web traffic the receiver of the data is the client.
        assert_eq!((ports(3, 1), ports(3, 0)), ((50_001, 20_003), (20_003, 50_002)));
        // A packet that belongs to no flow.
        assert_eq!(all.headers(6, 0, OWN), OWN);
    }

    #[test]
    fn given_ports_and_marks_hold_both_ways() {
        let https = Group { source_port: Some(443), mark: 7, ..group("bulk") };
        let web = Group { source_port: Some(80), ..group("web") };
        let all = Labels::new(&[https, web]);
        for (flow, from, ports, mark) in [
            (0, 0, (443, 50_002), 7),
            (0, 1, (50_001, 443), 7),
            (4, 2, (80, 50_002), 0),
            (4, 1, (50_001, 80), 0),
        ] {
            let found = all.headers(flow, from, OWN);
            assert_eq!(
                (found.ports, found.mark, found.protocol),
                (ports, mark, 17),
                "{flow} {from}"
            );
        }
        let real = Headers { mark: 9, ..OWN };
        assert_eq!((all.headers(0, 0, real).mark, all.headers(4, 0, real).mark), (7, 9));
    }

    #[test]
    fn programs_keep_their_ports() {
        let all = Labels::new(&[Group { mark: 3, ..group("command") }]);
        assert_eq!(all.headers(0, 0, OWN), Headers { mark: 3, ..OWN });
    }
}
