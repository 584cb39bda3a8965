//! CoDel after RFC 8289: rustc -O codel.rs; sojourn judge --discipline codel -- ./codel
use std::collections::VecDeque;
use std::io::{BufRead, Write, stdin, stdout};

#[derive(Clone, Copy)]
struct Packet {
    t: i64,
    id: i64,
    size: i64,
    ecn: i64,
}

#[derive(Default)]
struct Codel {
    target: i64,
    interval: i64,
    limit: i64,
    mtu: i64,
    ecn: i64,
    queue: VecDeque<Packet>,
    bytes: i64,
    first_above: Option<i64>,
    drop_next: i64,
    count: i64,
    last: i64,
    dropping: bool,
}

impl Codel {
    fn take(&mut self, now: i64) -> (Option<Packet>, bool) {
        let packet = self.queue.pop_front();
        self.bytes -= packet.map_or(0, |p| p.size);
        if packet.is_none_or(|p| now - p.t < self.target) || self.bytes <= self.mtu {
            self.first_above = None;
            return (packet, false);
        }
        (packet, now >= *self.first_above.get_or_insert(now + self.interval))
    }
    fn law(&self, t: i64) -> i64 {
        t + (self.interval as f64 / (self.count as f64).sqrt()) as i64
    }
    fn dequeue(&mut self, now: i64) -> (Option<Packet>, Vec<i64>, Vec<i64>) {
        let (mut packet, late) = self.take(now);
        let mut dropped = vec![];
        let entering = late && !self.dropping;
        if entering {
            let recent = now - self.drop_next < 16 * self.interval;
            self.count = if recent { (self.count - self.last).max(1) } else { 1 };
            (self.last, self.drop_next) = (self.count, self.law(now));
        }
        self.dropping = late;
        while self.dropping && (entering || now >= self.drop_next) {
            let first = packet.expect("a late packet");
            self.count += i64::from(!entering);
            let marks = self.ecn != 0 && first.ecn != 0;
            if !marks {
                dropped.push(first.id);
                let still;
                (packet, still) = self.take(now);
                self.dropping = still || entering;
            }
            if self.dropping && !entering {
                self.drop_next = self.law(self.drop_next)
            }
            if marks {
                return (packet, dropped, vec![first.id]);
            }
            if entering {
                break;
            }
        }
        (packet, dropped, vec![])
    }
}

fn main() {
    let mut codel = Codel::default();
    for line in stdin().lock().lines().map_while(Result::ok) {
        let value = |key: &str| -> i64 {
            let after = line.split_once(&format!("\"{key}\":")).map_or("", |(_, after)| after);
            after.split([',', '}']).next().and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let answer = if line.contains("\"judge\"") {
            let [target, interval, limit, mtu, ecn] =
                ["target", "interval", "limit", "mtu", "ecn"].map(value);
            codel = Codel { target, interval, limit, mtu, ecn, ..Codel::default() };
            "{}".to_owned()
        } else if line.contains("enqueue") {
            let [t, id, size, ecn] = ["t", "id", "size", "ecn"].map(value);
            if codel.queue.len() as i64 >= codel.limit {
                format!("{{\"dropped\":[{id}]}}")
            } else {
                codel.queue.push_back(Packet { t, id, size, ecn });
                codel.bytes += size;
                "{}".to_owned()
            }
        } else {
            let (packet, dropped, marked) = codel.dequeue(value("t"));
            let id = packet.map_or("null".to_owned(), |p| p.id.to_string());
            format!("{{\"id\":{id},\"dropped\":{dropped:?},\"marked\":{marked:?}}}")
        };
        println!("{answer}");
        stdout().flush().expect("the judge reads");
    }
}
