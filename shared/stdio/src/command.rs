//! Pure: the command that starts a program.
//!
//! From the outside in: bubblewrap makes the namespaces and the view of the file system; a shell sets the limits that the kernel holds
//! by itself; as root, `setpriv` takes every right and gives the program its own user id; `unshare` gives it a user namespace.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
};

use secrecy::ExposeSecret as _;
use tokio::process::Command;

use crate::{home::Home, spec::Spec};

/// Where a sandboxed program finds its home.
const HOME: &str = "/server";
/// Where programs are looked for.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Folders of the system that are links into `/usr` on most machines.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What of `/etc` programs need, and what holds no secret.
const ETC: [&str; 16] = [
    "alternatives",
    "ca-certificates",
    "chromium",
    "chromium.d",
    "crypto-policies",
    "fonts",
    "host.conf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "pki",
    "ssl",
    "timezone",
];
/// And of what only makes sense with a network.
const ETC_NETWORK: [&str; 4] = ["gai.conf", "hosts", "protocols", "services"];
/// Sets the limits that its first arguments name and becomes the command that the rest is.
const LIMITED: &str =
    "ulimit -c 0 && ulimit -n \"$1\" && ulimit -f \"$2\" && ulimit -p \"$3\" && shift 3 && exec \"$@\"";
/// The unit of `ulimit -f` in bytes (POSIX).
const BLOCK: u64 = 512;

/// What of the machine decides how the command looks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    /// Those of [`SYSTEM`] that are links, and where they lead.
    pub(crate) links: Vec<(&'static str, PathBuf)>,
    /// Those that are folders.
    pub(crate) folders: Vec<&'static str>,
}

impl Host {
    /// Looks at this machine.
    pub(crate) fn look() -> Self {
        let mut host = Self::default();
        for path in SYSTEM {
            if let Ok(target) = std::fs::read_link(path) {
                host.links.push((path, target));
            } else if Path::new(path).is_dir() {
                host.folders.push(path);
            }
        }
        host
    }
}

/// The command for a program. Its environment holds the secrets; its arguments do not.
pub(crate) fn of(spec: &Spec, home: &Home, sandboxed: bool, host: &Host) -> Command {
    let words = words(spec, home, sandboxed, host);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env_clear();
    let inside = sandboxed && !spec.trusted;
    let own = if inside { HOME.into() } else { home.path.clone().into_os_string() };
    let tmp = if inside { "/tmp".into() } else { std::env::temp_dir().into_os_string() };
    let path = if inside { PATH.into() } else { std::env::var_os("PATH").unwrap_or_else(|| PATH.into()) };
    command.env("PATH", path).env("HOME", own).env("LANG", "C.UTF-8").env("TMPDIR", tmp);
    for (name, value) in &spec.env {
        command.env(name, value.expose_secret());
    }
    command.current_dir(if inside { Path::new("/") } else { &home.path });
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command
}

/// The words of the command.
pub(crate) fn words(spec: &Spec, home: &Home, sandboxed: bool, host: &Host) -> Vec<OsString> {
    let mut words = Words(Vec::new());
    match (spec.trusted, sandboxed) {
        (false, _) => sandbox(&mut words, spec, home, host),
        // Trusted, and still ended with its owner, children and all.
        (true, true) => {
            words.all(["bwrap", "--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc", "--"]);
        }
        (true, false) => words.all(["setpriv", "--pdeathsig", "KILL", "--"]),
    }
    words.0.push(spec.program.clone().into());
    words.0.extend(spec.args.iter().map(OsString::from));
    words.0
}

struct Words(Vec<OsString>);

impl Words {
    fn all<W: Into<OsString>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.0.extend(words.into_iter().map(Into::into));
    }
}

