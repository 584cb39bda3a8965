//! Users' own policies in Rust, each with a program that runs it.

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
