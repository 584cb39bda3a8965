//! The recorded scenarios, decompressed.

use flate2::read::GzDecoder;
use std::io::Read;

/// Recorded files: name, number of scenarios, number of operations, and content.
pub const PACKED: &[(&str, usize, usize, &[u8])] = &[
    ("cake", 21, 9928, include_bytes!("../../data/cake.jsonl.gz")),
    ("cake-7.3", 2, 1140, include_bytes!("../../data/cake-7.3.jsonl.gz")),
    ("choke", 13, 7372, include_bytes!("../../data/choke.jsonl.gz")),
    ("cobalt", 12, 4703, include_bytes!("../../data/cobalt.jsonl.gz")),
    ("cobalt-7.3", 2, 912, include_bytes!("../../data/cobalt-7.3.jsonl.gz")),
    ("cobalt_queue", 12, 7676, include_bytes!("../../data/cobalt_queue.jsonl.gz")),
    ("cobalt_queue-7.3", 3, 2052, include_bytes!("../../data/cobalt_queue-7.3.jsonl.gz")),
    ("codel", 15, 11_705, include_bytes!("../../data/codel.jsonl.gz")),
    ("codel-7.3", 2, 4100, include_bytes!("../../data/codel-7.3.jsonl.gz")),
    ("drr", 10, 5300, include_bytes!("../../data/drr.jsonl.gz")),
    ("dualpi2", 15, 14_751, include_bytes!("../../data/dualpi2.jsonl.gz")),
    ("ets", 10, 5600, include_bytes!("../../data/ets.jsonl.gz")),
    ("fifo", 2, 456, include_bytes!("../../data/fifo.jsonl.gz")),
    ("fq", 22, 13_701, include_bytes!("../../data/fq.jsonl.gz")),
    ("fq_codel", 13, 7752, include_bytes!("../../data/fq_codel.jsonl.gz")),
    ("fq_codel-2025", 4, 3635, include_bytes!("../../data/fq_codel-2025.jsonl.gz")),
    ("fq_codel-7.3", 1, 3000, include_bytes!("../../data/fq_codel-7.3.jsonl.gz")),
    ("fq_pie", 13, 9348, include_bytes!("../../data/fq_pie.jsonl.gz")),
    ("hfsc", 12, 8801, include_bytes!("../../data/hfsc.jsonl.gz")),
    ("htb", 13, 8503, include_bytes!("../../data/htb.jsonl.gz")),
    ("pie", 17, 14_820, include_bytes!("../../data/pie.jsonl.gz")),
    ("prio", 8, 4000, include_bytes!("../../data/prio.jsonl.gz")),
    ("red", 16, 10_944, include_bytes!("../../data/red.jsonl.gz")),
    ("sfb", 13, 6579, include_bytes!("../../data/sfb.jsonl.gz")),
    ("sfq", 13, 7702, include_bytes!("../../data/sfq.jsonl.gz")),
    ("tbf", 13, 6606, include_bytes!("../../data/tbf.jsonl.gz")),
];

/// The text of a scenario, with its file and its discipline.
pub struct Scenario {
    /// Name of the file that contains the scenario.
    pub file: &'static str,
    /// Name of the file without the version of Linux.
    pub discipline: &'static str,
    /// Lines of JSON: the header and the rows.
    pub text: String,
}

/// Returns all scenarios. A file contains several scenarios, each of which begins with its header.
pub fn scenarios() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for &(file, count, _, packed) in PACKED {
        let discipline = file.split('-').next().unwrap_or(file);
        let mut text = String::new();
        GzDecoder::new(packed).read_to_string(&mut text).expect("the data are whole");
        let before = scenarios.len();
        for line in text.lines() {
            if line.starts_with("{\"format\"") {
                scenarios.push(Scenario { file, discipline, text: String::new() });
            }
            let scenario = scenarios.last_mut().expect("a file begins with a header");
            scenario.text.push_str(line);
            scenario.text.push('\n');
        }
        assert_eq!(scenarios.len() - before, count, "scenarios of {file}");
    }
    scenarios
}
