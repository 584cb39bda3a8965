//! Runs the scripts `tests/scripts/*.pkt` against one end of a connection, segment by segment.
//!
//! A script is a list of lines, each a time and an action; `#` starts a comment.
//!
//! | line | meaning |
//! |---|---|
//! | `use WORDS` | first line: the transport, as a user writes it |
//! | `+TIME write N`, `write unlimited`, `close`, `abort`, `pause`, `resume`, `read N` | the application |
//! | `+TIME connect [OPTIONS]` | opens actively; the peer answers after `rtt` (a second time word) |
//! | `+TIME accept [OPTIONS]` | opens passively |
//! | `+TIME open` / `listen` | creates the end and leaves the handshake to the script |
//! | `+TIME < SEGMENT [ce]` | the segment arrives |
//! | `+TIME > SEGMENT` | the next segment that leaves, and when (within 1 ms) |
//! | `+TIME none` | nothing has left since |
//! | `+TIME expect NAME VALUE ...` | `cwnd`, `ssthresh`, `pipe` in segments, or bytes with `b`; `state`, `phase`, counters |
//!
//! A segment is `FLAGS SEQ:END [ack N] [win N] [sack A:B ...] [ts VALUE ECHO] [mss N] [sackok]
//! [wscale N] [marked N] [noect]`; flags are letters of `SFR.ECA` (`.` is ACK, `A` is AE), `marked` is
//! the option's counter of marked bytes, `T` for ECT(0) and `L` for ECT(1)
//! (`noect` for neither). Only named fields of an expected segment are compared, and always its flags
//! (except `T` and `L`), SEQ:END and, if it has SACK blocks, all of them. Times are relative to the line
//! before.

use sojourn_tcp::segment::SynOptions;
use sojourn_tcp::{Connection, Flags, Params, Role, Segment};
use sojourn_units::{EPOCH, MILLISECOND, Nanos, quantity};
use std::collections::VecDeque;
use std::sync::Arc;

struct Script {
    params: Arc<Params>,
    clock: Nanos,
    end: Option<Connection>,
    out: VecDeque<(Nanos, Segment)>,
    scripted_end: u64,
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let (a, b) = text.split_once(':').ok_or(format!("`{text}` is no A:B"))?;
    Ok((number(a)?, number(b)?))
}

fn letters(text: &str) -> Result<Flags, String> {
    let mut flags = Flags::NONE;
    for letter in text.chars() {
        flags |= match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'P' => Flags::PSH,
            'R' => Flags::RST,
            '.' => Flags::ACK,
            'E' => Flags::ECE,
            'C' => Flags::CWR,
            'A' => Flags::AE,
            'T' => Flags::ECT0,
            'L' => Flags::ECT1,
            _ => return Err(format!("`{letter}` is no flag")),
        };
    }
    Ok(flags)
}

#[allow(clippy::struct_excessive_bools, reason = "each says whether a word was written")]
/// A segment as written in a script, and the parts that the script names.
struct Written {
    segment: Segment,
    ack: bool,
    win: bool,
    sack: Vec<(u64, u64)>,
    no_sack: bool,
    ts: bool,
    options: bool,
    ect: bool,
    marked: bool,
    ce: bool,
}

