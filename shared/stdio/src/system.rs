//! What of the machine every program sees.

use std::path::{Path, PathBuf};

/// Where programs are looked for.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Folders of the system besides `/usr`, which are links into it on most machines.
const FOLDERS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What of `/etc` programs need, and what holds no secret. The rest of it is not there.
pub(crate) const ETC: [&str; 18] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/chromium",
    "/etc/chromium.d",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/host.conf",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];
/// And of what makes sense only with a network.
pub(crate) const ETC_NETWORK: [&str; 5] =
    ["/etc/gai.conf", "/etc/hosts", "/etc/protocols", "/etc/resolv.conf", "/etc/services"];

/// How the folders of the system are made up here.
#[derive(Debug, Clone, Default)]
pub(crate) struct System {
    /// Those that are links, and where they lead.
    pub(crate) links: Vec<(&'static str, PathBuf)>,
    /// Those that are folders.
    pub(crate) folders: Vec<&'static str>,
}

impl System {
    /// Looks at this machine.
    pub(crate) fn look() -> Self {
        let mut found = Self { folders: vec!["/usr"], ..Self::default() };
        for path in FOLDERS {
            if let Ok(target) = std::fs::read_link(path) {
                found.links.push((path, target));
            } else if Path::new(path).is_dir() {
                found.folders.push(path);
            }
        }
        found
    }
}
