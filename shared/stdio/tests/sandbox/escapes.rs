//! What the hostile program tries, and does not get.

use std::{
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram, UnixListener},
    },
};

use gatehouse_stdio::{Opened, Spec, Tier};

use crate::world::{World, open_up};

const SANDBOXES: [Tier; 2] = [Tier::Strong, Tier::Weak];

#[tokio::test]
async fn files_outside_are_neither_read_nor_listed_nor_written_nor_removed() {
    for tier in SANDBOXES {
        let world = World::new(tier);
        let secret = world.path("outside/secret");
        world.denied(&world.attempt(&["read", "/etc/shadow"]).await);
        world.denied(&world.attempt(&["read", &secret]).await);
        world.denied(&world.attempt(&["list", &world.path("outside")]).await);
        world.denied(&world.attempt(&["list", "/root"]).await);
        world.denied(&world.attempt(&["list", "/var/lib"]).await);
        world.denied(&world.attempt(&["write", &world.path("outside/new")]).await);
        world.denied(&world.attempt(&["append", &secret]).await);
        world.denied(&world.attempt(&["remove", &secret]).await);
        for path in ["/usr/hostile", "/etc/hostile", "/hostile", "/dev/hostile", "/proc/sys/kernel/hostname"] {
            world.denied(&world.attempt(&["write", path]).await);
        }
        assert_eq!(std::fs::read_to_string(&secret).expect("it is there"), "a secret");
    }
    // What every program needs is there, and holds nobody else.
    let strong = World::new(Tier::Strong);
    assert!(strong.attempt(&["read", "/etc/passwd"]).await.starts_with("got"));
    for tier in SANDBOXES {
        let world = World::new(tier);
        assert!(world.attempt(&["list", "/etc/ssl/certs"]).await.starts_with("got"), "{tier:?}");
        let networked = Spec { network: true, ..world.spec(&["read", "/etc/hosts"]) };
        assert!(world.attempt_spec(networked).await.starts_with("got"), "{tier:?}");
    }
    let trusted = World::new(Tier::Trusted);
    assert_eq!(trusted.attempt(&["read", &trusted.path("outside/secret")]).await, "got 8 bytes");
}

#[tokio::test]
async fn a_home_of_another_server_is_closed_and_ones_own_is_kept() {
    for tier in SANDBOXES {
        let world = World::new(tier);
        let (own, other) = (world.own("kept"), world.path("stdio/homes/other/kept"));
        let there = if tier == Tier::Strong { world.own("kept") } else { other.clone() };
        let spec = Spec { name: "other".into(), ..world.spec(&["write", &there]) };
        assert_eq!(world.attempt_spec(spec).await, "got written");
        open_up(&world.root.join("stdio/homes/other"), 0o777);
        world.denied(&world.attempt(&["read", &other]).await);
        world.denied(&world.attempt(&["list", &world.path("stdio/homes/other")]).await);
        world.denied(&world.attempt(&["write", &world.path("stdio/homes/other/new")]).await);
        assert_eq!(world.attempt(&["write", &own]).await, "got written");
        assert_eq!(world.attempt(&["read", &own]).await, "got 7 bytes");
    }
}

#[tokio::test]
async fn only_what_was_opened_is_reached_and_written_only_when_opened_for_that() {
    for tier in SANDBOXES {
        let world = World::new(tier);
        let (secret, new) = (world.path("outside/secret"), world.path("outside/new"));
        let opened = |words: &[&str], write| {
            let mut spec = world.spec(words);
            spec.open.push(Opened { path: world.root.join("outside"), write });
            spec
        };
        assert_eq!(world.attempt_spec(opened(&["read", &secret], false)).await, "got 8 bytes");
        world.denied(&world.attempt_spec(opened(&["write", &new], false)).await);
        world.denied(&world.attempt_spec(opened(&["append", &secret], false)).await);
        assert_eq!(world.attempt_spec(opened(&["write", &new], true)).await, "got written");
        assert_eq!(std::fs::read_to_string(new).expect("it is there"), "hostile");
    }
}

