//! The tests of this crate in one program: it is linked once, and long tests run at the same time as short ones.

mod ack_filter;
mod common;
mod direct;
mod discipline_calls;
mod exact;
mod host;
mod impairments;
mod medium;
mod path;
mod theory;
mod timing;
mod trace;
mod trees;
