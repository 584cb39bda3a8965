//! CAKE's ACK filter reads TCP headers through the observer, with a link, a transmit ring or a
//! shared medium, with loss or without.

use crate::common::{Frame, params};
use sojourn_link::{Event, Link, Medium, Observer, Station, csma};
use sojourn_queue::{DropReason, Headers, Sender, TcpView};
use sojourn_random::Key;
use sojourn_units::{EPOCH, MILLISECOND, Nanos, SECOND};

/// Counts of a connection's acknowledgements; a frame acknowledges as many segments as its number.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    filtered: u32,
    lost: u32,
    delivered: u32,
    /// Number of the last acknowledgement that arrived.
    last: u32,
}

impl Observer<Frame> for Counts {
    fn on_event(&mut self, _at: Nanos, frame: &Frame, event: Event) {
        match event {
            Event::Dropped { reason, queued } => {
                assert_eq!((reason, queued), (DropReason::AckFilter, true));
                self.filtered += 1;
            }
            Event::Lost => self.lost += 1,
            Event::Delivered => {
                self.delivered += 1;
                self.last = self.last.max(frame.number);
            }
            _ => {}
        }
    }
    fn tcp(&self, frame: &Frame) -> Option<TcpView> {
        let ack = 1000 * frame.number;
        Some(TcpView { ack, flags: TcpView::ACK, ..TcpView::default() })
    }
    fn headers(&self, _: &Frame) -> Headers {
        Headers::default()
    }

    fn sender(&self, _: &Frame) -> Sender {
        Sender::default()
    }
}

const ACKS: u32 = 4000;

/// Offers an acknowledgement each millisecond to `send`, whose link has the capacity for one in
/// five.
fn offer_all(mut offer: impl FnMut(Nanos, Frame)) {
    for number in 0..ACKS {
        let frame = Frame { flow: 1, ..Frame::new(number, 66) };
        offer(EPOCH + Nanos::from(number) * MILLISECOND, frame);
    }
}

/// Returns the counts of acknowledgements at a station, on a shared medium or without one.
fn at_station(ring: u32, mut medium: Option<Medium>, netem: &str, queue: &str) -> Counts {
    let mut station =
        Station::new(&params(100_000, netem, queue), ring, Key::new(3, "link"), EPOCH);
    let mut counts = Counts::default();
    offer_all(|now, frame| {
        while let Some(at) = station.next_wakeup().filter(|at| *at <= now) {
            station.poll(at, medium.as_mut(), &mut counts);
        }
        station.send(now, frame, medium.as_mut(), &mut counts);
    });
    station.poll(EPOCH + 100 * SECOND, medium.as_mut(), &mut counts);
    station.assert_conserved();
    counts
}

fn at_link(netem: &str, queue: &str) -> Counts {
    let mut link = Link::new(&params(100_000, netem, queue), Key::new(3, "link"), EPOCH);
    let mut counts = Counts::default();
    offer_all(|now, frame| {
        link.send(now, frame, &mut counts);
    });
    link.poll(EPOCH + 100 * SECOND, &mut counts);
    link.assert_conserved();
    counts
}

#[test]
fn acknowledgements_are_filtered_on_every_transmitter() {
    let bus = || Some(Medium::new(csma::Params::default()));
    for queue in ["cake unlimited ack-filter", "cake unlimited ack-filter-aggressive"] {
        for netem in ["delay 1ms", "delay 1ms loss 10%"] {
            let link = at_link(netem, queue);
            assert_eq!(at_station(0, None, netem, queue), link, "{queue}, {netem}");
            let stations = [(1, None), (4, None), (0, bus()), (1, bus())];
            let all = stations.map(|(ring, medium)| at_station(ring, medium, netem, queue));
            for counts in all.iter().chain([&link]) {
                assert!(counts.filtered > ACKS / 2, "{queue}, {netem}: {counts:?}");
                assert_eq!(counts.filtered + counts.lost + counts.delivered, ACKS);
                assert_eq!(counts.lost > 0, netem.contains("loss"));
                assert!(counts.last > ACKS - 10, "{queue}, {netem}: {counts:?}");
            }
        }
    }
}
