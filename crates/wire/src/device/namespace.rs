//! Execution of code inside another network namespace.

use std::io;
use std::os::fd::BorrowedFd;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub(super) const ENTERING: &str = "entering its network namespace";

/// Runs `work` in the network namespace `namespace`, on a new thread that ends with it, so that the
/// caller's namespace does not change. Without a namespace, `work` runs on the calling thread.
/// `namespace` is a descriptor of `/proc/PID/ns/net` or of a bind mount of such a file.
///
/// # Errors
/// If the namespace cannot be entered: `EINVAL` if the descriptor is not a network namespace,
/// `EPERM` without `CAP_SYS_ADMIN` in the user namespaces of the caller and of `namespace`.
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
