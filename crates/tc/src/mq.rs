//! The transmit queues of a device whose root discipline is `mq` or `mqprio`.

use crate::device::{Device, Discipline};
use crate::name::Name;
use crate::place::{Fault, Notice, Word};

/// Largest number of transmit queues of a device.
const MOST: u16 = 4096;
/// Handle that an `mq` without a handle gets; if it is in use, the next lower free handle.
const LAST: u16 = 0x7fff;

/// Returns the disciplines of a device's transmit queues, in the order of their numbers.
pub(crate) fn transmit_queues(device: &Device) -> Vec<&Discipline> {
    let Some(root) = device.root() else { return Vec::new() };
    device.inside(root.handle.unwrap_or(0)).collect()
}

/// Returns a copy of the device with one transmit queue only, which counts from 1.
pub(crate) fn transmit_queue(device: &Device, number: usize) -> Option<Device> {
    device.root().filter(|root| root.kind.is("mq") || root.kind.is("mqprio"))?;
    let seated = transmit_queues(device);
    let chosen = seated.get(number.checked_sub(1)?)?.parent;
    let others: Vec<Name> = seated.iter().map(|one| one.parent).filter(|p| *p != chosen).collect();
    let mut one = device.clone();
    one.name = format!("{}:{number}", device.name);
    for other in others {
        one.take_out(other);
    }
    raise(&mut one, chosen);
    Some(one)
}

/// Makes the discipline of the only transmit queue the root discipline.
fn raise(device: &mut Device, seat: Name) {
    let Some(chosen) = device.seats.remove(&seat) else { return };
    if let Some(handle) = device.root().and_then(|root| root.handle) {
        device.handles.remove(&handle);
    }
    device.put(Discipline { parent: Name::ROOT, ..chosen });
}

/// Sets the number of transmit queues of `mq` from its children, and gives it a handle. If there is
/// only one transmit queue, its discipline becomes the root discipline.
pub(crate) fn counted(device: &mut Device, notices: &mut Vec<Notice>) {
    let Some(root) = device.root().filter(|root| root.kind.is("mq")).cloned() else { return };
    let seated: Vec<Discipline> = transmit_queues(device).into_iter().cloned().collect();
    if seated.is_empty() && root.shown {
        return;
    }
    if let [only] = seated.as_slice()
        && only.parent.minor == 1
    {
        return raise(device, only.parent);
    }
    let mut note = |message: String| {
        notices.push(Notice { place: Some(root.line), message });
    };
    let count = seated.iter().map(|one| one.parent.minor).max().unwrap_or(0).min(MOST);
    let mut words = Vec::new();
    if count > 1 {
        let word = |text: String| Word::new(text, root.line.whole());
        words.extend([word("numtxqueues".to_owned()), word(count.to_string())]);
    } else {
        note("these lines do not show the number of transmit queues: 4 are assumed".to_owned());
    }
    let handle = root.handle.unwrap_or_else(|| {
        (1..=LAST).rev().find(|n| !device.handles.contains_key(n)).unwrap_or(LAST)
    });
    for one in &seated {
        device.seats.remove(&one.parent);
    }
    device.put(Discipline { handle: Some(handle), words, ..root.clone() });
    let missing: Vec<u16> =
        (1..=count).filter(|n| seated.iter().all(|one| one.parent.minor != *n)).collect();
    if root.shown
        && let Some(like) = seated.first()
        && !missing.is_empty()
    {
        note(format!(
            "{} of {count} transmit queues are not in these lines: they are read as the `{}` of \
             queue {:x}",
            missing.len(),
            like.kind.text,
            like.parent.minor
        ));
        for n in missing {
            let parent = Name::new(handle, n);
            device.put(Discipline { parent, handle: None, ..like.clone() });
        }
    }
    note(
        "flows are distributed over the transmit queues by their hash, and the queues send in \
         turn: XPS, programs that choose a queue and the card's arbiter are not modelled"
            .to_owned(),
    );
    for one in seated {
        device.put(Discipline { parent: Name::new(handle, one.parent.minor), ..one });
    }
}

/// Returns the discipline that represents all transmit queues of an `mqprio`, or of an `mq` that
/// `tc` printed without its queues; faults if there is no single one.
pub(crate) fn single(device: &Device) -> Result<(Discipline, usize), Fault> {
    let below = transmit_queues(device);
    let Some(root) = device.root() else { return Err(Fault::default()) };
    let Some(first) = below.first() else {
        return Err(root.kind.fault(format!(
            "these lines do not have the disciplines of the transmit queues of `{}`",
            root.kind.text
        )));
    };
    if below.iter().any(|one| shape(device, one) != shape(device, first)) {
        let name = &device.name;
        return Err(root.kind.fault(format!(
            "the {} transmit queues of `{name}` differ: choose one by --device {name}:1 (up to {})",
            below.len(),
            below.len()
        )));
    }
    Ok(((*first).clone(), below.len()))
}

/// Returns a text that is equal for disciplines that differ only in their handles.
fn shape(device: &Device, one: &Discipline) -> String {
    let texts = |words: &[Word]| words.iter().map(|w| w.text.clone()).collect::<Vec<_>>();
    let handle = one.handle.unwrap_or(0);
    let classes: Vec<_> = device
        .classes_of(handle)
        .iter()
        .map(|c| (c.kind.text.clone(), c.name.minor, c.parent.minor, texts(&c.words)))
        .collect();
    let inner: Vec<_> = if handle == 0 {
        Vec::new()
    } else {
        device.inside(handle).map(|d| (d.parent.minor, shape(device, d))).collect()
    };
    format!("{:?}", (&one.kind.text, texts(&one.words), texts(&one.stab), classes, inner))
}
