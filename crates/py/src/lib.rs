//! Python bindings of the engine: the module `sojourn._core`.
//!
//! The crate contains no logic of the simulation. It converts between texts, plans, JSON and
//! tables, and turns each error into a Python exception that states the place and the reason.

mod balance;
mod buffer;
mod causes;
mod describe;
mod endpoint;
mod errors;
mod fingerprint;
mod flows;
mod many;
mod observed;
mod own;
mod parse;
mod rcvbuf;
mod simulate;
mod stats;
mod store;
mod tc;
mod udp;
mod verify;
mod web;
mod wire;

use pyo3::prelude::*;

/// The engine, its parsers, and its descriptions of words and metrics.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::balance::{Balancer, format_balancer, parse_balancer};
    #[pymodule_export]
    use crate::buffer::{BufferPolicy, parse_buffer};
    #[pymodule_export]
    use crate::causes::causes;
    #[pymodule_export]
    use crate::describe::describe;
    #[pymodule_export]
    use crate::endpoint::{Endpoint, endpoint_report};
    #[pymodule_export]
    use crate::errors::{NoKernelEquivalent, PlanError, PolicyError, WordError};
    #[pymodule_export]
    use crate::fingerprint::{fingerprint, version};
    #[pymodule_export]
    use crate::flows::{plan_flows, selected_flows};
    #[pymodule_export]
    use crate::many::{Records, simulate_many};
    #[pymodule_export]
    use crate::observed::{observe_flows, observe_queues, unobserved};
    #[pymodule_export]
    use crate::own::balancer::{BalancerFlow, BalancerServer};
    #[pymodule_export]
    use crate::own::bench::QueueBench;
    #[pymodule_export]
    use crate::own::buffer::BufferView;
    #[pymodule_export]
    use crate::own::congestion::{Ack, Window};
    #[pymodule_export]
    use crate::own::congestion_bench::ControlBench;
    #[pymodule_export]
    use crate::own::source::SourceBench;
    #[pymodule_export]
    use crate::own::views::{Draws, Packet, Queue};
    #[pymodule_export]
    use crate::own::{own_tcp, parse_own, policy_values, watch_policies};
    #[pymodule_export]
    use crate::parse::{
        app_carriers, format_quantity, load_capture, names, nearest, netem_description,
        netem_warnings, not_modelled, parse_app, parse_dscp, parse_host, parse_medium,
        parse_moments, parse_netem, parse_quantity, parse_queue, parse_span, parse_starts,
        parse_tcp, queue_commands, queue_description, queue_rate, queue_to_tc, queue_warnings,
        scaled_warmup, workloads,
    };
    #[pymodule_export]
    use crate::rcvbuf::{AdaptiveBuffer, RcvbufTuner, rcvbuf_restore, rcvbuf_state_folder};
    #[pymodule_export]
    use crate::simulate::{
        Record, blank_record, check, limits, link_features, repeat, simulate, simulate_server,
        validate_plan,
    };
    #[pymodule_export]
    use crate::stats::{summarize, t_isf, t_sf};
    #[pymodule_export]
    use crate::store::StoreParts;
    #[pymodule_export]
    use crate::tc::{TcBuilt, TcDevice, TcMessage, TcReading, TcSelection, read_tc};
    #[pymodule_export]
    use crate::udp::{UdpServer, udp_clients, udp_kept, udp_send};
    #[pymodule_export]
    use crate::verify::{verify, verify_own};
    #[pymodule_export]
    use crate::web::{WebSession, web_sessions};
    #[pymodule_export]
    use crate::wire::{Wire, WireOutcome};
}
