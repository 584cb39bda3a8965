//! Python bindings of the engine: the module `sojourn._core`.
//!
//! The crate contains no logic of the simulation. It converts between texts, plans, JSON and
//! tables, and turns each error into a Python exception that states the place and the reason.
//! Runs with real packets and the tuners of sockets need Linux; elsewhere their names are missing.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]

mod balance;
mod buffer;
mod causes;
mod describe;
mod endpoint;
mod errors;
mod fingerprint;
mod flows;
mod link;
mod many;
#[cfg(target_os = "linux")]
mod observed;
mod own;
mod parse;
#[cfg(target_os = "linux")]
mod rcvbuf;
mod simulate;
mod stats;
mod store;
mod tc;
#[cfg(target_os = "linux")]
mod udp;
mod verify;
mod web;
#[cfg(target_os = "linux")]
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
        endpoint::endpoint_report,
        errors::{NoKernelEquivalent, PlanError, PolicyError, WordError},
        fingerprint::{fingerprint, version},
        flows::{plan_flows, selected_flows},
        link::{Arrival, Link},
        many::{Records, simulate_many},
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
        simulate::{
            Record, blank_record, check, limits, link_features, repeat, simulate, simulate_server,
            validate_plan,
        },
        stats::{summarize, t_isf, t_sf},
        store::StoreParts,
        tc::{TcBuilt, TcDevice, TcMessage, TcReading, TcSelection, read_tc},
        verify::{verify, verify_own},
        web::{WebSession, web_sessions},
    };

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::{
        endpoint::Endpoint,
        observed::{observe_flows, observe_queues, unobserved},
        rcvbuf::{AdaptiveBuffer, RcvbufTuner, rcvbuf_restore, rcvbuf_state_folder},
        udp::{UdpServer, udp_clients, udp_kept, udp_send},
        wire::{Wire, WireOutcome},
    };
}
