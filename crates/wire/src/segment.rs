//! Splits a super-packet into packets of wire size.
//!
//! Splits super-packets as a network card with TCP segmentation offload does, or Linux in
//! `tcp_gso_segment` and `__udp_gso_segment`. Every packet gets a copy of the super-packet's
//! headers with its own length, sequence number and IPv4 identification. FIN and PSH stay only in
//! the last packet, Congestion Window Reduced only in the first. Transport checksums stay partial,
//! so that no payload is summed: the checksum field holds the sum of the pseudo-header, and the
//! kernel or [`Partial::finish`] completes it.
//!
//! A frame that is a single packet gives this one packet, so callers need not distinguish
//! super-packets from single packets.

use sojourn_queue::TcpView;

use crate::headers::{Framing, Headers, Transport, pseudo_header};
use crate::vnet::{Gso, Partial, VnetHeader};
use sojourn_capture::checksum;

/// A packet that has been written to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The packet's headers. The frame begins at the slot's first byte.
    pub headers: Headers,
    /// Length of the frame in bytes.
    pub length: usize,
    /// Position of the transport checksum if it is partial.
    pub partial: Option<Partial>,
}

/// Splits a super-packet (GSO) into its packets, in order. Any other frame is one packet.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    frame: &'a [u8],
    headers: Headers,
    partial: Option<Partial>,
    split: Option<Split>,
    /// Bytes of payload that have been written so far.
    done: usize,
    pieces: u16,
}

/// Values that all packets of a super-packet share.
#[derive(Clone, Copy, Debug)]
struct Split {
    ip_at: usize,
    transport_at: usize,
    payload_at: usize,
    /// Offset of the payload's end; padding may follow.
    end: usize,
    segment: usize,
    /// Sum of IPv4's header without length, identification and checksum; `None` for IPv6.
    ipv4: Option<u64>,
    identification: u16,
    /// Sum of the pseudo-header without its length field.
    pseudo: u64,
}

impl<'a> Segments<'a> {
    /// Returns the packets of a frame that was read with the header `vnet`. A super-packet whose
    /// headers contradict `vnet` is not split; the kernel does not produce such super-packets.
    pub fn new(framing: Framing, vnet: &VnetHeader, frame: &'a [u8]) -> Self {
        let headers = Headers::parse(framing, frame);
        let split = Split::new(vnet, &headers, frame);
        Self {
            frame,
            headers,
            partial: vnet.partial_within(frame.len()),
            split,
            done: 0,
            pieces: 0,
        }
    }

    /// Returns the headers of the super-packet.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Returns the length of the next packet's frame in bytes; `None` after the last packet.
    pub fn next_length(&self) -> Option<usize> {
        let length = match &self.split {
            Some(split) => {
                split.payload_at + split.segment.min(split.end - split.payload_at - self.done)
            }
            None => self.frame.len(),
        };
        (!self.is_done()).then_some(length)
    }

    fn is_done(&self) -> bool {
        match &self.split {
            Some(split) => split.payload_at + self.done >= split.end,
            None => self.pieces > 0,
        }
    }

    /// Writes the next packet to the beginning of `slot`. Returns `None` after the last packet.
    /// Also returns `None` if the slot is shorter than [`Segments::next_length`]; this packet is
    /// then skipped.
    pub fn write_next(&mut self, slot: &mut [u8]) -> Option<Piece> {
        let length = self.next_length()?;
        let number = self.pieces;
        self.pieces = number.wrapping_add(1);
        let Some(split) = self.split else {
            slot.get_mut(..length)?.copy_from_slice(self.frame);
            return Some(Piece { headers: self.headers, length, partial: self.partial });
        };
        let from = self.done;
        self.done += length - split.payload_at;
        let is_last = self.is_done();
        let slot = slot.get_mut(..length)?;
        let (header, payload) = slot.split_at_mut(split.payload_at);
        header.copy_from_slice(&self.frame[..split.payload_at]);
        payload.copy_from_slice(&self.frame[split.payload_at + from..][..payload.len()]);
        let headers = split.write(&self.headers, header, payload.len(), from, number, is_last);
        Some(Piece { headers, length, partial: headers.checksum_place() })
    }
}

impl Split {
    fn new(vnet: &VnetHeader, headers: &Headers, frame: &[u8]) -> Option<Self> {
        let ip = headers.ip.as_ref()?;
        let segment = usize::from(vnet.segment_size);
        let (transport_at, payload) = match (vnet.gso, &headers.transport) {
            (Gso::TcpV4 | Gso::TcpV6, Transport::Tcp(tcp)) => (usize::from(tcp.at), tcp.payload),
            (Gso::UdpL4, Transport::Udp(udp)) => (usize::from(udp.at), udp.payload),
            _ => return None,
        };
        if segment == 0 || payload == 0 {
            return None;
        }
        let ip_at = usize::from(ip.at);
        let identification = u16::from_be_bytes([frame[ip_at + 4], frame[ip_at + 5]]);
        let ipv4 = ip.source.is_ipv4().then(|| {
            let header = &frame[ip_at..ip_at + usize::from(ip.header)];
            checksum::sum(&header[..2])
                + checksum::sum(&header[6..10])
                + checksum::sum(&header[12..])
        });
        Some(Self {
            ip_at,
            transport_at,
            payload_at: headers.payload_at()?,
            end: ip_at + ip.total as usize,
            segment,
            ipv4,
            identification,
            pseudo: pseudo_header(frame, ip),
        })
    }

    /// Changes `header`, a copy of the super-packet's headers, to those of the packet whose payload
    /// begins at `from`.
    fn write(
        &self,
        whole: &Headers,
        header: &mut [u8],
        payload: usize,
        from: usize,
        number: u16,
        is_last: bool,
    ) -> Headers {
        let mut headers = *whole;
        let total = self.payload_at - self.ip_at + payload;
        headers.length = whole.length - whole.ip.map_or(0, |ip| ip.total) + total as u32;
        if let Some(ip) = &mut headers.ip {
            ip.total = total as u32;
        }
        let mut put =
            |at: usize, word: u16| header[at..at + 2].copy_from_slice(&word.to_be_bytes());
        if let Some(sum) = self.ipv4 {
            let identification = self.identification.wrapping_add(number);
            let sum = sum + total as u64 + u64::from(identification);
            put(self.ip_at + 2, total as u16);
            put(self.ip_at + 4, identification);
            put(self.ip_at + 10, !checksum::fold(sum));
        } else {
            put(self.ip_at + 4, (total - 40) as u16);
        }
        let datagram = self.ip_at + total - self.transport_at;
        let partial = checksum::fold(self.pseudo + datagram as u64);
        match &mut headers.transport {
            Transport::Tcp(tcp) => {
                put(self.transport_at + 16, partial);
                tcp.payload = payload as u32;
                tcp.sequence = tcp.sequence.wrapping_add(from as u32);
                if from > 0 {
                    tcp.flags &= !TcpView::CWR;
                }
                if !is_last {
                    tcp.flags &= !(TcpView::FIN | TcpView::PSH);
                }
                header[self.transport_at + 4..self.transport_at + 8]
                    .copy_from_slice(&tcp.sequence.to_be_bytes());
                header[self.transport_at + 13] = tcp.flags;
            }
            Transport::Udp(udp) => {
                put(self.transport_at + 4, datagram as u16);
                put(self.transport_at + 6, partial);
                udp.payload = payload as u32;
            }
            Transport::Icmp(_) | Transport::Opaque => {}
        }
        headers
    }
}
