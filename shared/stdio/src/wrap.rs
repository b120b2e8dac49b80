//! Pure: the words of bubblewrap.

use std::{collections::BTreeSet, path::Path};

use crate::{
    Config, HOME, Spec,
    home::Home,
    plan::text,
    system::{ETC, ETC_NETWORK, System},
};

/// Where the stage is found inside. It is Gatehouse's own program, read-only, and no secret.
pub(crate) const HELPER: &str = "/.gatehouse";

/// What stands before the stage. No secret is among it: other users of the machine see it.
pub(crate) fn words(spec: &Spec, home: &Home, system: &System, config: &Config, helper: &str) -> Vec<String> {
    let mut words = vec![text(&config.bubblewrap)];
    let mut add = |all: &[&str]| words.extend(all.iter().map(|&word| word.to_owned()));
    add(&["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
    add(&["--unshare-cgroup-try", "--hostname", "sandbox"]);
    if home.user.is_none() {
        add(&["--unshare-user"]);
    } else {
        // Root needs no user namespace for the mounts; the stage makes one when it has become the program's user. Until then it
        // keeps what that takes.
        add(&["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]);
    }
    if !spec.network {
        add(&["--unshare-net"]);
    }
    for path in &system.folders {
        add(&["--ro-bind", path, path]);
    }
    for (path, target) in &system.links {
        add(&["--symlink", &text(target), path]);
    }
    add(&["--proc", "/proc", "--dev", "/dev"]);
    let tmp = spec.limits.tmp_bytes.to_string();
    for path in ["/tmp", "/dev/shm"] {
        add(&["--perms", "1777", "--size", &tmp, "--tmpfs", path]);
    }
    // The outer ones first: they would cover what is in them. The home last: nothing that was opened may stand in its place.
    let mut opened: Vec<_> = spec.open.iter().map(|opened| (opened.path.as_path(), opened.write)).collect();
    opened.sort_unstable();
    let network: &[&str] = if spec.network { &ETC_NETWORK } else { &[] };
    let parts = ETC.iter().chain(network).map(Path::new).chain([Path::new(HOME)]);
    let seen: Vec<&Path> = opened.iter().map(|(path, _)| *path).chain(parts).collect();
    for folder in between(&seen) {
        add(&["--perms", "0755", "--dir", &text(folder)]);
    }
    for path in ETC.iter().chain(network) {
        add(&["--ro-bind-try", path, path]);
    }
    for name in ["passwd", "group"] {
        add(&["--ro-bind", &text(&home.etc.join(name)), &format!("/etc/{name}")]);
    }
    for (path, write) in opened {
        add(&[if write { "--bind" } else { "--ro-bind" }, &text(path), &text(path)]);
    }
    add(&["--bind", &text(&home.path), HOME, "--ro-bind", helper, HELPER]);
    // What bubblewrap made for its own use is memory that could be filled.
    add(&["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]);
    words
}

/// Folders on the way to what is opened. Bubblewrap would make them for root alone.
fn between<'p>(opened: &[&'p Path]) -> BTreeSet<&'p Path> {
    let within = |path: &Path| opened.iter().any(|opened| path.starts_with(opened));
    let above = opened.iter().flat_map(|path| path.ancestors().skip(1));
    above.filter(|path| path.parent().is_some() && !within(path)).collect()
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::{Limits, Opened};

    fn spec() -> Spec {
        Spec {
            program: "npx".into(),
            args: vec!["-y".into(), "a server".into()],
            env: vec![("KEY".into(), SecretString::from("planted"))],
            name: "s".into(),
            open: vec![
                Opened { path: "/data/ro".into(), write: false },
                Opened { path: "/data/rw".into(), write: true },
            ],
            network: false,
            trusted: false,
            limits: Limits::default(),
        }
    }

    fn joined(spec: &Spec, user: Option<u32>) -> String {
        let home = Home { path: "/h/s".into(), user, etc: "/h/etc/1".into() };
        let system = System { links: vec![("/bin", "usr/bin".into())], folders: vec!["/usr", "/lib64"] };
        words(spec, &home, &system, &Config::new("/h".into()), "/usr/bin/gatehouse").join(" ")
    }

    #[test]
    fn a_program_gets_namespaces_of_its_own_and_sees_only_what_was_opened() {
        let words = joined(&spec(), None);
        for part in [
            "--unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try",
            "--unshare-user --unshare-net",
            "--ro-bind /usr /usr --ro-bind /lib64 /lib64 --symlink usr/bin /bin",
            &format!("--ro-bind /data/ro /data/ro --bind /data/rw /data/rw --bind /h/s {HOME}"),
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(!words.contains("planted") && !words.contains("resolv.conf"), "{words}");
        let networked = joined(&Spec { network: true, ..spec() }, Some(61_201));
        assert!(!networked.contains("--unshare-net") && networked.contains("/etc/resolv.conf"), "{networked}");
        assert!(networked.contains("--cap-drop ALL") && !networked.contains("--unshare-user"), "{networked}");
    }
}
