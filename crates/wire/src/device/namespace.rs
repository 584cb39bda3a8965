//! Work inside another network namespace.

use std::io;
use std::os::fd::BorrowedFd;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub(super) const ENTERING: &str = "entering its network namespace";

/// Runs `work` in the network namespace, by a thread of its own that ends with it: the caller's does not
/// change. Without a namespace the work is done here. `namespace` is an open `/proc/PID/ns/net` or a
/// mount of one.
///
/// # Errors
/// If the namespace cannot be entered: `EINVAL` if it is none, `EPERM` without `CAP_SYS_ADMIN` in it.
pub fn within<R: Send>(
    namespace: Option<BorrowedFd<'_>>,
    work: impl FnOnce() -> R + Send,
) -> io::Result<R> {
    let Some(namespace) = namespace else { return Ok(work()) };
    thread::scope(|scope| {
        let entered =
            thread::Builder::new().name("namespace".into()).spawn_scoped(scope, || {
                move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
                Ok(work())
            })?;
        entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
