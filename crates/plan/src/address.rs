//! Addresses and ports of nodes and flows, which captures show and real programs use.

use std::net::Ipv4Addr;

/// Port of the first flow at its server.
pub const FIRST_PORT: u16 = 20_000;
/// Number of flows that have their own port. The ports that a Linux host selects for its
/// connections begin at 32 768, after these.
pub const PORTS: u32 = 12_768;

/// First port of clients. It is in the dynamic range, in which no dissector assigns ports to
/// protocols.
pub const DYNAMIC: u16 = 49_152;

/// Returns the IPv4 address of a node by its index: 10.0.0.1 for node 0.
pub fn ipv4(node: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0A00_0001 + node as u32)
}

/// Returns the server's port of flow number `flow`, counted over all groups from 0; `None` if this
/// number is not below [`PORTS`].
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
