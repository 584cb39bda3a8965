//! The tests of this crate in one program: it is linked once, and long tests run at the same time as short ones.

mod blue;
mod cake;
mod choke;
mod classes;
mod cobalt;
mod codel;
mod commands;
mod common;
mod contract;
mod daqm;
mod external;
mod fifo;
mod flow_queues;
mod fq;
mod hhf;
mod mq;
mod pfifo;
mod pi2;
mod pie;
mod recorded;
mod red;
mod sfb;
mod sfq;
mod skbprio;
mod tbf;
mod words;
