//! Diagnosis of refusals: which permission or kernel feature is missing.
//!
//! The kernel returns `EPERM` without a reason. Facts about this process and the inspected process
//! show the probable reason.

use crate::procfs;
use rustix::io::Errno;
use serde::Serialize;
use std::fs::read_to_string;
use std::io;

/// Kind of the missing permission or feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// `CAP_SYS_PTRACE`, needed to inspect other users' processes.
    Ptrace,
    /// `CAP_NET_ADMIN`, needed for sizes above twice `net.core.rmem_max`.
    NetAdmin,
    /// `CAP_SYS_ADMIN`, needed to enter another network namespace.
    SysAdmin,
    /// Permission by Yama, whose setting `kernel.yama.ptrace_scope` forbids the access.
    Yama,
    /// Permission by the seccomp filter that applies to this process.
    Seccomp,
    /// Capabilities in the inspected process's user namespace, which is not this process's.
    UserNamespace,
    /// A kernel feature: the kernel is too old or was built without it.
    Kernel,
    /// Permission by the inspected process (`PR_SET_DUMPABLE`) or by a security module.
    Process,
    /// Control of the socket, which another tuner already tunes.
    Taken,
    /// A means to restore the socket's original setting exactly.
    Restorable,
    /// Another permission or feature, which the text names.
    Other,
}

/// Why a socket or process cannot be accessed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Kind of the missing permission or feature.
    pub missing: Missing,
    /// Explanation and remedy, for the user.
    pub text: String,
}

