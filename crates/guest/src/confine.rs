//! Confines the process of a guest's kernel to the resources that it needs.
//!
//! A guest can access files of the host machine through `hostfs`. Root in the guest has the rights
//! of the host machine's user for every file that the kernel's process can reach. Therefore the
//! process gives up all access that it does not need before it starts the kernel: with Landlock
//! (landlock(7)) it can write to one folder and read some others, and with seccomp it can open only
//! local sockets. It also ends when its parent process ends.

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

/// Confines this process and replaces it with the given program.
///
/// The arguments are `--write DIR` and `--read DIR`, each any number of times, `--cpu N`, `--`, and
/// the program with its arguments.
///
/// `--cpu N` binds the guest to processor N. A guest runs on one processor at a time; on a single
/// processor, a switch between its threads wakes no other processor.
pub fn run(words: &[OsString]) -> Outcome<()> {
    let (mut read, mut write) = (Vec::new(), Vec::new());
    let mut rest = words.iter();
    loop {
        let word = rest.next().ok_or("confine: the program is missing; write it after `--`")?;
        let list = match word.to_str() {
            Some("--read") => &mut read,
            Some("--write") => &mut write,
            Some("--cpu") => {
                let word = rest
                    .next()
                    .and_then(|word| word.to_str())
                    .ok_or("confine: the number after `--cpu` is missing")?;
                let mut set = rustix::thread::CpuSet::new();
                set.set(at("confine: --cpu", word.parse())?);
                at("confine: --cpu", rustix::thread::sched_setaffinity(None, &set))?;
                continue;
            }
            Some("--") => break,
            _ => {
                return Err(format!(
                    "confine: {} is not an option; the options are --read, --write and --cpu",
                    word.display()
                )
                .into());
            }
        };
        list.push(rest.next().ok_or("confine: the folder after the option is missing")?);
    }
    let program = rest.next().ok_or("confine: the program is missing; write it after `--`")?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| format!("confine: {error}"))?;
    files(&read, &write)?;
    sockets()?;
    Err(format!("{}: {}", program.display(), Command::new(program).args(rest).exec()).into())
}

fn files(read: &[&OsString], write: &[&OsString]) -> Outcome<()> {
    // The kernel must be able to restrict the access rights of Landlock's first version. Those of
    // later versions are restricted if the kernel supports them.
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
        return Err(
            "the kernel must support Landlock (Linux 5.13 or later, with CONFIG_SECURITY_LANDLOCK)"
                .into(),
        );
    }
    Ok(())
}

/// Denies the opening of all sockets except local ones (`AF_UNIX`).
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
