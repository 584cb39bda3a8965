//! A running wire's answers to requests: its counters, and changes of its links.

use crate::control::Change;
use crate::record::{LinkCounters, Snapshot};
use crate::wire::Wire;
use sojourn_link::Netem;
use sojourn_measure::Count;
use sojourn_queue::{Device, DropReason, Params as QueueParams};
use sojourn_units::{EPOCH, Rate, SECOND, time::seconds};

fn pair(count: Count) -> [u64; 2] {
    [count.packets, count.bytes]
}

impl Wire {
    /// Returns all counters at the current time.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let late = |q| self.health.lateness.quantile(q) / SECOND as f64;
        Snapshot {
            time: seconds(self.now - EPOCH),
            monotonic: crate::clock::monotonic(),
            links: (0..self.plan.links.len()).map(|id| self.link_counters(id)).collect(),
            lateness: [late(0.5), late(0.99)],
        }
    }

    fn link_counters(&self, id: usize) -> LinkCounters {
        let (plan, link, probe) = (&self.plan.links[id], self.net.link(id), self.net.probe(id));
        let (ledger, backlog) = (link.stats(), link.backlog());
        let work = self.net.work(id, self.now);
        LinkCounters {
            link: plan.name.clone(),
            rate: plan.params.rate.map(Rate::bits),
            queue: plan.params.queue.label(),
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            sojourn: probe.last_sojourn as f64 / SECOND as f64,
            offered: pair(ledger.offered),
            sent: [work.begun.packets, work.transmitted],
            delivered: pair(ledger.delivered),
            marked: ledger.marked.packets,
            dropped: DropReason::ALL
                .into_iter()
                .map(|reason| (reason.name(), ledger.dropped[reason as usize].packets))
                .collect(),
            lost: ledger.lost.packets,
            busy: work.busy as u64,
        }
    }

    /// Changes a link with immediate effect. An error is a text that says why the change is not
    /// possible.
    pub(crate) fn set(&mut self, change: &Change) -> Result<(), String> {
        let id = self.plan.links.iter().position(|link| link.name == change.link);
        let id = id.ok_or_else(|| self.unknown(&change.link))?;
        let mut params = self.plan.links[id].params.clone();
        if let Some(rate) = change.rate {
            params.rate = Some(Rate::new(rate).ok_or("the rate must be above 0")?);
        }
        if let Some(text) = &change.netem {
            let netem = Netem::parse(text).map_err(|e| format!("netem: {e}"))?;
            (params.delay, params.impairments) = (netem.delay, netem.impairments);
        }
        if let Some(text) = &change.queue {
            let device = Device { rate: params.rate, ..Device::default() };
            params.queue = QueueParams::parse(text, &device).map_err(|e| format!("queue: {e}"))?;
        }
        match (&mut params.queue, &change.params) {
            (_, None) => {}
            (QueueParams::External(old), Some(QueueParams::External(new))) => {
                old.replace(new).map_err(|e| format!("queue: {e}"))?;
            }
            (old, Some(new)) => *old = new.clone(),
        }
        if change.queue.is_some() || change.params.is_some() {
            self.net.set(self.now, id as u32, &params).map_err(|e| e.to_string())?;
        } else {
            // RED and SFB drop their packets at any change of parameters, even to the same ones.
            self.net.set_wire(self.now, id as u32, &params);
        }
        self.take_arrivals();
        self.plan.links[id].params = params;
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<_> = self.plan.links.iter().map(|link| link.name.as_str()).collect();
        let near = sojourn_units::words::nearest(name, names.iter().copied());
        let near = near.map_or_else(String::new, |n| format!(": did you mean `{n}`?"));
        format!("there is no link `{name}`{near}")
    }
}
