//! This project's UDP transport: `ours recv|send ADDRESS name=value ...`.

use sojourn_bench_recv::{Reader, Words, Writer, report};
use sojourn_buffer::Params;
use sojourn_udp::packet::{Code, DIGEST, Id};
use sojourn_udp::send::send;
use sojourn_udp::sender::Settings as Sending;
use sojourn_udp::serve::{Handler, Running, Settings};
use sojourn_udp::server::Message;
use std::sync::{Arc, Condvar, Mutex};

struct Shared {
    reader: Mutex<Reader>,
    over: Mutex<bool>,
    changed: Condvar,
}

struct Count(Arc<Shared>);

impl Handler for Count {
    fn message(&mut self, message: &Message) -> Result<(), Code> {
        let mut reader = self.0.reader.lock().expect("reader");
        if let Some(rest) = reader.rest() {
            std::thread::sleep(rest);
        }
        reader.note(message.data.len() as u64);
        Ok(())
    }

    fn finish(&mut self, _: Id) -> (Code, [u8; DIGEST]) {
        (Code::Done, [0; DIGEST])
    }

    fn gone(&mut self, _: Id) {
        *self.0.over.lock().expect("over") = true;
        self.0.changed.notify_all();
    }
}

fn main() {
    let (role, address, words) = Words::read();
    let address = address.parse().expect("an address");
    if role == "recv" {
        let policy = Params::parse(words.text("policy", "elastic")).expect("policy");
        let mut settings = Settings::new(address, policy);
        settings.kernel_buffer = words.number("kernel", settings.kernel_buffer as u64) as usize;
        let shared = Arc::new(Shared {
            reader: Mutex::new(Reader::new(&words)),
            over: Mutex::new(false),
            changed: Condvar::new(),
        });
        let running = Running::start(&settings, Count(Arc::clone(&shared))).expect("server");
        println!("ready");
        let over = shared.over.lock().expect("over");
        drop(shared.changed.wait_while(over, |over| !*over).expect("over"));
        let stats = running.stats();
        let reader = shared.reader.lock().expect("reader");
        let more = format!(
            ", \"discarded\": {}, \"arrived\": {}, \"repeated\": {}, \"peak\": {}, \"used\": {}, \
             \"kernel\": {}, \"sojourn\": {}",
            stats.buffer.discarded.packets,
            stats.buffer.arrived.packets,
            stats.transport.repeated,
            stats.peaks.0,
            stats.peaks.1,
            stats.kernel_buffer,
            stats.sojourn.1,
        );
        report(reader.bytes, reader.seconds(), &more);
    } else {
        let mut settings = Sending::default();
        settings.chunk = words.number("chunk", u64::from(settings.chunk)) as u16;
        let length = words.number("message", 65_536) as usize;
        let mut writer = Writer::new(&words);
        let next = |memory: &mut Vec<u8>| {
            if memory.len() != length {
                memory.resize(length, 7);
            }
            Ok(writer.next(length as u64))
        };
        let begun = std::time::Instant::now();
        let (_, last) = send(address, settings, length, next, |_| true).expect("sent");
        let more = format!(
            ", \"sent\": {}, \"lost\": {}, \"repeated\": {}, \"timeouts\": {}, \"rtt\": {}, \"cwnd\": {}",
            last.counters.sent,
            last.counters.lost,
            last.counters.repeated,
            last.counters.timeouts,
            last.rtt,
            last.cwnd
        );
        report(last.counters.acknowledged, begun.elapsed().as_secs_f64(), &more);
    }
}