impl Refusal {
    /// Returns a refusal with this text.
    pub fn new(missing: Missing, text: impl Into<String>) -> Self {
        Self { missing, text: text.into() }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Facts that decide whether this process may inspect another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Facts {
    /// Whether this process has `CAP_SYS_PTRACE` in its own user namespace.
    pub ptrace: bool,
    /// Whether a seccomp filter applies to this process.
    pub filtered: bool,
    /// Whether both processes belong to the same user.
    pub same_user: bool,
    /// Whether both processes are in the same user namespace; `None` if unknown.
    pub same_namespace: Option<bool>,
    /// Whether this process is in the machine's initial user namespace.
    pub first_namespace: bool,
    /// Value of `kernel.yama.ptrace_scope`; `None` if the kernel has no Yama.
    pub yama: Option<u8>,
}

/// Number of the initial user namespace (`PROC_USER_INIT_INO`).
const FIRST_USER_NAMESPACE: u64 = 0xEFFF_FFFD;
const CAP_SYS_PTRACE: u32 = 19;

impl Facts {
    /// Returns the facts about this process and the process `pid`.
    pub fn of(pid: u32) -> Self {
        let status = |who: &str| read_to_string(format!("/proc/{who}/status")).unwrap_or_default();
        let (me, other) = (status("self"), status(&pid.to_string()));
        let capabilities = procfs::status(&me, "CapEff")
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())
            .unwrap_or(0);
        let user = |text: &str| -> Option<String> {
            Some(procfs::status(text, "Uid")?.split_whitespace().next()?.to_owned())
        };
        let namespace = |who: &str| {
            crate::process::namespace_number(format!("/proc/{who}/ns/user").as_ref()).ok()
        };
        let ours = namespace("self");
        Self {
            ptrace: capabilities >> CAP_SYS_PTRACE & 1 == 1,
            filtered: procfs::status(&me, "Seccomp").is_some_and(|mode| mode != "0"),
            same_user: user(&me).is_some() && user(&me) == user(&other),
            same_namespace: namespace(&pid.to_string()).map(|theirs| Some(theirs) == ours),
            first_namespace: ours == Some(FIRST_USER_NAMESPACE),
            yama: read_to_string("/proc/sys/kernel/yama/ptrace_scope")
                .ok()
                .and_then(|text| text.trim().parse().ok()),
        }
    }
}

/// Returns the refusal for the process `pid`, which this process may not inspect.
pub fn looking_into(pid: u32, error: &io::Error) -> Refusal {
    let (missing, why) = explain(error, Facts::of(pid));
    Refusal::new(missing, format!("process {pid} cannot be inspected: {why}"))
}

/// Returns the kind and the explanation of an error, given the facts.
pub fn explain(error: &io::Error, facts: Facts) -> (Missing, String) {
    let errno = Errno::from_io_error(error);
    let denied = errno == Some(Errno::PERM) || errno == Some(Errno::ACCESS);
    if errno == Some(Errno::NOSYS) {
        let filter = if facts.filtered {
            ", or a seccomp filter of this process, such as a container's, hides it"
        } else {
            ""
        };
        let missing = if facts.filtered { Missing::Seccomp } else { Missing::Kernel };
        return (missing, format!("pidfd_getfd is missing: it needs Linux 5.6 or later{filter}"));
    }
    if !denied {
        return (Missing::Other, error.to_string());
    }
    if facts.yama == Some(3) {
        return (
            Missing::Yama,
            "kernel.yama.ptrace_scope is 3, which forbids it to all processes until the next boot"
                .into(),
        );
    }
    if facts.ptrace {
        return privileged(facts);
    }
    if !facts.same_user {
        return (
            Missing::Ptrace,
            "it belongs to another user and CAP_SYS_PTRACE is missing: run as root or use the systemd unit"
                .into(),
        );
    }
    match facts.yama {
        Some(scope @ (1 | 2)) => (
            Missing::Yama,
            format!("kernel.yama.ptrace_scope is {scope}, which forbids it without CAP_SYS_PTRACE"),
        ),
        _ if facts.filtered => (Missing::Seccomp, FILTERED.into()),
        _ => (
            Missing::Process,
            "CAP_SYS_PTRACE is missing, and the process forbids it by PR_SET_DUMPABLE, by more \
             capabilities than this process has, or by a security module"
                .into(),
        ),
    }
}

const FILTERED: &str =
    "a seccomp filter of this process, such as a container's, forbids pidfd_getfd";

/// Returns the kind and the explanation of a refusal despite `CAP_SYS_PTRACE`.
fn privileged(facts: Facts) -> (Missing, String) {
    let elsewhere = facts.same_namespace == Some(false)
        || facts.same_namespace.is_none() && !facts.first_namespace;
    if elsewhere {
        return (
            Missing::UserNamespace,
            "it is in another user namespace, in which this process has no CAP_SYS_PTRACE: run \
             this command in that namespace or in the machine's initial one"
                .into(),
        );
    }
    if facts.filtered {
        return (Missing::Seccomp, FILTERED.into());
    }
    (
        Missing::Process,
        "this process has CAP_SYS_PTRACE, so a security module (SELinux, AppArmor) forbids it"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Facts = Facts {
        ptrace: false,
        filtered: false,
        same_user: true,
        same_namespace: Some(true),
        first_namespace: true,
        yama: None,
    };

    fn missing(errno: Errno, facts: Facts) -> Missing {
        explain(&errno.into(), facts).0
    }

    #[test]
    fn each_refusal_has_its_reason() {
        use Missing as M;
        let root = Facts { ptrace: true, ..US };
        let stranger = Facts { same_user: false, ..US };
        let yama = |scope, facts| Facts { yama: Some(scope), ..facts };
        let filtered = |facts| Facts { filtered: true, ..facts };
        for (facts, expected) in [
            (US, M::Process),
            (stranger, M::Ptrace),
            (yama(1, stranger), M::Ptrace),
            (yama(0, US), M::Process),
            (yama(1, US), M::Yama),
            (yama(2, US), M::Yama),
            (yama(3, root), M::Yama),
            (yama(2, root), M::Process),
            (filtered(US), M::Seccomp),
            (filtered(root), M::Seccomp),
            (Facts { same_namespace: Some(false), ..root }, M::UserNamespace),
            (Facts { same_namespace: None, first_namespace: false, ..root }, M::UserNamespace),
        ] {
            assert_eq!(missing(Errno::PERM, facts), expected, "{facts:?}");
        }
        assert_eq!(missing(Errno::NOSYS, US), M::Kernel);
        assert_eq!(missing(Errno::NOSYS, filtered(US)), M::Seccomp);
        assert_eq!(missing(Errno::MFILE, root), M::Other);
    }

    #[test]
    fn facts_of_ourselves() {
        let facts = Facts::of(std::process::id());
        assert!(facts.same_user && facts.same_namespace == Some(true));
    }
}
