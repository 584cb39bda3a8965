//! The first process of a Linux kernel in virtual time, and the launcher that confines the kernel.
//!
//! A User-Mode Linux kernel runs as an ordinary process. [`confine`] removes its access to
//! everything that it does not need, and executes it. The kernel starts this program again as its
//! first process ([`init`]). It creates the hosts and links of a [job](job::Job), starts the
//! traffic of each host ([`host`]), the user's programs ([`programs`]) and, for links by this
//! project's wire, the wire ([`wire`]). It samples the queues and powers the kernel off. All
//! outputs are files below `out` in the job's folder.

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
        _ => Err("usage: sojourn-guest confine ..., or as the first process of a kernel".into()),
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
    eprintln!("only Linux runs this program");
    std::process::exit(1);
}