fn written(words: &[&str]) -> Result<Written, String> {
    let flags = letters(words.first().ok_or("a segment needs flags")?)?;
    let (seq, end) = range(words.get(1).ok_or("a segment needs SEQ:END")?)?;
    let mut w = Written {
        segment: Segment::new(seq, 0, flags),
        ack: false,
        win: false,
        sack: Vec::new(),
        no_sack: false,
        ts: false,
        options: false,
        ect: flags.any(Flags::ECT0 | Flags::ECT1),
        marked: false,
        ce: false,
    };
    let span = u64::from(flags.has(Flags::SYN)) + u64::from(flags.has(Flags::FIN));
    w.segment.len = (end - seq - span) as u32;
    let mut options = SynOptions::default();
    let mut i = 2;
    let take = |i: &mut usize| {
        *i += 1;
        words.get(*i).copied().ok_or("a value is missing".to_owned())
    };
    while i < words.len() {
        match words[i] {
            "ack" => {
                w.segment.ack = number(take(&mut i)?)?;
                w.ack = true;
            }
            "win" => {
                w.segment.window = number(take(&mut i)?)? as u32;
                w.win = true;
            }
            "sack" => {
                while let Some(Ok(block)) = words.get(i + 1).map(|t| range(t)) {
                    w.sack.push(block);
                    i += 1;
                }
            }
            "nosack" => w.no_sack = true,
            "ts" => {
                let value = number(take(&mut i)?)? as u32;
                let echo = number(take(&mut i)?)? as u32;
                w.segment.set_timestamps(value, echo);
                w.ts = true;
            }
            "mss" => {
                options.mss = number(take(&mut i)?)? as u16;
                w.options = true;
            }
            "sackok" => {
                options.sack_permitted = true;
                w.options = true;
            }
            "wscale" => {
                options.window_scale = Some(number(take(&mut i)?)? as u8);
                w.options = true;
            }
            "marked" => {
                w.segment.set_marked_bytes(number(take(&mut i)?)? as u32);
                w.marked = true;
            }
            "noect" => w.ect = true,
            "ce" => w.ce = true,
            word => return Err(format!("unknown word `{word}` in a segment")),
        }
        i += 1;
    }
    w.segment.set_syn_options(options);
    for &(start, end) in &w.sack {
        if !w.segment.push_sack(start, end) {
            return Err("too many blocks".to_owned());
        }
    }
    Ok(w)
}

impl Script {
    fn end(&mut self) -> Result<&mut Connection, String> {
        self.end.as_mut().ok_or("no connection yet".to_owned())
    }

    /// Runs the end's timers up to `until` and collects what it sends.
    fn run(&mut self, until: Nanos, enough: impl Fn(&Self) -> bool) {
        self.drain();
        while let Some(end) = &mut self.end {
            let Some(at) = end.deadline().filter(|&at| at <= until) else {
                break;
            };
            if enough(self) {
                return;
            }
            let at = at.max(self.clock);
            self.clock = at;
            self.end.as_mut().unwrap().on_deadline(at);
            self.drain();
        }
        if !enough(self) {
            self.clock = until;
        }
    }

    fn drain(&mut self) {
        let Some(end) = &mut self.end else { return };
        while let Some(segment) = end.poll_transmit(self.clock) {
            self.out.push_back((self.clock, segment));
            assert!(self.out.len() < 100_000, "it sends without end");
        }
    }

    fn quiet(&self) -> Result<(), String> {
        match self.out.front() {
            None => Ok(()),
            Some((at, segment)) => {
                Err(format!("at {} ms it sent {segment:?}", (at - EPOCH) as f64 / 1e6))
            }
        }
    }

    fn act(&mut self, after: Nanos, words: &[&str]) -> Result<(), String> {
        let until = self.clock + after;
        if words[0] == ">" {
            self.run(until + MILLISECOND, |s| !s.out.is_empty());
            return self.expect_segment(until, &words[1..]);
        }
        self.run(until, |_| false);
        match words[0] {
            "none" => return self.quiet(),
            "expect" => {
                return words[1..].chunks(2).try_for_each(|pair| self.expect(pair));
            }
            _ => {}
        }
        self.quiet()?;
        let now = self.clock;
        match (words[0], words.get(1)) {
            ("<", _) => {
                let w = written(&words[1..])?;
                self.scripted_end = self.scripted_end.max(w.segment.end());
                self.end()?.on_segment(now, &w.segment, w.ce);
            }
            ("write", Some(&"unlimited")) => self.end()?.write_unlimited(),
            ("write", Some(n)) => {
                let n = number(n)?;
                self.end()?.write(n);
            }
            ("close", _) => self.end()?.close(),
            ("abort", _) => self.end()?.abort(),
            ("pause", _) => self.end()?.pause_reading(),
            ("resume", _) => self.end()?.resume_reading(),
            ("read", Some(n)) => {
                let n = number(n)?;
                self.end()?.read(n);
            }
            ("open", _) => self.end = Some(Connection::new(&self.params, Role::Active, now)),
            ("listen", _) => self.end = Some(Connection::new(&self.params, Role::Passive, now)),
            ("connect", _) => self.connect(&words[1..])?,
            ("accept", _) => self.accept(&words[1..])?,
            (word, _) => return Err(format!("unknown action `{word}`")),
        }
        self.drain();
        Ok(())
    }

