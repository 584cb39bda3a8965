//! Policies of one's own in Rust, each with what runs it.

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
