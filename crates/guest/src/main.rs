//! The first process of a Linux kernel in virtual time, and the launcher that confines this kernel.
//!
//! A User-Mode Linux kernel runs as an ordinary process on the host machine. The launcher
//! ([`confine`]) gives up all access that the kernel does not need, and then executes the kernel.
//! The first process of this kernel ([`init`]) is the same program as the launcher. It creates the
//! hosts and links of a [job](job::Job). It starts the traffic of each host ([`host`]), the user's
//! programs ([`programs`]) and, if this project's wire emulates the links, the wire ([`wire`]). It
//! samples the queues and powers the kernel off at the end. All outputs are files in the folder
//! `out` of the job's folder.

#[cfg(target_os = "linux")]
mod captures;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod init;
mod job;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod packets;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod queues;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if rustix::process::getpid().is_init() {
        init::main();
    }
    let outcome = match words.first().and_then(|word| word.to_str()) {
        Some("confine") => confine::run(&words[1..]),
        Some("host") => host::run(&words[1..]),
        Some("shell") => host::shell(),
        Some("program") => programs::run(&words[1..]),
        Some("wire") => wire::run(),
        _ => Err("usage: `sojourn-guest confine [OPTIONS] -- PROGRAM`; otherwise it can run only as the first process of a kernel".into()),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this program runs only on Linux");
    std::process::exit(1);
}
