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
    use crate::{
        balance::{Balancer, format_balancer, parse_balancer},
        buffer::{BufferPolicy, parse_buffer},
        causes::causes,
        describe::describe,
        endpoint::{Endpoint, endpoint_report},
        errors::{NoKernelEquivalent, PlanError, PolicyError, WordError},
        fingerprint::{fingerprint, version},
        flows::{plan_flows, selected_flows},
        many::{Records, simulate_many},
        observed::{observe_flows, observe_queues, unobserved},
        own::{
            balancer::{BalancerFlow, BalancerServer},
            bench::QueueBench,
            buffer::BufferView,
            congestion::{Ack, Window},
            congestion_bench::ControlBench,
            own_tcp, parse_own, policy_values,
            source::SourceBench,
            views::{Draws, Packet, Queue},
            watch_policies,
        },
        parse::{
            app_carriers, format_quantity, load_capture, names, nearest, netem_description,
            netem_warnings, not_modelled, parse_app, parse_dscp, parse_host, parse_medium,
            parse_moments, parse_netem, parse_quantity, parse_queue, parse_span, parse_starts,
            parse_tcp, queue_commands, queue_description, queue_rate, queue_to_tc, queue_warnings,
            scaled_warmup, workloads,
        },
        rcvbuf::{AdaptiveBuffer, RcvbufTuner, rcvbuf_restore, rcvbuf_state_folder},
        simulate::{
            Record, blank_record, check, limits, link_features, repeat, simulate, simulate_server,
            validate_plan,
        },
        stats::{summarize, t_isf, t_sf},
        store::StoreParts,
        tc::{TcBuilt, TcDevice, TcMessage, TcReading, TcSelection, read_tc},
        udp::{UdpServer, udp_clients, udp_kept, udp_send},
        verify::{verify, verify_own},
        web::{WebSession, web_sessions},
        wire::{Wire, WireOutcome},
    };
}
