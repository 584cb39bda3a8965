//! All tests of this crate in one program, so that only one is linked and tests of all files run in
//! parallel.

mod apps;
mod balance;
mod bulk;
mod cake;
mod changes;
mod common;
mod fq;
mod fusing;
mod host;
mod l4s;
mod lan;
mod path;
mod plans;
mod random_plans;
mod record;
mod replay;
mod responsiveness;
mod scale;
mod stepwise;
mod store;
mod stream;
mod theory;
mod trace;
mod udp;
mod unresponsive;
