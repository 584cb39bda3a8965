//! Headers of frames: no bytes crash the parser or the splitter of super-packets, and all fields lie inside the
//! frame. The first bytes of an input are the device's header; the second bit of the first byte selects the framing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_wire::headers::{Framing, Headers};
use sojourn_wire::segment::Segments;
use sojourn_wire::vnet::{LENGTH, VnetHeader};

fuzz_target!(|data: &[u8]| {
    let Some((device, frame)) = data.split_first_chunk::<LENGTH>() else { return };
    let framing = if device[0] & 2 == 0 { Framing::Ethernet } else { Framing::Ip };
    let vnet = VnetHeader::parse(*device);
    let headers = Headers::parse(framing, frame);
    assert!(headers.payload_at().is_none_or(|at| at <= frame.len()));
    let _ = (
        headers.tcp_view(frame, headers.hosts()),
        headers.tcp_options(frame),
        headers.verify(frame),
    );
    let mut marked = frame.to_vec();
    let mut changed = headers;
    changed.set_tos(&mut marked, 0xff);
    let again = Headers::parse(framing, &marked);
    assert_eq!(again.ip.map(|ip| ip.tos), headers.ip.map(|_| 0xff));
    assert_eq!(again.flow_hash(7), headers.flow_hash(7));
    let mut segments = Segments::new(framing, &vnet, frame);
    let mut slot = vec![0; frame.len()];
    while let Some(length) = segments.next_length() {
        assert!(length <= frame.len());
        let piece = segments.write_next(&mut slot);
        assert_eq!(piece.map(|piece| piece.length), Some(length));
    }
});
