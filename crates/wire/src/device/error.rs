//! Why a device cannot be opened.

use std::{error, fmt, io};

/// The step in which a TUN or TAP device is created.
pub(super) const OPENING: &str = "creating it";

/// An error that prevents a device from being opened.
#[derive(Debug)]
pub struct Error {
    /// The device's or interface's name.
    pub device: String,
    /// The failed operation.
    pub step: &'static str,
    /// The system's error.
    pub source: io::Error,
}

impl Error {
    pub(super) fn at(device: &str, step: &'static str) -> impl FnOnce(io::Error) -> Self {
        let device = device.to_owned();
        move |source| Self { device, step, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {:?}: {}: {}", self.device, self.step, self.source)?;
        match self.source.kind() {
            io::ErrorKind::PermissionDenied => {
                f.write_str(" (needs root, or CAP_NET_ADMIN and CAP_NET_RAW in the namespace)")
            }
            io::ErrorKind::NotFound if self.step == OPENING => {
                f.write_str(" (is there /dev/net/tun? modprobe tun)")
            }
            _ => Ok(()),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Refuses what is not the name of an interface: Linux takes 1 to 15 bytes without `/`, `:` and white
/// space, and would replace a `%d`.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%');
    if (1..=15).contains(&name.len()) && name.bytes().all(is_allowed) && name != "." && name != ".."
    {
        return Ok(());
    }
    let what = "a name has 1 to 15 ASCII characters, none of them a space, '/', ':' or '%'";
    Err(Error::at(name, "checking its name")(io::Error::new(io::ErrorKind::InvalidInput, what)))
}
