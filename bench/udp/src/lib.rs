//! Shared parts of the programs: arguments `name=value`, a reader that pauses, a writer, and the
//! report of a process.

use nix::sys::resource::{UsageWho, getrusage};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Arguments of the command line.
pub struct Words(BTreeMap<String, String>);

impl Words {
    /// Returns the role, the address, and the arguments `name=value`.
    pub fn read() -> (String, String, Self) {
        let mut args = std::env::args().skip(1);
        let role = args.next().expect("recv or send");
        let address = args.next().expect("an address");
        let words = args.map(|word| {
            let (name, value) = word.split_once('=').expect("name=value");
            (name.to_owned(), value.to_owned())
        });
        (role, address, Self(words.collect()))
    }

    /// Returns the text of an argument, or the default.
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.0.get(name).map_or(default, String::as_str)
    }

    /// Returns the number of an argument, or the default.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.0.get(name).map_or(default, |text| text.parse().expect(name))
    }
}

/// A reader that pauses for the first `pause` milliseconds of each period of `every` milliseconds.
pub struct Reader {
    start: Option<Instant>,
    pause: u64,
    every: u64,
    last: Instant,
    /// Number of bytes read.
    pub bytes: u64,
}

impl Reader {
    /// Returns the reader that the arguments describe.
    pub fn new(words: &Words) -> Self {
        let (pause, every) = (words.number("pause", 0), words.number("every", 1).max(1));
        Self { start: None, pause, every, last: Instant::now(), bytes: 0 }
    }

    /// Returns the remaining time of the present pause; `None` outside a pause.
    pub fn rest(&mut self) -> Option<Duration> {
        let start = *self.start.get_or_insert_with(Instant::now);
        let at = start.elapsed().as_micros() as u64 % (self.every * 1000);
        (at < self.pause * 1000).then(|| Duration::from_micros(self.pause * 1000 - at))
    }

    /// Records that bytes were read.
    pub fn note(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.last = Instant::now();
    }

    /// Returns the time in seconds from the first call of [`Reader::rest`] to the last read.
    pub fn seconds(&self) -> f64 {
        self.start.map_or(0.0, |start| (self.last - start).as_secs_f64())
    }
}

/// Schedule of a sender: it sends for `seconds` seconds, without pauses if `burst` is 0, otherwise
/// `burst` bytes every `gap` milliseconds.
pub struct Writer {
    start: Instant,
    seconds: f64,
    burst: u64,
    gap: u64,
    /// Number of bytes written.
    pub bytes: u64,
}

impl Writer {
    /// Returns the writer that the arguments describe.
    pub fn new(words: &Words) -> Self {
        Self {
            start: Instant::now(),
            seconds: words.text("seconds", "3").parse().expect("seconds"),
            burst: words.number("burst", 0),
            gap: words.number("gap", 100),
            bytes: 0,
        }
    }

    /// Waits until the next message of `length` bytes is due; returns false after the last one.
    pub fn next(&mut self, length: u64) -> bool {
        if self.burst > 0 {
            let due = Duration::from_millis(self.bytes / self.burst * self.gap);
            std::thread::sleep(due.saturating_sub(self.start.elapsed()));
        }
        self.bytes += length;
        self.start.elapsed().as_secs_f64() < self.seconds
    }
}

/// Returns the greatest memory of this process so far in bytes; getrusage would include the
/// parent's memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// Prints the bytes, the time, and the processor time and memory of this process as JSON; `more`
/// contains further fields.
pub fn report(bytes: u64, seconds: f64, more: &str) {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("usage");
    let time = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    println!(
        "{{\"bytes\": {bytes}, \"seconds\": {seconds}, \"user\": {}, \"system\": {}, \
         \"memory\": {}{more}}}",
        time(usage.user_time()),
        time(usage.system_time()),
        resident(),
    );
}
