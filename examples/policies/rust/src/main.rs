//! Examples of own policies in Rust, each with a function that runs the policy.

mod balancer;
mod buffer;
mod congestion;
mod queue;
mod source;

fn main() {
    queue::run();
    congestion::run();
    balancer::run();
    buffer::run();
    source::run();
}
