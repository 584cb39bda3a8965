//! Where nodes and flows are found on a network, as captures show it and real programs use it.

use std::net::Ipv4Addr;

/// The first of the flows' ports.
pub const FIRST_PORT: u16 = 20_000;
/// Flows that have a port of their own: behind theirs begin those that a Linux host gives to its own
/// connections.
pub const PORTS: u32 = 12_768;

/// The first of the ports that clients have: of the dynamic range, which no dissector takes for its own.
pub const DYNAMIC: u16 = 49_152;

/// The IPv4 address of a node: 10.0.0.1 for the first one.
pub fn ipv4(node: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0A00_0001 + node as u32)
}

/// The server's port of flow number `flow`, counted over all groups; `None` beyond [`PORTS`].
pub fn port(flow: u32) -> Option<u16> {
    (flow < PORTS).then(|| FIRST_PORT + flow as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_flows_have_their_places() {
        assert_eq!(ipv4(0).to_string(), "10.0.0.1");
        assert_eq!(ipv4(299).to_string(), "10.0.1.44");
        assert_eq!((port(0), port(PORTS - 1), port(PORTS)), (Some(20_000), Some(32_767), None));
    }
}
