//! The module's exported functions, and the memory through which texts are passed.
//!
//! The host allocates memory with [`input`], writes a text to it, and calls a function. The
//! function returns 0, or 1 if its result is an error. The result is a text at [`output`], which
//! stays valid until the next call. A module holds one session. A panic is a trap for the host;
//! then the text at [`output`] is the panic's message.
#![expect(
    unsafe_code,
    reason = "the compiler does not check the names of exported functions for uniqueness"
)]

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

/// Sets the result text.
fn set_output(text: Vec<u8>) {
    OUTPUT.replace(text);
}

fn call(function: impl FnOnce(&[u8]) -> Result<Value, Value>) -> u32 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| set_output(panic.to_string().into_bytes())));
    });
    let outcome = function(&INPUT.take());
    let (status, value) = outcome.map_or_else(|error| (1, error), |value| (0, value));
    set_output(value.to_string().into_bytes());
    status
}

/// Calls a function with the open session. The result is an error if no session is open.
fn in_session(function: impl FnOnce(&mut Session, &[u8]) -> Result<Value, Value>) -> u32 {
    call(|text| {
        let mut session =
            SESSION.take().ok_or_else(|| outcome::error("no run is open; call `open` first"))?;
        let outcome = function(&mut session, text);
        SESSION.set(Some(session));
        outcome
    })
}

/// Returns the address of a new buffer for the input of the next call, `length` bytes long.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|text| {
        *text = vec![0; length];
        text.as_mut_ptr()
    })
}

/// Returns the address of the last call's result.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(Vec::as_ptr)
}

/// Returns the length of the last call's result in bytes.
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

/// Closes an open session, and calls [`Session::open`].
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
