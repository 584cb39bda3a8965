//! Transfers over real sockets on loopback, with the threads of a server, a client, and files.
#![cfg(target_os = "linux")]

use sojourn_buffer::Params;
use sojourn_udp::files::{Files, PIECE_HEADER, continuation, header, kept, question};
use sojourn_udp::packet::{Code, Id};
use sojourn_udp::send::{SendError, send};
use sojourn_udp::sender::{Mode, Settings as Sending};
use sojourn_udp::serve::{Handler, Running, Settings};
use sojourn_udp::server::Message;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn serving(policy: &str) -> Settings {
    Settings::new("127.0.0.1:0".parse().unwrap(), Params::parse(policy).unwrap())
}

/// Returns an empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn piece(offset: u64, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(PIECE_HEADER + bytes.len());
    message.push(1);
    message.extend(offset.to_be_bytes());
    message.extend(bytes);
    message
}

fn file_messages(name: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = vec![header(name, Some(bytes.len() as u64))];
    messages.extend(bytes.chunks(60_000).zip(0..).map(|(c, i)| piece(i * 60_000, c)));
    messages
}

fn send_all(
    to: std::net::SocketAddr,
    settings: Sending,
    messages: Vec<Vec<u8>>,
) -> Result<[u8; 32], SendError> {
    let mut messages = messages.into_iter();
    let next = |memory: &mut Vec<u8>| Ok(messages.next().map(|m| *memory = m).is_some());
    send(to, settings, 64 << 10, next, |_| true).map(|(digest, _)| digest)
}

#[test]
fn files_arrive_whole_under_their_names() {
    let folder = folder("files");
    let files = Files::new(&folder, 100 << 20).unwrap();
    let received = files.received();
    let running = Running::start(&serving("elastic"), files).unwrap();
    let body: Vec<u8> = (0..5_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    for (i, mode) in [Mode::Windowed, Mode::StopAndWait { processed: true }].into_iter().enumerate()
    {
        let settings = Sending { mode, ..Sending::default() };
        let name = format!("file-{i}");
        let digest = send_all(running.address(), settings, file_messages(&name, &body)).unwrap();
        assert_eq!(std::fs::read(folder.join(&name)).unwrap(), body);
        let last = received.lock().unwrap().pop().unwrap();
        assert_eq!((last.name, last.length, last.digest), (name, 5_000_000, digest));
    }
    send_all(running.address(), Sending::default(), file_messages("empty", &[])).unwrap();
    assert_eq!(std::fs::read(folder.join("empty")).unwrap(), b"");
    let stats = running.stats();
    assert_eq!(stats.transport.opened, 3);
    assert_eq!(stats.buffer.processed.packets, stats.buffer.accepted.packets);
    assert!(stats.sojourn.0 >= 0.0 && stats.kernel_buffer > 0);
}

#[test]
fn nothing_lands_elsewhere_and_nothing_is_replaced() {
    let folder = folder("safety");
    std::fs::write(folder.join("there"), "old").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("dangling")).unwrap();
    let files = Files::new(&folder, 100_000).unwrap();
    let running = Running::start(&serving("elastic"), files).unwrap();
    let ends = |why: Code, messages: Vec<Vec<u8>>| match send_all(
        running.address(),
        Sending::default(),
        messages,
    ) {
        Err(SendError::Server(code)) => assert_eq!(code, why),
        other => panic!("{other:?}"),
    };
    let refused = |messages| ends(Code::Refused, messages);
    for name in ["there", "link", "dangling"] {
        ends(Code::Exists, file_messages(name, b"new"));
    }
    for name in ["/tmp/x", "../x", "a/b", "..", ".", "", ".hidden", "a\nb"] {
        refused(file_messages(name, b"new"));
    }
    // In this order: a file above the quota, a hole larger than the received data, a position out
    // of range, a missing name, two names, and an unknown kind of piece.
    ends(Code::Quota, file_messages("big", &vec![0; 100_001]));
    refused(vec![header("hole", Some(90_000)), piece(80_000, &[0; 10_000])]);
    refused(vec![header("far", None), piece(u64::MAX - 5, b"12345678")]);
    refused(vec![piece(0, b"no name")]);
    refused(vec![header("one", None), header("two", None), piece(0, b"x")]);
    refused(vec![vec![7; 20]]);
    refused(vec![Vec::new()]);
    // Refused files no longer count towards the quota.
    send_all(running.address(), Sending::default(), file_messages("last", &vec![1; 100_000]))
        .unwrap();
    ends(Code::Quota, file_messages("over", b"1"));
    drop(running);
    let mut left: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["dangling", "last", "link", "there"]);
    assert_eq!(std::fs::read_to_string(folder.join("there")).unwrap(), "old");
}

