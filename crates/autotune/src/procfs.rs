//! Parsers of files in `/proc` and `/sys`.
//!
//! Parsers accept any text: they skip parts that they do not know, and never panic.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the start time of a process in clock ticks since boot, from the text of
/// `/proc/PID/stat`; `None` if the process has ended.
pub fn start_time(stat: &str) -> Option<u64> {
    // The process's name, in parentheses, may contain any character.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Returns the PID of a process's parent, from the text of `/proc/PID/stat`.
pub fn parent(stat: &str) -> Option<u32> {
    stat[stat.rfind(')')? + 1..].split_whitespace().nth(1)?.parse().ok()
}

/// Returns the inode of a socket, from the target of a descriptor's link (`socket:[123]`); `None`
/// for other files.
pub fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Returns the inode of an open file, from a file in `/proc/PID/fdinfo` (Linux 5.14 and later).
pub fn fdinfo_inode(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("ino:"))?.trim().parse().ok()
}

/// A line of `/proc/net/udp` or `/proc/net/udp6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Local address and port.
    pub local: SocketAddr,
    /// Address and port of the peer; the unspecified address if the socket is not connected.
    pub remote: SocketAddr,
    /// Memory of the packets in the receive buffer, in bytes.
    pub occupied: u64,
    /// Inode of the socket.
    pub inode: u64,
    /// Packets dropped since the socket was created.
    pub drops: u32,
}

/// Returns the sockets in the text of `/proc/net/udp` or `/proc/net/udp6`.
pub fn sockets(table: &str) -> impl Iterator<Item = Line> {
    table.lines().skip(1).filter_map(line)
}

fn line(text: &str) -> Option<Line> {
    let mut fields = text.split_whitespace().skip(1);
    let local = address(fields.next()?)?;
    let remote = address(fields.next()?)?;
    let _state = fields.next()?;
    let (_, receive) = fields.next()?.split_once(':')?;
    Some(Line {
        local,
        remote,
        occupied: u64::from_str_radix(receive, 16).ok()?,
        inode: fields.nth(4)?.parse().ok()?,
        drops: fields.nth(2)?.parse().ok()?,
    })
}

/// Parses an address such as `0100007F:0202`. The words of the IP address are in the machine's byte
/// order.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = ip.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut octets = [0; 16];
            for (at, four) in octets.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Adds UDP's counters to `into`. `text` is the content of `/proc/net/snmp`, where UDP has a line
/// of names and a line of values.
pub fn add_snmp(text: &str, into: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return };
    for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
        if let Ok(value) = value.parse::<u64>() {
            let sum = into.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(value);
        }
    }
}

/// Adds to `into` UDP's counters in the text of `/proc/net/snmp6`, with lines such as
/// `Udp6InErrors 0`. The prefix `Udp6` of the names is removed.
pub fn add_snmp6(text: &str, into: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let Some((name, value)) =
            line.strip_prefix("Udp6").and_then(|line| line.split_once(char::is_whitespace))
        else {
            continue;
        };
        if let Ok(value) = value.trim().parse::<u64>() {
            let sum = into.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(value);
        }
    }
}

/// Returns the number of packets that were dropped because a CPU's backlog was full, from the text
/// of `/proc/net/softnet_stat`. These packets did not reach a socket.
pub fn softnet_dropped(text: &str) -> u64 {
    text.lines()
        .filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok())
        .sum()
}

/// Returns the number of received packets that devices dropped (columns drop and fifo), from the
/// text of `/proc/net/dev`, without `lo`.
pub fn device_dropped(text: &str) -> u64 {
    let one = |line: &str| -> Option<u64> {
        let (name, values) = line.split_once(':')?;
        if name.trim() == "lo" {
            return None;
        }
        // The columns are bytes, packets, errs, drop, fifo.
        let mut values = values.split_whitespace().skip(3);
        Some(values.next()?.parse::<u64>().ok()?.saturating_add(values.next()?.parse().ok()?))
    };
    text.lines().filter_map(one).sum()
}

/// Returns a field of `/proc/meminfo` in bytes; `None` if it does not exist.
pub fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the text of a field of `/proc/PID/status`, such as `CapEff`; `None` if it does not
/// exist.
pub fn status<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// systemd unit and container of a process, from the path of its control group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Name of the systemd unit, such as `rsyslog.service`; empty if the process is in no unit.
    pub unit: String,
    /// First twelve digits of the container's identifier, as container engines print it; empty if
    /// the process is in no container.
    pub container: String,
}

impl Place {
    /// Parses the text of `/proc/PID/cgroup`. The unit is in the line of version 2 or of systemd's
    /// own hierarchy.
    pub fn read(text: &str) -> Self {
        let paths = || text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        let own = text.lines().find_map(|line| {
            line.strip_prefix("0::")
                .or_else(|| line.split_once(":name=systemd:").map(|(_, path)| path))
        });
        let is_unit =
            |part: &&str| [".service", ".scope", ".socket"].iter().any(|kind| part.ends_with(kind));
        let unit = own.and_then(|path| path.split('/').rfind(is_unit)).unwrap_or_default();
        let container = paths().flat_map(|path| path.split('/')).find_map(container);
        Self { unit: unit.to_owned(), container: container.unwrap_or_default().to_owned() }
    }
}