#[tokio::test]
async fn nothing_of_the_gateway_is_seen_through_proc_and_the_environment_is_clean() {
    let own = std::process::id();
    for tier in [Tier::Strong, Tier::Weak, Tier::Trusted] {
        let world = World::new(tier);
        let environment = world.attempt(&["environment"]).await;
        assert!(environment.contains("KEY=planted-secret") && environment.contains("HOME="), "{environment}");
        assert!(!environment.contains("CARGO") && !environment.contains("DATABASE_URL"), "{environment}");
        if tier == Tier::Trusted {
            continue;
        }
        for file in ["environ", "maps", "cmdline", "root/etc/hostname", "cwd/Cargo.toml", "fd/0"] {
            world.denied(&world.attempt(&["read", &format!("/proc/{own}/{file}")]).await);
        }
        // The second tier has no view of processes of its own: that they are there cannot be hidden, all else can.
        world.denied(&world.attempt(&["list", &format!("/proc/{own}")]).await);
        let parent = world.attempt(&["status"]).await;
        assert!(parent.contains("CapEff:\t0000000000000000"), "{parent}");
        assert!(parent.contains("NoNewPrivs:\t1") && parent.contains("Seccomp:\t2"), "{parent}");
    }
}

#[tokio::test]
async fn sockets_of_the_machine_are_out_of_reach() {
    for tier in SANDBOXES {
        let world = World::new(tier);
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let path = world.path("outside/socket");
        let unix = UnixListener::bind(&path).expect("a socket");
        open_up(path.as_ref(), 0o777);
        let name = format!("gatehouse-stdio-{}-{tier:?}", std::process::id());
        let hidden =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name")).expect("a socket");
        for listener in [
            tcp.set_nonblocking(true),
            udp.set_nonblocking(true),
            unix.set_nonblocking(true),
            hidden.set_nonblocking(true),
        ] {
            listener.expect("it does not wait");
        }
        world.denied(&world.attempt(&["tcp", &tcp.local_addr().expect("its address").to_string()]).await);
        world.denied(&world.attempt(&["unix", &path]).await);
        world.denied(&world.attempt(&["abstract", &name]).await);
        let sent = world.attempt(&["udp", &udp.local_addr().expect("its address").to_string()]).await;
        // Within a network of its own it may send, and nobody is there.
        assert!(tier == Tier::Strong || sent.starts_with("denied"), "{sent}");
        let mut buffer = [0; 8];
        assert!(tcp.accept().is_err() && unix.accept().is_err(), "{tier:?}: somebody has connected");
        assert!(udp.recv(&mut buffer).is_err() && hidden.recv(&mut buffer).is_err(), "{tier:?}: something has arrived");
    }
}

#[tokio::test]
async fn a_network_that_was_opened_is_reached() {
    for tier in SANDBOXES {
        let world = World::new(tier);
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = tcp.local_addr().expect("its address").to_string();
        let spec = Spec { network: true, ..world.spec(&["tcp", &address]) };
        assert_eq!(world.attempt_spec(spec).await, "got sent");
        // Other sockets stay closed where nothing divides them.
        let path = world.path("outside/socket");
        let _unix = UnixListener::bind(&path).expect("a socket");
        open_up(path.as_ref(), 0o777);
        world.denied(&world.attempt_spec(Spec { network: true, ..world.spec(&["unix", &path]) }).await);
    }
}

#[tokio::test]
async fn nobody_outside_gets_a_signal_and_no_namespace_is_made() {
    for tier in SANDBOXES {
        let world = World::new(tier);
        let mut other = tokio::process::Command::new("sleep").arg("600").kill_on_drop(true).spawn().expect("a process");
        let pid = other.id().expect("it runs");
        world.denied(&world.attempt(&["signal", &pid.to_string()]).await);
        world.denied(&world.attempt(&["signal", &std::process::id().to_string()]).await);
        assert!(other.try_wait().expect("it is there").is_none(), "{tier:?}: it was ended");
        world.denied(&world.attempt(&["userns"]).await);
    }
}

/// What the documentation says of the weak tier: it is as open as this, and no more closed.
#[tokio::test]
async fn the_weak_sandbox_does_not_hide_that_files_exist_nor_keep_the_modes_of_its_users_files() {
    use std::os::unix::fs::MetadataExt as _;
    let strong = World::new(Tier::Strong);
    strong.denied(&strong.attempt(&["stat", &strong.path("outside/secret")]).await);
    strong.denied(&strong.attempt(&["chmod", &strong.path("outside/secret")]).await);
    let weak = World::new(Tier::Weak);
    let secret = weak.path("outside/secret");
    assert_eq!(weak.attempt(&["stat", &secret]).await, "got 8 bytes");
    let changed = weak.attempt(&["chmod", &secret]).await;
    // As root it has a user of its own, to whom nothing else belongs.
    let root = std::fs::metadata(&secret).expect("it is there").uid() == 0;
    assert!(changed.starts_with(if root { "denied" } else { "got changed" }), "{changed}");
}