    /// Returns the options of the peer's SYN: all, less those that the line excludes.
    fn peer(&self, words: &[&str]) -> Result<(Segment, Nanos), String> {
        let mut options =
            SynOptions { mss: self.params.mss as u16, sack_permitted: true, window_scale: Some(8) };
        let (mut window, mut rtt, mut flags) = (65_535, 100 * MILLISECOND, Flags::NONE);
        let mut timestamps = false;
        let mut i = 0;
        while i < words.len() {
            match words[i] {
                "nosack" => options.sack_permitted = false,
                "nowscale" => options.window_scale = None,
                "ts" => timestamps = true,
                "ecn" => flags |= Flags::ECE,
                "win" => {
                    i += 1;
                    window = number(words[i])? as u32;
                }
                "rtt" => {
                    i += 1;
                    rtt = quantity::parse_time(words[i]).map_err(|e| format!("{e:?}"))?;
                }
                word => return Err(format!("unknown word `{word}`")),
            }
            i += 1;
        }
        let mut syn = Segment::new(0, 0, Flags::SYN | flags);
        syn.set_syn_options(options);
        syn.window = window;
        if timestamps {
            syn.set_timestamps(1, 0);
        }
        Ok((syn, rtt))
    }

    fn connect(&mut self, words: &[&str]) -> Result<(), String> {
        let (mut syn, rtt) = self.peer(words)?;
        let mut end = Connection::new(&self.params, Role::Active, self.clock);
        let ours = end.poll_transmit(self.clock).ok_or("no SYN")?;
        self.clock += rtt;
        syn.flags |= Flags::ACK;
        syn.ack = 1;
        if let (Some(peer), Some(ours)) = (syn.timestamps(), ours.timestamps()) {
            syn.set_timestamps(peer.value, ours.value);
        }
        end.on_segment(self.clock, &syn, false);
        end.poll_transmit(self.clock).ok_or("no ACK of the SYN-ACK")?;
        self.end = Some(end);
        self.scripted_end = 1;
        Ok(())
    }

    fn accept(&mut self, words: &[&str]) -> Result<(), String> {
        let (mut syn, rtt) = self.peer(words)?;
        if syn.flags.has(Flags::ECE) {
            syn.flags |= Flags::CWR;
        }
        let mut end = Connection::new(&self.params, Role::Passive, self.clock);
        end.on_segment(self.clock, &syn, false);
        let answer = end.poll_transmit(self.clock).ok_or("no SYN-ACK")?;
        self.clock += rtt;
        let mut ack = Segment::new(1, 1, Flags::ACK);
        ack.window = syn.window;
        if let (Some(_), Some(ours)) = (syn.timestamps(), answer.timestamps()) {
            ack.set_timestamps(2, ours.value);
        }
        end.on_segment(self.clock, &ack, false);
        self.end = Some(end);
        self.scripted_end = 1;
        Ok(())
    }