/// Returns the first twelve digits of a container's identifier in a part of a path such as `<64
/// digits>`, `docker-<64 digits>.scope` or `cri-containerd-<64 digits>.scope`.
fn container(part: &str) -> Option<&str> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let digits = name.rsplit('-').next()?;
    let is_one = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| &digits[..12])
}

/// Returns the share of the last ten seconds in which tasks waited for memory, 0 to 1, from the
/// text of `pressure/memory`; `None` if the text has no such value.
pub fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent = some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
    percent.parse::<f64>().ok().filter(|percent| percent.is_finite()).map(|percent| percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UDP: &str = concat!(
        "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  ",
        "timeout inode ref pointer drops\n",
        " 1234: 0100007F:0202 00000000:0000 07 00000000:00034A80 00:00000000 00000000   105  ",
        "      0 424242 2 0000000000000000 77\n",
        " junk\n",
    );

    #[test]
    fn sockets_of_a_table() {
        let lines: Vec<_> = sockets(UDP).collect();
        assert_eq!(
            lines,
            [Line {
                local: "127.0.0.1:514".parse().unwrap(),
                remote: "0.0.0.0:0".parse().unwrap(),
                occupied: 0x34A80,
                inode: 424_242,
                drops: 77
            }]
        );
        let six = "head\n 1: 00000000000000000000000001000000:0202 00000000000000000000000001000000:0009 01 0:1 0:0 0 0 0 7 2 0 3\n";
        let line = sockets(six).next().unwrap();
        assert_eq!(line.local, "[::1]:514".parse().unwrap());
        assert!(line.remote.port() == 9 && line.inode == 7 && line.drops == 3);
    }

    #[test]
    fn counters() {
        let mut udp = BTreeMap::new();
        add_snmp("Tcp: A\nTcp: 1\nUdp: InErrors RcvbufErrors\nUdp: 5 4\n", &mut udp);
        add_snmp6("Udp6InErrors \t 2\nIp6X 9\nUdp6RcvbufErrors 1\n", &mut udp);
        assert_eq!(udp["InErrors"], 7);
        assert_eq!(udp["RcvbufErrors"], 5);
        assert_eq!(softnet_dropped("00000001 0000000a 0\n00000001 00000001 0\n"), 11);
        let dev = "Inter-| \n face |bytes\n lo: 1 1 0 9 9\n eth0: 1 1 0 3 4 0\n";
        assert_eq!(device_dropped(dev), 7);
        assert_eq!(meminfo("MemTotal:  16 kB\n", "MemTotal"), Some(16 << 10));
        let psi = "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00\n";
        assert_eq!(pressure(psi), Some(0.125));
    }

    #[test]
    fn processes() {
        let stat = "7 (a) b) S 3 7 7 0 -1 4194560 1 1 1 1 0 0 0 0 20 0 1 0 4242 9 9";
        assert_eq!(start_time(stat), Some(4242));
        assert_eq!(parent(stat), Some(3));
        assert_eq!(start_time(&stat.replace(" S ", " Z ")), None);
        assert_eq!(socket_inode("socket:[12]"), Some(12));
        assert_eq!(socket_inode("pipe:[12]"), None);
        assert_eq!(fdinfo_inode("pos:\t0\nino:\t99\n"), Some(99));
        assert_eq!(status("Name:\tx\nCapEff:\t00ff\n", "CapEff"), Some("00ff"));
    }

    #[test]
    fn places() {
        let place = |text: &str| {
            let place = Place::read(text);
            (place.unit, place.container)
        };
        let of = |unit: &str, container: &str| (unit.to_owned(), container.to_owned());
        let digits = "0123456789abcdef".repeat(4);
        assert_eq!(place("0::/system.slice/rsyslog.service\n"), of("rsyslog.service", ""));
        assert_eq!(place("0::/\n"), of("", ""));
        assert_eq!(
            place(&format!("0::/system.slice/docker-{digits}.scope\n")),
            (format!("docker-{digits}.scope"), "0123456789ab".to_owned())
        );
        assert_eq!(place(&format!("4:memory:/docker/{digits}\n0::/\n")), of("", "0123456789ab"));
        assert_eq!(
            place("1:name=systemd:/user.slice/user@0.service/app.slice/a-1.scope\n0::/x\n"),
            of("a-1.scope", "")
        );
        let pod = format!("0::/kubepods.slice/kubepods-pod7.slice/cri-containerd-{digits}.scope\n");
        assert_eq!(place(&pod).1, "0123456789ab");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[ -~\n\t]{0,300}") {
            let _ = (start_time(&text), parent(&text), fdinfo_inode(&text), meminfo(&text, "a"));
            let _ = (sockets(&text).count(), softnet_dropped(&text), device_dropped(&text));
            let _ = (pressure(&text), socket_inode(&text), address(&text), Place::read(&text));
            let mut map = BTreeMap::new();
            add_snmp(&format!("Udp:{text}\nUdp:{text}"), &mut map);
            add_snmp6(&text, &mut map);
        }

        #[test]
        fn broken_tables_are_survived(at in 0usize..200, byte in "[ -~é]") {
            let mut text = UDP.to_owned();
            if at < text.len() {
                text.replace_range(at..=at, &byte);
            }
            let _ = sockets(&text).count();
        }
    }
}
