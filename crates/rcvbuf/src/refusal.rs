//! Diagnosis of refusals: the permission or kernel feature that is missing.
//!
//! The kernel reports `EPERM` without a reason. Facts about this process and the inspected process
//! narrow it down.

use crate::procfs;
use rustix::io::Errno;
use serde::Serialize;
use std::fs::read_to_string;
use std::io;

/// Missing permission or feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// `CAP_SYS_PTRACE`, for inspecting other users' processes.
    Ptrace,
    /// `CAP_NET_ADMIN`, for sizes above `net.core.rmem_max`.
    NetAdmin,
    /// `CAP_SYS_ADMIN`, for entering another network namespace.
    SysAdmin,
    /// Permission by Yama: `kernel.yama.ptrace_scope` forbids the access.
    Yama,
    /// Permission by a seccomp filter.
    Seccomp,
    /// Capabilities in the user namespace of the inspected process, which is another namespace.
    UserNamespace,
    /// A kernel feature: the kernel is too old, or was built without it.
    Kernel,
    /// Permission by the process (`PR_SET_DUMPABLE`), or by a security module.
    Process,
    /// An untuned socket: another tuner already tunes it.
    Taken,
    /// A way to restore the socket's setting exactly.
    Restorable,
    /// Another cause, stated in the text.
    Other,
}

/// A refusal and its cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Missing permission or feature.
    pub missing: Missing,
    /// Explanation and remedy for the user.
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

/// Facts that decide whether this process may inspect another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Facts {
    /// This process has `CAP_SYS_PTRACE` in its own user namespace.
    pub ptrace: bool,
    /// A seccomp filter applies to this process.
    pub filtered: bool,
    /// Both processes have the same user.
    pub same_user: bool,
    /// Both processes are in the same user namespace; `None` if unknown.
    pub same_namespace: Option<bool>,
    /// This process is in the machine's initial user namespace.
    pub first_namespace: bool,
    /// Value of `kernel.yama.ptrace_scope`; `None` without Yama.
    pub yama: Option<u8>,
}

/// Number of the initial user namespace (`PROC_USER_INIT_INO`).
const FIRST_USER_NAMESPACE: u64 = 0xEFFF_FFFD;
const CAP_SYS_PTRACE: u32 = 19;

impl Facts {
    /// Returns the facts about this process and process `pid`.
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

/// Returns the refusal for process `pid`, which this process may not inspect.
pub fn looking_into(pid: u32, error: &io::Error) -> Refusal {
    let (missing, why) = explain(error, Facts::of(pid));
    Refusal::new(missing, format!("process {pid} cannot be looked into: {why}"))
}

/// Returns the cause of an error and its explanation, given the facts.
pub fn explain(error: &io::Error, facts: Facts) -> (Missing, String) {
    let errno = Errno::from_io_error(error);
    let denied = errno == Some(Errno::PERM) || errno == Some(Errno::ACCESS);
    if errno == Some(Errno::NOSYS) {
        let filter = if facts.filtered {
            "; or the seccomp filter that is over us (a container's) hides it"
        } else {
            ""
        };
        let missing = if facts.filtered { Missing::Seccomp } else { Missing::Kernel };
        return (missing, format!("pidfd_getfd is missing, which came with Linux 5.6{filter}"));
    }
    if !denied {
        return (Missing::Other, error.to_string());
    }
    if facts.yama == Some(3) {
        return (
            Missing::Yama,
            "kernel.yama.ptrace_scope is 3, which forbids it to everybody until the next boot"
                .into(),
        );
    }
    if facts.ptrace {
        return privileged(facts);
    }
    if !facts.same_user {
        return (
            Missing::Ptrace,
            "it is another user's: CAP_SYS_PTRACE is missing (be root, or use the systemd unit)"
                .into(),
        );
    }
    match facts.yama {
        Some(scope @ (1 | 2)) => (
            Missing::Yama,
            format!(
                "kernel.yama.ptrace_scope is {scope}, which forbids it without CAP_SYS_PTRACE"
            ),
        ),
        _ if facts.filtered => (Missing::Seccomp, FILTERED.into()),
        _ => (
            Missing::Process,
            "it does not let itself be looked into (PR_SET_DUMPABLE, more capabilities than ours, or \
             a security module) without CAP_SYS_PTRACE"
                .into(),
        ),
    }
}

const FILTERED: &str = "the seccomp filter that is over us (a container's) forbids pidfd_getfd";

/// Returns the cause of a refusal despite `CAP_SYS_PTRACE`.
fn privileged(facts: Facts) -> (Missing, String) {
    let elsewhere = facts.same_namespace == Some(false)
        || facts.same_namespace.is_none() && !facts.first_namespace;
    if elsewhere {
        return (
            Missing::UserNamespace,
            "it is in another user namespace than we are, where our CAP_SYS_PTRACE does not count: run \
             this in its own, or in the machine's first one"
                .into(),
        );
    }
    if facts.filtered {
        return (Missing::Seccomp, FILTERED.into());
    }
    (
        Missing::Process,
        "we have CAP_SYS_PTRACE, so a security module (SELinux, AppArmor) forbids it".into(),
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
    fn each_refusal_is_told_apart() {
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