    fn expect_segment(&mut self, at: Nanos, words: &[&str]) -> Result<(), String> {
        let w = written(words)?;
        let Some((sent, got)) = self.out.pop_front() else {
            return Err("it sent nothing".to_owned());
        };
        let complain = |what: &str| Err(format!("{what}: it sent {got:?}"));
        if sent.abs_diff(at) > MILLISECOND {
            return Err(format!("it sent {got:?} {} ms late", (sent as f64 - at as f64) / 1e6));
        }
        self.clock = self.clock.max(sent);
        let want = &w.segment;
        for (bit, name) in [
            (Flags::SYN, "SYN"),
            (Flags::FIN, "FIN"),
            (Flags::RST, "RST"),
            (Flags::ACK, "ACK"),
            (Flags::ECE, "ECE"),
            (Flags::CWR, "CWR"),
            (Flags::AE, "AE"),
        ] {
            if want.flags.has(bit) != got.flags.has(bit) {
                return complain(name);
            }
        }
        // PSH is compared only if the line has it.
        if want.flags.has(Flags::PSH) && !got.flags.has(Flags::PSH) {
            return complain("PSH");
        }
        let codepoint = |s: &Segment| [Flags::ECT0, Flags::ECT1].map(|bit| s.flags.has(bit));
        if w.ect && codepoint(want) != codepoint(&got) {
            return complain("ECT");
        }
        if (want.seq, want.end()) != (got.seq, got.end()) {
            return complain("numbers");
        }
        if w.ack && want.ack != got.ack {
            return complain("ack");
        }
        if w.win && want.window != got.window {
            return complain("win");
        }
        if w.ts && want.timestamps() != got.timestamps() {
            return complain(&format!("ts {:?}", got.timestamps()));
        }
        if w.marked && want.marked_bytes() != got.marked_bytes() {
            return complain(&format!("marked {:?}", got.marked_bytes()));
        }
        if w.options && want.syn_options() != got.syn_options() {
            return complain(&format!("options {:?}", got.syn_options()));
        }
        if (w.no_sack || !w.sack.is_empty()) && !got.sack().eq(w.sack.iter().copied()) {
            return complain("sack");
        }
        Ok(())
    }

    fn expect(&mut self, pair: &[&str]) -> Result<(), String> {
        let [name, value] = pair else {
            return Err("expect NAME VALUE".to_owned());
        };
        let end = self.end()?;
        let mss = u64::from(end.mss());
        let c = end.counters();
        let text = |t: String| if t.eq_ignore_ascii_case(value) { Ok(()) } else { Err(t) };
        let count = |n: u64| text(n.to_string());
        let window = |bytes: u64| {
            text(if value.ends_with('b') { format!("{bytes}b") } else { (bytes / mss).to_string() })
        };
        let result = match *name {
            "state" => text(format!("{:?}", end.state())),
            "phase" => text(format!("{:?}", end.phase())),
            "cwnd" => window(end.cwnd()),
            "ssthresh" => window(end.ssthresh()),
            "pipe" => window(end.pipe()),
            "mss" => count(mss),
            "srtt" => text(quantity::format_time(end.srtt().unwrap_or(0))),
            "rto" => text(quantity::format_time(end.rto())),
            "acked" => count(end.bytes_acked()),
            "delivered" => count(end.bytes_delivered()),
            "retransmits" => count(c.retransmits),
            "rtos" => count(c.rtos),
            "probes" => count(c.probes),
            "recoveries" => count(c.recoveries),
            "spurious" => count(c.spurious),
            "ecn_reductions" => count(c.ecn_reductions),
            "dsacks" => count(c.dsacks),
            "finished" => text(end.is_finished().to_string()),
            "reset" => text(end.was_reset().to_string()),
            name => return Err(format!("unknown name `{name}`")),
        };
        result.map_err(|found| format!("{name} is {found}, expected {value}"))
    }
}

fn run(text: &str) -> Result<(), String> {
    let mut script: Option<Script> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap().trim();
        if line.is_empty() {
            continue;
        }
        let fail = |e: String| format!("line {}: `{line}`: {e}", at + 1);
        let Some(script) = &mut script else {
            let words = line.strip_prefix("use ").ok_or(fail("expected `use`".to_owned()))?;
            let params = Params::parse(words).map_err(|e| fail(e.to_string()))?;
            script = Some(Script {
                params: Arc::new(params),
                clock: EPOCH,
                end: None,
                out: VecDeque::new(),
                scripted_end: 0,
            });
            continue;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let time = words[0].strip_prefix('+').ok_or(fail("expected +TIME".to_owned()))?;
        let after = quantity::parse_time(time).map_err(|e| fail(format!("{e:?}")))?;
        script.act(after, &words[1..]).map_err(fail)?;
    }
    let mut script = script.ok_or("empty")?;
    script.drain();
    script.quiet().map_err(|e| format!("at the end: {e}"))
}

#[test]
fn scripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut failed = Vec::new();
    for path in &paths {
        #[allow(clippy::disallowed_methods, reason = "a test may read its data")]
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Err(error) = run(&text) {
            failed.push(format!("{name}: {error}"));
        }
    }
    assert!(paths.len() >= 20, "scripts are missing");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
