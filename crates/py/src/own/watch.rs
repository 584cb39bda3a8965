//! The calls of users' policies that are in progress, in memory that another thread or process
//! watches (`sojourn.own.guard`).
//!
//! Each thread has a slot of [`WORDS`] numbers: a count, which is odd during a call; the thread's
//! identifier in Python; the time of the call since the start of the run, in nanoseconds; the number
//! of the packet, acknowledgement or flow plus 1, or 0; then method and policy as bytes.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use sojourn_units::{EPOCH, Nanos};
use std::cell::Cell;
use std::mem::forget;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Numbers in a slot, and the first ones of its texts.
const WORDS: usize = 16;
const METHOD: usize = 4;
const POLICY: usize = 6;
static MEMORY: OnceLock<&[AtomicU64]> = OnceLock::new();
/// The slots that no thread has, and the number of slots that a thread has had. Slot 0 is for
/// loading.
static FREE: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 1));

/// A thread's slot, and whether it already has the thread's identifier.
struct Slot(usize, Cell<bool>);

impl Drop for Slot {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(self.0);
    }
}

thread_local! {
    static SLOT: Slot = {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = free.0.pop().unwrap_or_else(|| {
            free.1 += 1;
            free.1 - 1
        });
        Slot(place, Cell::new(false))
    };
}

/// Writes the calls of policies from now on to `memory`, a writable buffer of 64-bit numbers. The
/// first call has an effect.
#[pyfunction(signature = (memory, /))]
#[expect(unsafe_code, reason = "the buffer is writable, and is never released")]
pub(crate) fn watch_policies(memory: &Bound<'_, PyAny>) -> PyResult<()> {
    let buffer = PyBuffer::<u64>::get(memory)?;
    if buffer.readonly() || !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the memory must be writable and contiguous"));
    }
    let count = buffer.item_count();
    // SAFETY: the type and alignment are those of `u64`, and `forget` keeps the memory valid.
    let _ = MEMORY.set(unsafe { from_raw_parts(buffer.buf_ptr().cast(), count) });
    forget(buffer);
    Ok(())
}

fn write(cells: &[AtomicU64], text: &str) {
    let mut chunks = text.as_bytes().chunks(8);
    for cell in cells {
        let mut bytes = [0; 8];
        let chunk = chunks.next().unwrap_or_default();
        bytes[..chunk.len()].copy_from_slice(chunk);
        cell.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
}

/// A call of a method of a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) method: &'static str,
    /// Number of the packet, acknowledgement or flow.
    pub(crate) number: Option<u64>,
    pub(crate) now: Nanos,
}

impl Asked {
    /// Returns a call of a method that concerns no packet.
    pub(crate) fn of(method: &'static str) -> Self {
        Self { method, number: None, now: EPOCH }
    }
}

/// Executes a call of the policy `name`, which is visible to a watching thread or process.
pub(crate) fn visible<T>(py: Python<'_>, name: &str, asked: Asked, call: impl FnOnce() -> T) -> T {
    let cells = MEMORY.get();
    let (mine, known) = SLOT.with(|slot| (slot.0 * WORDS, slot.1.replace(cells.is_some())));
    let Some(slot) = cells.and_then(|cells| cells.get(mine..mine + WORDS)) else { return call() };
    let set = |word: usize, value| slot[word].store(value, Ordering::Relaxed);
    if !known {
        let identifier = py.import("threading").and_then(|t| t.call_method0("get_ident"));
        set(1, identifier.and_then(|found| found.extract()).unwrap_or_default());
    }
    set(2, asked.now.saturating_sub(EPOCH));
    set(3, asked.number.map_or(0, |number| number + 1));
    write(&slot[METHOD..POLICY], asked.method);
    write(&slot[POLICY..], name);
    let count = slot[0].load(Ordering::Relaxed);
    set(0, (count + 1) | 1);
    let result = call();
    set(0, (count | 1) + 1);
    result
}
