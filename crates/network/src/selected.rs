//! The flows of a plan that the filters of a link's queue select.

use crate::routes::{END, Routes};
use crate::slab::{Class, Packet, node};
use sojourn_plan::{Labels, Plan, Transport, address};
use sojourn_queue::classes::Filter;
use sojourn_queue::{Headers, Packet as _};

/// Maximum number of flows of a group that are tested. Further flows are assumed to match the
/// filters that the tested flows match.
const FLOWS: u32 = 1000;

/// One direction of a group's packets that a filter selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Index of the group.
    pub group: usize,
    /// Whether the direction is from the receiver of the group's data to the sender.
    pub answers: bool,
}

/// Returns, for each of `filters`, the groups with packets on link number `link` that match this
/// filter and no earlier one. The plan must be valid.
pub fn selected(plan: &Plan, link: usize, filters: &[Filter]) -> Vec<Vec<Selected>> {
    let labels = Labels::new(&plan.groups);
    let mut routes = Routes::new(plan);
    let mut found = vec![Vec::new(); filters.len()];
    let mut before = 0;
    for (index, group) in plan.groups.iter().enumerate() {
        let class = match group.transport {
            Transport::Tcp(_) => Class::Tcp,
            Transport::Udp => Class::Udp,
        };
        for number in 0..group.count.min(FLOWS) {
            let pair = group.pairs[number as usize % group.pairs.len()];
            for answers in [false, true] {
                let (from, to) = if answers { (pair.1, pair.0) } else { pair };
                let (from, to) = (from as u32, to as u32);
                let is_silent = answers && matches!(class, Class::Udp);
                if is_silent || !crosses(&mut routes, from, to, link as u32) {
                    continue;
                }
                let flow = before + number;
                let tos = group.dscp << 2;
                let packet = Packet::new(class, (node(from), node(to)), 0, flow, 0, tos);
                let ports = (address::DYNAMIC, address::DYNAMIC);
                let own = Headers { protocol: class.protocol(), ports, mark: 0 };
                let headers = labels.headers(flow, packet.hosts().0, own);
                let fits = |filter: &Filter| filter.class(&packet, || headers).is_some();
                let one = Selected { group: index, answers };
                if let Some(first) = filters.iter().position(fits)
                    && !found[first].contains(&one)
                {
                    found[first].push(one);
                }
            }
        }
        before += group.count;
    }
    found
}

/// Returns whether the path from node `from` to node `to` contains `link`.
fn crosses(routes: &mut Routes, from: u32, to: u32, link: u32) -> bool {
    let Some(start) = routes.path(from, to) else { return false };
    let mut place = start;
    while routes.link(place) != END && routes.link(place) != link {
        place += 1;
    }
    routes.link(place) == link
}