fn sandbox(words: &mut Words, spec: &Spec, home: &Home, host: &Host) {
    words.all(["bwrap", "--die-with-parent", "--new-session"]);
    words.all(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]);
    if home.user.is_none() {
        words.all(["--unshare-user"]);
    }
    if !spec.network {
        words.all(["--unshare-net"]);
    }
    words.all(["--ro-bind", "/usr", "/usr"]);
    for (path, target) in &host.links {
        words.all([OsString::from("--symlink"), target.into(), path.into()]);
    }
    for path in &host.folders {
        words.all(["--ro-bind", path, path]);
    }
    // What it makes on the way to something is closed to all but root.
    words.all(["--perms", "0755", "--dir", "/etc"]);
    let network: &[&str] = if spec.network { &ETC_NETWORK } else { &[] };
    for name in ETC.iter().chain(network) {
        let path = format!("/etc/{name}");
        words.all(["--ro-bind-try", &path, &path]);
    }
    if spec.network {
        words.all(["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]);
    }
    for name in ["passwd", "group"] {
        words.all([OsString::from("--ro-bind"), home.etc.join(name).into(), format!("/etc/{name}").into()]);
    }
    words.all(["--proc", "/proc", "--dev", "/dev"]);
    words.all(["--perms", "1777", "--size", &spec.limits.tmp_bytes.to_string(), "--tmpfs", "/tmp"]);
    words.all(["--perms", "1777", "--size", &spec.limits.tmp_bytes.to_string(), "--tmpfs", "/dev/shm"]);
    for opened in &spec.open {
        let path = opened.path.as_os_str();
        let mut way: Vec<&Path> = opened.path.ancestors().skip(1).filter(|above| above.parent().is_some()).collect();
        way.reverse();
        for above in way.into_iter().filter(|above| !above.starts_with("/usr") && !above.starts_with("/etc")) {
            words.all([OsStr::new("--perms"), OsStr::new("0755"), OsStr::new("--dir"), above.as_os_str()]);
        }
        words.all([OsString::from(if opened.write { "--bind" } else { "--ro-bind" }), path.into(), path.into()]);
    }
    // Last: nothing that was opened may stand in its place.
    words.all([OsString::from("--bind"), home.path.clone().into(), HOME.into()]);
    words.all(["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME, "--"]);
    let limits = &spec.limits;
    let blocks = (limits.file_bytes / BLOCK).max(1);
    words.all(["/bin/sh", "-c", LIMITED, "sh"]);
    words.all([limits.open_files.to_string(), blocks.to_string(), limits.processes.to_string()]);
    if let Some(user) = home.user {
        let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
        words.all([
            "setpriv",
            &user,
            &group,
            "--clear-groups",
            "--no-new-privs",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--",
        ]);
        words.all(["unshare", "--user", "--map-current-user", "--"]);
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::spec::{Limits, Opened};

    fn spec() -> Spec {
        Spec {
            name: "s".into(),
            program: "npx".into(),
            args: vec!["-y".into(), "a server".into()],
            env: vec![("KEY".into(), SecretString::from("planted"))],
            open: vec![
                Opened { path: "/data/ro".into(), write: false },
                Opened { path: "/data/rw".into(), write: true },
            ],
            network: false,
            trusted: false,
            limits: Limits::default(),
        }
    }

    fn joined(spec: &Spec, user: Option<u32>, sandboxed: bool) -> String {
        let home = Home { path: "/h/s".into(), user, etc: "/h/etc/1".into() };
        let host = Host { links: vec![("/bin", "usr/bin".into())], folders: vec!["/lib64"] };
        let words = words(spec, &home, sandboxed, &host);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_program_gets_its_namespaces_its_limits_and_only_what_was_opened() {
        let words = joined(&spec(), Some(61_201), true);
        for part in [
            "--unshare-pid --unshare-ipc --unshare-uts",
            "--unshare-net",
            "--ro-bind /usr /usr --symlink usr/bin /bin --ro-bind /lib64 /lib64",
            "--perms 0755 --dir /data --ro-bind /data/ro /data/ro",
            "--bind /data/rw /data/rw --bind /h/s /server",
            "sh 4096 2097152 512 setpriv --reuid=61201 --regid=61201 --clear-groups --no-new-privs",
            "unshare --user --map-current-user -- npx -y a server",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(!words.contains("planted") && !words.contains("resolv.conf"), "{words}");
        let networked = joined(&Spec { network: true, ..spec() }, None, true);
        assert!(!networked.contains("--unshare-net") && networked.contains("/etc/resolv.conf"), "{networked}");
        assert!(networked.contains("--unshare-user") && !networked.contains("setpriv"), "{networked}");
    }

    #[test]
    fn a_trusted_program_has_no_sandbox_and_still_ends_with_its_owner() {
        let trusted = Spec { trusted: true, ..spec() };
        assert!(joined(&trusted, Some(1), true).starts_with("bwrap --die-with-parent --unshare-pid --dev-bind / /"));
        assert_eq!(joined(&trusted, Some(1), false), "setpriv --pdeathsig KILL -- npx -y a server");
    }
}
