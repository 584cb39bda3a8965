//! Confines a kernel's process to the resources that it needs.
//!
//! Through `hostfs`, root inside a guest has the rights of the user outside on every file that the
//! kernel's process can reach. Therefore the process drops access that it does not need: with
//! Landlock (landlock(7)) it keeps one folder to write and some to read, with seccomp it can open
//! only local sockets, and it ends when its parent ends.

use crate::machine::{Outcome, at};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Arguments: `--write DIR` and `--read DIR` any number of times, `--cpu N`, `--`, program and
/// arguments.
///
/// A guest runs on one processor at a time. Pinned to one processor, its threads switch without
/// waking another processor.
pub fn run(words: &[OsString]) -> Outcome<()> {
    let (mut read, mut write) = (Vec::new(), Vec::new());
    let mut rest = words.iter();
    loop {
        let word = rest.next().ok_or("confine: no program")?;
        let list = match word.to_str() {
            Some("--read") => &mut read,
            Some("--write") => &mut write,
            Some("--cpu") => {
                let word =
                    rest.next().and_then(|word| word.to_str()).ok_or("confine: which cpu?")?;
                let mut set = rustix::thread::CpuSet::new();
                set.set(at("confine: --cpu", word.parse())?);
                at("confine: --cpu", rustix::thread::sched_setaffinity(None, &set))?;
                continue;
            }
            Some("--") => break,
            _ => return Err(format!("confine: what is {}?", word.display()).into()),
        };
        list.push(rest.next().ok_or("confine: no folder")?);
    }
    let program = rest.next().ok_or("confine: no program")?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| format!("confine: {error}"))?;
    files(&read, &write)?;
    sockets()?;
    Err(format!("{}: {}", program.display(), Command::new(program).args(rest).exec()).into())
}

fn files(read: &[&OsString], write: &[&OsString]) -> Outcome<()> {
    // The access rights of the first version are required, those of later versions are optional.
    let best = ABI::V6;
    let rules = at(
        "confine",
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1)),
    )?
    .set_compatibility(CompatLevel::BestEffort);
    let rules = at("confine", rules.handle_access(AccessFs::from_all(best)))?;
    let rules = at("confine", rules.handle_access(AccessNet::from_all(best)))?;
    let rules = at("confine", rules.scope(Scope::from_all(best)))?;
    let mut rules = at("confine", rules.create())?;
    for (folders, access) in [(read, AccessFs::from_read(best)), (write, AccessFs::from_all(best))]
    {
        for folder in folders {
            let opened = at(folder.display(), PathFd::new(folder))?;
            rules = at("confine", rules.add_rule(PathBeneath::new(opened, access)))?;
        }
    }
    let status = at("confine", rules.restrict_self())?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("this kernel has no Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK)".into());
    }
    Ok(())
}

/// Denies all sockets except local ones.
fn sockets() -> Outcome<()> {
    let local = at(
        "confine",
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, libc::AF_UNIX as u64),
    )?;
    let rule = at("confine", SeccompRule::new(vec![local]))?;
    let architecture = at("confine", std::env::consts::ARCH.try_into())?;
    let filter = at(
        "confine",
        SeccompFilter::new(
            [(libc::SYS_socket, vec![rule])].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EACCES as u32),
            architecture,
        ),
    )?;
    let program: BpfProgram = at("confine", filter.try_into())?;
    at("confine", seccompiler::apply_filter(&program))
}
