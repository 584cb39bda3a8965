//! Measurement: the ledger of packets, histograms, the trace hash, metrics, and the tables of a
//! run's record.

pub mod histogram;
pub mod ledger;
mod loss_runs;
pub mod metrics;
mod moments;
mod survival;
mod table;
mod trace;
pub mod views;
mod weighted;

pub use histogram::Histogram;
pub use ledger::{Count, FlowAccount, Imbalance};
pub use loss_runs::LossRuns;
pub use metrics::Metric;
pub use moments::{Moments, Welford, jain};
pub use survival::Survival;
pub use table::{Column, Table, Values};
pub use trace::{Kind, TraceHash};
pub use weighted::TimeWeighted;
