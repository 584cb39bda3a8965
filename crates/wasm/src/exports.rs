//! The exported functions of the module, and the memory for passing texts.
//!
//! The host requests memory ([`input`]), writes a text there, and calls a function. The function
//! returns 0, or 1 if its text is an error. The text is at [`output`] until the next call. A module
//! holds one session. After a panic, which is a trap for the host, the text is the panic's message.
#![expect(unsafe_code, reason = "exported functions have names that no compiler checks")]

use crate::calls::{self, Session};
use crate::outcome;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::sync::Once;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static SESSION: Cell<Option<Session>> = const { Cell::new(None) };
}

/// Sets the text that the host reads.
fn tell(text: Vec<u8>) {
    OUTPUT.replace(text);
}

fn call(function: impl FnOnce(&[u8]) -> Result<Value, Value>) -> u32 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| tell(panic.to_string().into_bytes())));
    });
    let outcome = function(&INPUT.take());
    let (status, value) = outcome.map_or_else(|error| (1, error), |value| (0, value));
    tell(value.to_string().into_bytes());
    status
}

/// Calls a function with the session, which must be open.
fn in_session(function: impl FnOnce(&mut Session, &[u8]) -> Result<Value, Value>) -> u32 {
    call(|text| {
        let mut session = SESSION.take().ok_or_else(|| outcome::error("no run is open"))?;
        let outcome = function(&mut session, text);
        SESSION.set(Some(session));
        outcome
    })
}

/// Returns memory for a text of `length` bytes, which the next call reads.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|text| {
        *text = vec![0; length];
        text.as_mut_ptr()
    })
}

/// Returns the address of the text of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(Vec::as_ptr)
}

/// Returns the length of that text in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(Vec::len)
}

/// Calls [`calls::run`].
#[unsafe(no_mangle)]
pub extern "C" fn run() -> u32 {
    call(calls::run)
}

/// Calls [`calls::edit`].
#[unsafe(no_mangle)]
pub extern "C" fn edit() -> u32 {
    call(calls::edit)
}

/// Calls [`calls::read_queue`].
#[unsafe(no_mangle)]
pub extern "C" fn read_queue() -> u32 {
    call(calls::read_queue)
}

/// Calls [`calls::rewrite_queue`].
#[unsafe(no_mangle)]
pub extern "C" fn rewrite_queue() -> u32 {
    call(calls::rewrite_queue)
}

/// Calls [`calls::read_quantity`].
#[unsafe(no_mangle)]
pub extern "C" fn read_quantity() -> u32 {
    call(calls::read_quantity)
}

/// Calls [`calls::queues`].
#[unsafe(no_mangle)]
pub extern "C" fn queues() -> u32 {
    call(|_| Ok(calls::queues()))
}

/// Calls [`Session::open`]; the new session replaces an open one.
#[unsafe(no_mangle)]
pub extern "C" fn open() -> u32 {
    call(|text| {
        SESSION.set(None);
        SESSION.set(Some(Session::open(text)?));
        Ok(Value::Null)
    })
}

/// Calls [`Session::log`].
#[unsafe(no_mangle)]
pub extern "C" fn log() -> u32 {
    in_session(Session::log)
}

/// Calls [`Session::advance`] with a time in nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn advance(until: u64) -> u32 {
    in_session(|session, _| session.advance(until))
}

/// Calls [`Session::record`].
#[unsafe(no_mangle)]
pub extern "C" fn record() -> u32 {
    in_session(|session, _| session.record())
}

/// Ends the session without a record.
#[unsafe(no_mangle)]
pub extern "C" fn close() {
    SESSION.set(None);
}
