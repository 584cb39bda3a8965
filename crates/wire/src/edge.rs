//! The edge of the network: all devices, and the path of a packet that arrives at a device.

use crate::arena::Arena;
use crate::clock::Clock;
use crate::endpoint::{Attachment, Endpoint};
use crate::headers::{Framing, Headers};
use crate::record::Health;
use crate::steering::{Steering, Way};
use crate::vnet::Partial;
use rustix::event::epoll;
use rustix::fd::AsFd;
use sojourn_network::Routes;
use sojourn_plan::PlanError;
use sojourn_units::Nanos;
use std::io;
use std::net::IpAddr;

/// The devices of a wire.
#[derive(Debug)]
pub struct Edge {
    endpoints: Vec<Endpoint>,
    steering: Steering,
}

/// A packet that has crossed the network and leaves it through a device.
pub struct Arrival<'a> {
    /// Slot of its bytes in the arena.
    pub slot: u32,
    /// Theoretical time of its arrival.
    pub at: Nanos,
    /// The frame.
    pub bytes: &'a [u8],
    /// The frame's headers.
    pub headers: &'a Headers,
    /// Position of the transport checksum if it is partial.
    pub partial: Option<Partial>,
}

impl Edge {
    /// Returns the edge with the devices of `attachments`, and the paths between them.
    ///
    /// # Errors
    /// As for [`Steering::new`].
    pub fn new(routes: &mut Routes, attachments: Vec<Attachment>) -> Result<Self, PlanError> {
        let steering = Steering::new(routes, &attachments)?;
        let endpoints = attachments.into_iter().map(Endpoint::new).collect();
        Ok(Self { endpoints, steering })
    }

    /// Returns the attachment with this number.
    pub fn attachment(&self, number: u32) -> &Attachment {
        &self.endpoints[number as usize].attachment
    }

    /// Returns all attachments.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.endpoints.iter().map(|endpoint| &endpoint.attachment)
    }

    /// Returns the first header of a device's frames.
    pub fn framing(&self, number: u32) -> Framing {
        self.attachment(number).device.framing()
    }

    /// Returns the path of a packet that comes from a device and goes to the address `to`; `None`
    /// if no path leads there.
    pub fn way(&self, from: u32, to: Option<IpAddr>) -> Option<Way> {
        self.steering.way(from, to)
    }

    /// Registers all devices with `poll`, which then reports each readable device by its number.
    ///
    /// # Errors
    /// If `epoll_ctl` fails.
    pub fn register(&self, poll: impl AsFd) -> io::Result<()> {
        for (number, endpoint) in (0..).zip(&self.endpoints) {
            let data = epoll::EventData::new_u64(number);
            epoll::add(&poll, endpoint, data, epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    /// Adds a packet to the batch of a device. Returns whether the batch is full, so that it must
    /// be written now.
    pub fn add(&mut self, number: u32, arrival: &Arrival<'_>) -> bool {
        let endpoint = &mut self.endpoints[number as usize];
        let Arrival { slot, at, bytes, headers, partial } = *arrival;
        endpoint.add(slot, bytes, headers, partial, at);
        endpoint.is_full()
    }

    /// Writes the packets that wait for a device, and calls `release` with their slots.
    pub fn write(
        &mut self,
        number: u32,
        arena: &Arena,
        clock: Clock,
        health: &mut Health,
        release: impl FnMut(u32),
    ) {
        let endpoint = &mut self.endpoints[number as usize];
        endpoint.write(arena, clock, health);
        endpoint.clear(release);
    }

    /// Returns the first device for which packets wait.
    pub fn first_waiting(&self) -> Option<u32> {
        self.endpoints.iter().position(|endpoint| !endpoint.is_empty()).map(|n| n as u32)
    }
}
