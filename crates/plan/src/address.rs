//! Where nodes and flows are found on a network, as captures show it and real programs use it.

use std::net::Ipv4Addr;

/// The first of the flows' ports.
pub const FIRST_PORT: u16 = 20_000;
/// Number of flows with a port of their own. The ports that a Linux host chooses for its own
/// connections begin behind these.
pub const PORTS: u32 = 12_768;

/// The first port of clients, in the dynamic range, which no dissector assigns to a protocol.
pub const DYNAMIC: u16 = 49_152;

/// Returns the IPv4 address of a node: 10.0.0.1 for the first one.
pub fn ipv4(node: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0A00_0001 + node as u32)
}

/// Returns the server's port of flow number `flow`, counted over all groups; `None` beyond
/// [`PORTS`].
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
