//! The error of opening a device.

use std::{error, fmt, io};

/// Name of the step that creates a TUN or TAP device.
pub(super) const OPENING: &str = "creating the device";

/// The error of opening a device.
#[derive(Debug)]
pub struct Error {
    /// Name of the device or interface.
    pub device: String,
    /// Name of the failed step.
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
                f.write_str(" (does /dev/net/tun exist? If not, load the module: modprobe tun)")
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

/// Returns an error unless `name` is a valid interface name: 1 to 15 visible ASCII characters
/// without `/` and `:`, and neither `.` nor `..`. `%` is not allowed either, since Linux would
/// replace a `%d`.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%');
    if (1..=15).contains(&name.len()) && name.bytes().all(is_allowed) && name != "." && name != ".."
    {
        return Ok(());
    }
    let what = "a name must have 1 to 15 visible ASCII characters, no '/', ':' or '%', and not be '.' or '..'";
    Err(Error::at(name, "checking the name")(io::Error::new(io::ErrorKind::InvalidInput, what)))
}
