//! Policies of one's own in Rust, each with what runs it.

mod balancer;
mod buffer;
mod queue;

fn main() {
    queue::run();
    balancer::run();
    buffer::run();
}
