//! The contents of all texts.

use crate::device::Device;
use crate::firewall::{Change, Firewall};
use crate::mq;
use crate::name::Name;
use crate::place::{Fault, Notice, Place, Problem};
use crate::rules::Hosts;
use crate::tree::{self, Built};
use std::collections::BTreeMap;

/// The devices that the texts set up, problems with unreadable parts, and notices.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub(crate) devices: Vec<Device>,
    pub(crate) firewall: Firewall,
    /// Variables without a value in each line, by text and line.
    pub(crate) missing: BTreeMap<(u32, u32), Vec<String>>,
    /// Names of the texts.
    pub names: Vec<String>,
    /// Lines of each text.
    pub lines: Vec<Vec<String>>,
    /// Parts that cannot be read.
    pub problems: Vec<Problem>,
    /// Messages on how parts were read.
    pub notices: Vec<Notice>,
    /// Variables of scripts that have no value, in the order of their first use.
    pub asked: Vec<String>,
    /// Files that scripts read but the user did not give, each with the place of the command.
    pub absent: Vec<(String, Place)>,
}

/// Facts about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Name of the device, after the namespace, container or host to which it belongs.
    pub name: String,
    /// Name of the root discipline; `None` without one.
    pub root: Option<String>,
    /// Whether a user set up the root discipline; false if it is Linux's default.
    pub is_configured: bool,
    /// Whether the texts set a root discipline other than `noqueue` and `noop`.
    pub holds: bool,
    /// Whether the device has an ingress discipline.
    pub has_ingress: bool,
    /// Names of the devices to which incoming packets are redirected.
    pub redirects: Vec<String>,
}

impl Reading {
    /// Returns the device of this name; creates it if it is new.
    pub(crate) fn device(&mut self, name: &str) -> &mut Device {
        let at = self.devices.iter().position(|device| device.name == name);
        let at = at.unwrap_or_else(|| {
            self.devices.push(Device { name: name.to_owned(), ..Device::default() });
            self.devices.len() - 1
        });
        &mut self.devices[at]
    }

    pub(crate) fn problem(&mut self, line: Place, fault: Fault) {
        self.problems.push(fault.problem(line));
    }

    pub(crate) fn note(&mut self, line: Place, message: impl Into<String>) {
        let notice = Notice { place: Some(line), message: message.into() };
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Returns the facts of all devices, in the order of their first mention.
    pub fn devices(&self) -> Vec<DeviceFacts> {
        let facts = |device: &Device| DeviceFacts {
            name: device.name.clone(),
            root: device.root().map(|root| root.kind.text.clone()),
            is_configured: device.is_configured(),
            holds: device.holds(),
            has_ingress: device.ingress.is_some(),
            redirects: device.redirects().into_iter().map(str::to_owned).collect(),
        };
        self.devices.iter().map(facts).collect()
    }

    /// Returns why a root discipline of the texts is not modelled; `None` if all are.
    pub fn unmodelled(&self) -> Option<String> {
        let roots = self.devices.iter().filter_map(Device::root);
        roots.map(|root| &root.kind.text).find_map(|kind| sojourn_queue::not_modelled(kind))
    }

    /// Returns the places of the rules of the firewall that change packets, and whether any of them
    /// sets a code point.
    pub fn firewall_changes(&self) -> (Vec<Place>, bool) {
        let steps = self.firewall.changes();
        let sets = |change: &Change| matches!(change, Change::Dscp(_));
        let sets_dscp = steps.iter().flat_map(|step| &step.changes).any(sets);
        (steps.iter().map(|step| step.line).collect(), sets_dscp)
    }

    /// Returns the queue of a device, or of one of its transmit queues, such as `eth0:1`; `None`
    /// without such a device. Packets pass the firewall before the queue if `passed` is true.
    pub fn build(
        &self,
        name: &str,
        hosts: &Hosts,
        passed: bool,
        on: &sojourn_queue::Device,
    ) -> Option<Built> {
        let rules = passed.then_some(&self.firewall);
        let mut built = tree::build(&self.found(name)?, hosts, rules, on);
        let filters = self.devices.iter().flat_map(|device| &device.filters);
        let into: Vec<_> =
            filters.filter(|filter| filter.redirect.as_deref() == Some(name)).collect();
        if into.iter().all(|filter| filter.is_selective()) {
            built.notices.extend(into.into_iter().map(|filter| Notice {
                place: Some(filter.line),
                message: format!(
                    "only packets of this filter are redirected to `{name}` in Linux; here all \
                     incoming packets are"
                ),
            }));
        }
        self.name_missing(&mut built.problems);
        Some(built)
    }

    /// Reports the parts of devices whose discipline the texts do not set up, and filters at the
    /// ingress or egress hook if there is no queue at all.
    pub(crate) fn tell_strays(&mut self) {
        let mut found = Vec::new();
        for device in &self.devices {
            let name = &device.name;
            let mut told = BTreeMap::<u16, (Place, usize)>::new();
            for (line, number) in device.strays() {
                told.entry(number).or_insert((line, 0)).1 += 1;
            }
            for (number, (line, count)) in told {
                let what = match number {
                    0 => "root discipline".to_owned(),
                    number => format!("discipline `{number:x}:`"),
                };
                let of =
                    |other: &&Device| other.name != *name && other.handles.contains_key(&number);
                let also = self.devices.iter().find(of);
                let also =
                    also.map_or(String::new(), |other| format!("; `{}` has one", other.name));
                let lines = if count > 1 { format!(" (in {count} lines)") } else { String::new() };
                let why = format!("`{name}` has no {what} here{lines}{also}");
                found.push(Fault::new(why).problem(line.whole()));
            }
        }
        if !self.devices.iter().any(Device::holds) {
            let why = "this filter holds no packets: its device needs a queue at its root, and a \
                       device to which packets are redirected too";
            let filters = self.devices.iter().flat_map(|device| &device.filters);
            let hooked = filters.filter(|filter| filter.parent.major == Name::INGRESS);
            found.extend(hooked.map(|filter| Fault::new(why).problem(filter.line)));
        }
        self.problems.extend(found);
    }

    /// Returns the device of this name, or a transmit queue such as `eth0:1` as a device.
    pub(crate) fn found(&self, name: &str) -> Option<Device> {
        let whole = self.devices.iter().find(|device| device.name == name).cloned();
        whole.or_else(|| {
            let (base, number) = name.rsplit_once(':')?;
            let whole = self.devices.iter().find(|device| device.name == base)?;
            mq::transmit_queue(whole, number.parse().ok()?)
        })
    }

    /// Names the variables without a value in problems of their lines.
    pub(crate) fn name_missing(&self, problems: &mut [Problem]) {
        for problem in problems {
            let Some(missing) = self.missing.get(&(problem.place.file, problem.place.line)) else {
                continue;
            };
            let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
            problem.message = format!(
                "no value for {} (set it by --var {}=VALUE): {}",
                names.join(", "),
                missing[0],
                problem.message
            );
        }
    }

    /// Returns the command of a place: its line, and the lines that continue it.
    pub fn command(&self, place: Place) -> String {
        let mut place = place;
        let mut text = String::new();
        loop {
            let line = self.line(place);
            text.push_str(line.trim_end_matches('\\'));
            if !line.ends_with('\\') {
                return text;
            }
            place.line += 1;
        }
    }

    /// Returns the line of a place.
    pub fn line(&self, place: Place) -> &str {
        let lines = self.lines.get(place.file as usize);
        let index = (place.line as usize).checked_sub(1);
        index.and_then(|index| lines?.get(index)).map_or("", String::as_str)
    }
}
