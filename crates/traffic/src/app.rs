//! Any application, by name.

use crate::{Emission, bulk, cbr, packets, transfer, voip, web};
use serde::{Deserialize, Serialize};
use sojourn_random::Key;
use sojourn_units::Nanos;
use sojourn_units::words::{self, Table, WordError};
use std::fmt;

/// An application and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum App {
    /// `bulk`.
    Bulk(bulk::Params),
    /// `transfer`.
    Transfer(transfer::Params),
    /// `cbr`.
    Cbr(cbr::Params),
    /// `packets`.
    Packets(packets::Params),
    /// `voip`.
    Voip(voip::Params),
    /// `web`.
    Web(web::Params),
}

const TABLES: &[&Table] =
    &[&bulk::TABLE, &transfer::TABLE, &cbr::TABLE, &packets::TABLE, &voip::TABLE, &web::TABLE];

/// The words of every application.
pub fn tables() -> &'static [&'static Table] {
    TABLES
}

impl App {
    /// Reads a description such as `cbr rate 250kbit size 573`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("application", TABLES, text)?;
        Ok(match table.name {
            "transfer" => Self::Transfer(transfer::Params::read(&given)?),
            "cbr" => Self::Cbr(cbr::Params::read(&given)?),
            "packets" => Self::Packets(packets::Params::read(&given)?),
            "voip" => Self::Voip(voip::Params::read(&given)?),
            "web" => Self::Web(web::Params::read(&given)?),
            _ => Self::Bulk(bulk::Params {}),
        })
    }

    /// Its words.
    pub fn table(&self) -> &'static Table {
        match self {
            Self::Bulk(_) => &bulk::TABLE,
            Self::Transfer(_) => &transfer::TABLE,
            Self::Cbr(_) => &cbr::TABLE,
            Self::Packets(_) => &packets::TABLE,
            Self::Voip(_) => &voip::TABLE,
            Self::Web(_) => &web::TABLE,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.table().name
    }

    /// Whether it sends packets on its own schedule, rather than data by a transport's.
    pub fn sends_packets(&self) -> bool {
        matches!(self, Self::Cbr(_) | Self::Packets(_) | Self::Voip(_))
    }

    /// The packets of one flow from `start` on, if it [sends packets](Self::sends_packets).
    pub fn packet_source(&self, key: Key, start: Nanos) -> Option<PacketSource> {
        match self {
            Self::Cbr(params) => Some(PacketSource::Cbr(cbr::Cbr::new(params, key, start))),
            Self::Packets(params) => {
                Some(PacketSource::Packets(packets::Packets::new(params, key, start)))
            }
            Self::Voip(params) => Some(PacketSource::Voip(voip::Voip::new(params, key, start))),
            Self::Bulk(_) | Self::Transfer(_) | Self::Web(_) => None,
        }
    }
}

/// The description that [`App::parse`] reads back, every word with its value.
impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Bulk(_) => "bulk".to_owned(),
            Self::Transfer(params) => params.write(),
            Self::Cbr(params) => params.write(),
            Self::Packets(params) => params.write(),
            Self::Voip(params) => params.write(),
            Self::Web(params) => params.write(),
        })
    }
}

/// A flow that sends packets on its own schedule.
#[derive(Clone, Debug)]
pub enum PacketSource {
    /// `cbr`.
    Cbr(cbr::Cbr),
    /// `packets`.
    Packets(packets::Packets),
    /// `voip`.
    Voip(voip::Voip),
}

impl PacketSource {
    /// The next packet; times never decrease.
    #[inline]
    pub fn next_packet(&mut self) -> Emission {
        match self {
            Self::Cbr(source) => source.next_packet(),
            Self::Packets(source) => source.next_packet(),
            Self::Voip(source) => source.next_packet(),
        }
    }
}
