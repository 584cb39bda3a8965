//! The tests of this crate in one program: it is linked once, and long tests run beside short ones.

mod behaviour;
mod cake;
mod choke;
mod common;
mod contract;
mod daqm;
mod external;
mod flow_queues;
mod pi2;
mod sfb;
mod words;
