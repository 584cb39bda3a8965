//! The ledger of packets, histograms, the trace hash, and the tables of a run's record.

pub mod table;
pub use table::{Column, Table, Values};
