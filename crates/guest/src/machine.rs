//! Mounts, network namespaces, sysctls and offloads of the guest.

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

/// Result whose error is a sentence that is recorded with the run.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Prefixes the error of a result with `what` and a colon.
pub fn at<T, E: std::fmt::Display>(what: impl std::fmt::Display, of: Result<T, E>) -> Outcome<T> {
    of.map_err(|error| format!("{what}: {error}").into())
}

/// Mounts the file systems that programs expect in the guest.
pub fn mount_all() -> Outcome<()> {
    let none = MountFlags::empty();
    for (kind, target) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")]
    {
        at(target, mount(kind, target, kind, none, None))?;
    }
    at("/run/netns", fs::create_dir("/run/netns"))
}

/// Mounts a folder of the host machine at the same path in the guest, read-only. If the path is a
/// symbolic link, it already exists in the guest and nothing is mounted.
pub fn show(folder: &str) -> Outcome<()> {
    if Path::new(folder).is_symlink() {
        return Ok(());
    }
    at(folder, fs::create_dir_all(folder))?;
    let outside = at(folder, std::ffi::CString::new(folder))?;
    at(folder, mount("none", folder, "hostfs", MountFlags::RDONLY, Some(outside.as_c_str())))
}

/// Gives the calling process its own mounts. `/tmp`, `/run` and the folder of the outputs are empty
/// and writable; other files are read-only. The `folder` of the host machine is mounted, unless it
/// is below one of the folders `shown`, which are already mounted.
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

/// Returns the path of the network namespace of host `number`. The command `ip netns` shows it as
/// `hNUMBER`.
pub fn path_of(number: usize) -> String {
    format!("/run/netns/h{number}")
}

/// Moves the calling process into a network namespace.
pub fn enter(namespace: impl AsFd) -> Outcome<()> {
    at("setns", move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)))
}

/// Moves the calling process into the network namespace of host `number`.
pub fn enter_host(number: usize) -> Outcome<()> {
    enter(at(path_of(number), namespace(&path_of(number)))?)
}

/// Network namespaces of the hosts and of this process.
#[derive(Debug)]
pub struct Namespaces {
    own: OwnedFd,
}

impl Namespaces {
    /// Creates `count` namespaces with their loopback devices. Afterwards, this process is in its
    /// previous namespace.
    pub fn new(count: usize) -> Outcome<Self> {
        let own = at("namespace", namespace("/proc/self/ns/net"))?;
        let made = Self { own };
        loopback()?;
        for number in 0..count {
            // This process has only one thread, so `unshare` gives the whole process a new network
            // namespace.
            at("unshare", nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET))?;
            let path = path_of(number);
            at(&path, fs::write(&path, ""))?;
            at(&path, mount_bind("/proc/self/ns/net", &path))?;
            loopback()?;
        }
        enter(&made.own)?;
        Ok(made)
    }

    /// Calls `act` in the network namespace of a host, or in the namespace of this process if
    /// `host` is `None`.
    pub fn within<T>(&self, host: Option<usize>, act: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let Some(number) = host else { return act() };
        enter_host(number)?;
        let outcome = act();
        enter(&self.own)?;
        outcome
    }
}

/// Runs a program of the guest's root file system until it ends, with the text `input` as standard
/// input. Returns its output. Fails if the program fails.
pub fn execute(words: &[String], input: &str) -> Outcome<Vec<u8>> {
    let name = words.join(" ");
    let (program, rest) = words.split_first().ok_or("the command is empty")?;
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

/// Sets a sysctl of the present network namespace; `path` is below `/proc/sys`.
pub fn sysctl(path: &str, value: &str) -> Outcome<()> {
    let file = Path::new("/proc/sys").join(path);
    at(file.display(), fs::write(&file, value))
}

/// Gives sockets a quarter of the guest's memory. Linux's default is a sixteenth for TCP, but a
/// guest is small and has both ends of all connections: it would refuse data that a usual host
/// accepts.
pub fn give_memory() -> Outcome<()> {
    let memory = rustix::system::sysinfo();
    let bytes = memory.totalram as u64 * u64::from(memory.mem_unit);
    let pages = bytes / rustix::param::page_size() as u64 / 4;
    let thresholds = format!("{pages} {pages} {pages}");
    ["tcp_mem", "udp_mem"]
        .iter()
        .try_for_each(|name| sysctl(&format!("net/ipv4/{name}"), &thresholds))
}

/// Fails if the memory for sockets did not suffice in the present network namespace.
pub fn check_memory() -> Outcome<()> {
    for (path, name) in
        [("/proc/net/netstat", "TCPMemoryPressures"), ("/proc/net/snmp", "MemErrors")]
    {
        if counter(&at(path, fs::read_to_string(path))?, name) > 0 {
            let why = "the sockets needed more than a quarter of the guest's memory, so Linux has \
                       reduced their buffers: use fewer flows or smaller buffers";
            return Err(why.into());
        }
    }
    Ok(())
}

/// Returns the sum of the counters of a name in a file such as `/proc/net/snmp`, where each line of
/// names is followed by a line of values.
fn counter(text: &str, name: &str) -> u64 {
    let lines: Vec<_> = text.lines().map(str::split_whitespace).collect();
    let (pairs, _) = lines.as_chunks::<2>();
    let all = pairs.iter().flat_map(|[names, values]| names.clone().zip(values.clone()));
    all.filter(|(known, _)| *known == name).filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

/// Argument of an `ioctl` about a device (`struct ifreq`): the name of the device, and flags or a
/// pointer.
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

/// `struct ethtool_value` of `linux/ethtool.h`: a command and its value.
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

#[expect(unsafe_code, reason = "an `ioctl` with a valid structure; no library has these requests")]
fn ask(code: libc::Ioctl, request: &mut Request) -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: the kernel reads and writes one `ifreq`, and `Request` has the size and layout of
    // `ifreq`.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), code, &raw mut *request) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Turns on the loopback device of the present network namespace.
fn loopback() -> Outcome<()> {
    let mut request = Request::new("lo");
    request.value = Value { flags: (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short };
    at("lo", ask(libc::SIOCSIFFLAGS, &mut request))
}

/// Disables the offloads of a device that merge packets (segmentation and receive offloads), and
/// the checksum offloads. A device that `splits` super-packets keeps those offloads that it needs
/// to do so without copies.
pub fn plain_packets(device: &str, splits: bool) -> Outcome<()> {
    // The commands are ETHTOOL_STSO, ETHTOOL_SGRO, ETHTOOL_SGSO, ETHTOOL_SSG, ETHTOOL_STXCSUM and
    // ETHTOOL_SRXCSUM.
    let commands = [0x1f, 0x2c, 0x24, 0x19, 0x17, 0x15];
    for &command in &commands[..if splits { 2 } else { commands.len() }] {
        let mut data = Ethtool { command, value: 0 };
        let mut request = Request::new(device);
        request.value = Value { data: &raw mut data };
        match ask(libc::SIOCETHTOOL, &mut request) {
            Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => {
                return Err(format!("cannot disable the offloads of {device}: {error}").into());
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::counter;

    #[test]
    fn counters_are_read_below_their_names() {
        let text = "Udp: InErrors MemErrors\nUdp: 3 2\nUdpLite: InErrors MemErrors\nUdpLite: 0 5\n";
        assert_eq!(counter(text, "MemErrors"), 7);
        assert_eq!(counter(text, "TCPMemoryPressures"), 0);
    }
}
