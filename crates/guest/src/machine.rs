//! The guest's machine: mounts, namespaces, sysctls, offloads.

use nix::libc;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Result whose error is a sentence for the run's record.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Prefixes an error with `what`.
pub fn at<T, E: std::fmt::Display>(what: impl std::fmt::Display, of: Result<T, E>) -> Outcome<T> {
    of.map_err(|error| format!("{what}: {error}").into())
}

/// Mounts the file systems that programs expect.
pub fn mount_all() -> Outcome<()> {
    let none = MountFlags::empty();
    for (kind, target) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")]
    {
        at(target, mount(kind, target, kind, none, None))?;
    }
    at("/run/netns", fs::create_dir("/run/netns"))
}

/// Mounts a folder of the host machine at the same path, read-only. A path that is a symbolic link
/// exists already.
pub fn show(folder: &str) -> Outcome<()> {
    if Path::new(folder).is_symlink() {
        return Ok(());
    }
    at(folder, fs::create_dir_all(folder))?;
    let outside = at(folder, std::ffi::CString::new(folder))?;
    at(folder, mount("none", folder, "hostfs", MountFlags::RDONLY, Some(outside.as_c_str())))
}

/// Gives the calling process private mounts: an empty `/tmp`, none of the run's files, the `folder`
/// of the host machine unless it is below one of those already `shown`, and everything else
/// read-only.
pub fn private_mounts(folder: &str, shown: &[String]) -> Outcome<()> {
    at("unshare", nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    at("/", mount_change("/", private))?;
    for target in ["/tmp", "/run", "/out"] {
        at(target, mount("tmpfs", target, "tmpfs", MountFlags::empty(), None))?;
    }
    if !shown.iter().any(|other| Path::new(folder).starts_with(other)) {
        show(folder)?;
    }
    at("/", mount_remount("/", MountFlags::BIND | MountFlags::RDONLY, ""))
}

fn namespace(path: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Returns the path of the namespace of host `number`; `ip` knows it as `hNUMBER`.
pub fn path_of(number: usize) -> String {
    format!("/run/netns/h{number}")
}

/// Moves the calling process into a namespace.
pub fn enter(namespace: impl AsFd) -> Outcome<()> {
    at("setns", move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)))
}

/// Moves the calling process into the namespace of host `number`.
pub fn enter_host(number: usize) -> Outcome<()> {
    enter(at(path_of(number), namespace(&path_of(number)))?)
}

/// Network namespaces of the hosts, and that of this process.
#[derive(Debug)]
pub struct Namespaces {
    own: OwnedFd,
}

impl Namespaces {
    /// Creates `count` namespaces.
    pub fn new(count: usize) -> Outcome<Self> {
        let own = at("namespace", namespace("/proc/self/ns/net"))?;
        let made = Self { own };
        loopback()?;
        for number in 0..count {
            // Only one thread runs, and only the network namespace changes.
            at("unshare", nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET))?;
            let path = path_of(number);
            at(&path, fs::write(&path, ""))?;
            at(&path, mount_bind("/proc/self/ns/net", &path))?;
            loopback()?;
        }
        enter(&made.own)?;
        Ok(made)
    }

    /// Calls `act` in the namespace of a host; `None` is the namespace of this process.
    pub fn within<T>(&self, host: Option<usize>, act: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let Some(number) = host else { return act() };
        enter_host(number)?;
        let outcome = act();
        enter(&self.own)?;
        outcome
    }
}

/// Runs a program of the guest's root file system to its end, with this input; returns its output.
pub fn execute(words: &[String], input: &str) -> Outcome<Vec<u8>> {
    let name = words.join(" ");
    let (program, rest) = words.split_first().ok_or("a command without words")?;
    let file = "/run/input";
    at(file, fs::write(file, input))?;
    let command = Command::new(program)
        .args(rest)
        .env_clear()
        .stdin(at(file, fs::File::open(file))?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output();
    let output = at(&name, command)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}: {}", output.status, said.trim()).into())
}

/// Sets a sysctl of the present namespace.
pub fn sysctl(path: &str, value: &str) -> Outcome<()> {
    let file = Path::new("/proc/sys").join(path);
    at(file.display(), fs::write(&file, value))
}

/// A request about a device (`struct ifreq`): its name, and a pointer or flags.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    value: Value,
}

#[repr(C)]
union Value {
    flags: libc::c_short,
    data: *mut Ethtool,
    room: [u8; 24],
}

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct Ethtool {
    command: u32,
    value: u32,
}

impl Request {
    fn new(device: &str) -> Self {
        let mut name = [0; libc::IFNAMSIZ];
        let length = device.len().min(name.len() - 1);
        name[..length].copy_from_slice(&device.as_bytes()[..length]);
        Self { name, value: Value { room: [0; 24] } }
    }
}

#[expect(unsafe_code, reason = "requests about devices, each with a structure of ours behind it")]
fn ask(code: libc::Ioctl, request: &mut Request) -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: the kernel reads and writes one `ifreq`, as long as the structure given here.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), code, &raw mut *request) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Brings up the loopback device of the present namespace.
fn loopback() -> Outcome<()> {
    let mut request = Request::new("lo");
    request.value = Value { flags: (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short };
    at("lo", ask(libc::SIOCSIFFLAGS, &mut request))
}

/// Disables offloads that merge packets on a device (segmentation), and checksum offloads.
pub fn plain_packets(device: &str) -> Outcome<()> {
    // ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_SSG, ETHTOOL_STXCSUM, ETHTOOL_SRXCSUM.
    for command in [0x1f, 0x24, 0x2c, 0x19, 0x17, 0x15] {
        let mut data = Ethtool { command, value: 0 };
        let mut request = Request::new(device);
        request.value = Value { data: &raw mut data };
        match ask(libc::SIOCETHTOOL, &mut request) {
            Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => {
                return Err(format!("offloads of {device}: {error}").into());
            }
            _ => {}
        }
    }
    Ok(())
}