/// A client stops in the middle of a file; the next client sends only the rest.
#[test]
fn a_transfer_goes_on_where_it_stopped() {
    let folder = folder("resume");
    let files = Files::new(&folder, 20 << 20).unwrap();
    let running = Running::start(&serving("elastic"), files).unwrap();
    let body: Vec<u8> = (0..8_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let length = body.len() as u64;
    let ask = |name| {
        let messages = vec![question(name, length)];
        kept(send_all(running.address(), Sending::default(), messages).unwrap())
    };
    assert_eq!(ask("big"), (0, [0; 24]));
    let mut messages = file_messages("big", &body).into_iter();
    let given_up = send(
        running.address(),
        Sending { rate: Some(20_000_000), ..Sending::default() },
        64 << 10,
        |memory| Ok(messages.next().map(|m| *memory = m).is_some()),
        |now| now.counters.acknowledged < 2_000_000,
    );
    assert!(matches!(given_up, Err(SendError::Stopped)), "{given_up:?}");
    // The server still processes the data that have arrived.
    let (offset, sum) = (0..100)
        .find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            Some(ask("big")).filter(|(offset, _)| *offset > 0)
        })
        .unwrap();
    assert!((1_000_000..8_000_000).contains(&offset), "{offset}");
    let expected = <sha2::Sha256 as sha2::Digest>::digest(&body[..offset as usize]);
    assert_eq!(sum, expected[..24]);
    assert_eq!(ask("other"), (0, [0; 24]));
    // A continuation with another position, and one of another file length, are refused.
    for wrong in [continuation("big", length, offset + 1), continuation("big", 9, offset)] {
        let refused = send_all(running.address(), Sending::default(), vec![wrong]);
        assert!(matches!(refused, Err(SendError::Server(Code::Refused))), "{refused:?}");
    }
    let rest = body[offset as usize..].chunks(60_000).zip(0..);
    let mut messages = vec![continuation("big", length, offset)];
    messages.extend(rest.map(|(bytes, i)| piece(offset + i * 60_000, bytes)));
    let digest = send_all(running.address(), Sending::default(), messages).unwrap();
    assert_eq!(digest[..], <sha2::Sha256 as sha2::Digest>::digest(&body)[..]);
    assert_eq!(std::fs::read(folder.join("big")).unwrap(), body);
    drop(running);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
}

/// A handler that waits until the test releases it, and counts bytes.
struct Gate {
    open: Arc<(Mutex<bool>, std::sync::Condvar)>,
    bytes: u64,
}

impl Handler for Gate {
    fn message(&mut self, message: &Message) -> Result<(), Code> {
        let (open, changed) = &*self.open;
        let mut open = open.lock().unwrap();
        while !*open {
            open = changed.wait(open).unwrap();
        }
        self.bytes += message.data.len() as u64;
        Ok(())
    }

    fn finish(&mut self, _: Id) -> (Code, [u8; 32]) {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&self.bytes.to_be_bytes());
        (Code::Done, digest)
    }

    fn gone(&mut self, _: Id) {}
}

#[test]
fn a_policy_changes_while_it_runs_and_memory_stays_within() {
    let open = Arc::new((Mutex::new(false), std::sync::Condvar::new()));
    let gate = Gate { open: Arc::clone(&open), bytes: 0 };
    let running = Arc::new(Running::start(&serving("static size 200kb"), gate).unwrap());
    let (server, to) = (Arc::clone(&running), running.address());
    let client = std::thread::spawn(move || {
        let messages = vec![vec![1u8; 50_000]; 40];
        send_all(to, Sending::default(), messages)
    });
    let until = |what: &dyn Fn() -> bool| {
        for _ in 0..2000 {
            if what() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    };
    // The handler holds one message. The buffer has space for less than four, because of the charge
    // per message, so it holds three.
    assert!(until(&|| server.stats().occupied >= 150_000), "{:?}", server.stats());
    assert!(server.stats().occupied <= 200 << 10);
    server.set_policy(Params::parse("elastic floor 64kb ceiling 8mb").unwrap());
    assert!(until(&|| server.stats().occupied >= 1_900_000), "{:?}", server.stats());
    assert!(server.stats().size <= 8 << 20);
    *open.0.lock().unwrap() = true;
    open.1.notify_all();
    let digest = client.join().unwrap().unwrap();
    assert_eq!(u64::from_be_bytes(*digest.first_chunk().unwrap()), 2_000_000);
    assert_eq!(running.stats().buffer.discarded.packets, 0);
    assert!(running.failure().is_none());
}

#[test]
fn silence_and_a_stop_end_the_sender() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let settings = Sending { patience: 300_000_000, ..Sending::default() };
    let to = free.local_addr().unwrap();
    match send_all(to, settings.clone(), vec![vec![1]]) {
        Err(SendError::Silence) => {}
        other => panic!("{other:?}"),
    }
    match send(to, settings, 10, |_| Ok(false), |_| false) {
        Err(SendError::Stopped) => {}
        other => panic!("{other:?}"),
    }
}

/// Random datagrams do not stop the server: a later transfer succeeds.
#[test]
fn noise_does_not_stop_it() {
    let folder = folder("noise");
    let files = Files::new(&folder, 100_000).unwrap();
    let running = Running::start(&serving("elastic"), files).unwrap();
    let noisy = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for i in 0..2000usize {
        let bytes: Vec<u8> = (0..i % 1400).map(|at| (at * i) as u8).collect();
        noisy.send_to(&bytes, running.address()).unwrap();
    }
    send_all(running.address(), Sending::default(), file_messages("after", b"all well")).unwrap();
    assert!(running.stats().transport.strange > 0 && running.failure().is_none());
}
