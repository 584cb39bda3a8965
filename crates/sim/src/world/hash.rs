//! The hash of a flow, by which disciplines and balancers distinguish flows.

/// Returns the flow hash of one direction of a connection. It depends only on the arguments, so it
/// is the same with any queue discipline.
pub fn hash(seed: u64, flow: u32, connection: u32, direction: u32) -> u32 {
    let mut x = seed
        ^ (u64::from(flow) << 33 | u64::from(connection) << 1 | u64::from(direction))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x ^ (x >> 32)) as u32
}
