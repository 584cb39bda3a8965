//! Files of neighbouring programs, which are recognised by their content.

/// Returns what to give instead of a file that is not `tc`'s; `None` for other files.
pub(crate) fn instead(name: &str, bytes: &[u8], text: &str) -> Option<String> {
    let has_line = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
    let has_section = |names: &[&str]| {
        text.lines().any(|line| names.iter().any(|name| line.trim() == format!("[{name}]")))
    };
    let is_json = text.trim_start().starts_with('{');
    let has_key = |key: &str| is_json && text.contains(&format!("\"{key}\""));
    let (what, give) = match bytes {
        [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0x0a, 0x0d, 0x0d, 0x0a, ..] => (
            "a capture of packets",
            "give the queue by --tc, and the packets as traffic: app = \"replay file ...\"",
        ),
        [0x1f, 0x8b, ..] if name.contains("flent") => (
            "a compressed file of flent",
            "it has measurements, and no queues: give `tc -d qdisc show`",
        ),
        [0x1f, 0x8b, ..] => ("a compressed file", "decompress it first"),
        [0x7f, b'E', b'L', b'F', ..] => ("a program", "give the output of `tc -d qdisc show`"),
        _ if has_key("intervals") && has_key("start") && has_key("end") => (
            "a result of iperf3",
            "it has measurements, and no queues: give the output of `tc -d qdisc show`",
        ),
        _ if has_key("metadata") && has_key("results") => (
            "a file of flent",
            "it has measurements, and no queues: give the output of `tc -d qdisc show`",
        ),
        _ if has_section(&["Match", "NetDev", "CAKE", "FairQueueingControlledDelay", "Link"])
            && !has_line("tc ") =>
        {
            (
                "a file of systemd-networkd",
                "give what it sets up: the output of `tc -d qdisc show` on that machine",
            )
        }
        _ if has_section(&["connection", "ipv4", "ethernet"]) && !has_line("tc ") => (
            "a file of NetworkManager",
            "give what it sets up: the output of `tc -d qdisc show` on that machine",
        ),
        _ if has_line("apiVersion:") && has_line("kind:") => (
            "a manifest of Kubernetes",
            "give what it sets up: the output of `tc -d qdisc show` in the pod or on the node",
        ),
        _ if has_line("config queue") || has_line("config interface") && has_line("option ") => (
            "a configuration of OpenWrt",
            "give what it sets up: the output of `tc -d qdisc show` on the router",
        ),
        _ if has_section(&["links", "[flows]", "question"]) || has_line("[[flows]]") => {
            ("a scenario", "give it as the scenario, and the configuration of `tc` by --tc")
        }
        _ => return None,
    };
    Some(format!("this is {what}, not a configuration of `tc`: {give}"))
}
