//! A server that counts the bytes of received messages, and a client that sends a thousand
//! messages.

use sojourn_udp::buffer::Params;
use sojourn_udp::packet::{Code, DIGEST, Id};
use sojourn_udp::send::send;
use sojourn_udp::sender::Settings as Sending;
use sojourn_udp::serve::{Handler, Running, Settings};
use sojourn_udp::server::Message;

const LENGTH: usize = 10_000;

/// A handler that counts the bytes of messages. It answers a client with a code and 32 bytes, whose
/// meaning each handler defines.
struct Counting(u64);

impl Handler for Counting {
    fn message(&mut self, message: &Message) -> Result<(), Code> {
        self.0 += message.data.len() as u64;
        Ok(())
    }

    fn finish(&mut self, _: Id) -> (Code, [u8; DIGEST]) {
        let mut answer = [0; DIGEST];
        answer[..8].copy_from_slice(&self.0.to_be_bytes());
        (Code::Done, answer)
    }

    fn gone(&mut self, _: Id) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Params::parse("elastic ceiling 16mb")?;
    let settings = Settings::new("127.0.0.1:0".parse()?, policy);
    let mut server = Running::start(&settings, Counting(0))?;

    let mut left = 1000;
    let next = |message: &mut Vec<u8>| {
        if left == 0 {
            return Ok(false);
        }
        left -= 1;
        message.clear();
        message.resize(LENGTH, b'x');
        Ok(true)
    };
    let (answer, progress) = send(server.address(), Sending::default(), LENGTH, next, |_| true)?;
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&answer[..8]);
    println!("the server has handled {} bytes", u64::from_be_bytes(bytes));
    println!("round-trip time {} us", progress.rtt / 1000);
    println!("its buffer was {} bytes at most", server.stats().peaks.0);
    server.stop();
    Ok(())
}
