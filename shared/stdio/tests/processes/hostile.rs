//! A program that tries to get at what is not its own.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _, process::Command};

use gatehouse_stdio::{Sandboxes, Spec};
use secrecy::SecretString;
use tokio::net::{UdpSocket, UnixListener};

use crate::{Folder, Running, opened, perl, printed, processes_with};

/// Prints `no` for what fails and `YES` for what works.
const TRY: &str = r#"use Socket; use IO::Socket::UNIX; sub try { my ($what, $code) = @_; my $done = eval { $code->() }; print "$what: ", ($done ? "YES" : "no"), "\n"; }"#;

fn hostile(name: &str, tries: &str) -> Spec {
    perl(name, &format!("{TRY} {tries}"))
}

fn assert_got_nothing(printed: &str, tries: usize) {
    assert_eq!(printed.lines().count(), tries, "{printed}");
    assert!(printed.lines().all(|line| line.ends_with(": no")), "{printed}");
}

#[tokio::test]
async fn it_reads_nothing_that_was_not_opened() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let secret = folder.0.join("secret");
    fs::write(&secret, "x").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    // Another server's home, with a file that everybody may read.
    let mut other = perl(
        "other",
        "open(F, '>', '/server/token'); print F 'x'; close F; chmod 0644, '/server/token'; print \"ready\\n\"; <STDIN>;",
    );
    other.env = vec![("OTHER_SECRET".into(), SecretString::from("planted-other"))];
    let mut other = Running::start(&sandboxes, other).await;
    assert_eq!(other.line().await, "ready");
    let (gateway, neighbour) = (std::process::id(), other.process.pid());
    let tries = format!(
        r#"
        try("shadow", sub {{ open(my $f, '<', '/etc/shadow') }});
        try("secret", sub {{ open(my $f, '<', '{secret}') }});
        try("other home", sub {{ open(my $f, '<', '{homes}/homes/other/token') }});
        try("root", sub {{ opendir(my $d, '/root') }});
        try("home", sub {{ opendir(my $d, '/home') }});
        try("var", sub {{ opendir(my $d, '/var/lib') }});
        try("sys", sub {{ opendir(my $d, '/sys/kernel') }});
        try("gateway", sub {{ -e "/proc/{gateway}/environ" }});
        try("neighbour", sub {{ -e "/proc/{neighbour}/environ" }});
        try("first", sub {{ open(my $f, '<', '/proc/1/environ') && length(join '', <$f>) }});
        try("memory", sub {{ -e "/proc/{gateway}/mem" }});
        try("disk", sub {{ opendir(my $d, '/dev/disk') }});
        try("kernel log", sub {{ open(my $f, '<', '/dev/kmsg') }});
        try("environment", sub {{ grep {{ /CARGO|DATABASE|GATEHOUSE/ }} keys %ENV }});
        "#,
        secret = secret.display(),
        homes = folder.0.join("stdio").display(),
    );
    assert_got_nothing(&printed(&sandboxes, hostile("evil", &tries)).await, 14);
    let mut open = hostile("evil", &format!(r#"try("secret", sub {{ open(my $f, '<', '{}') }});"#, secret.display()));
    open.open = vec![opened(&secret, false)];
    assert_eq!(printed(&sandboxes, open).await, "secret: YES", "the test can tell: what was opened is read");
}

#[tokio::test]
async fn it_writes_nowhere_but_at_home_and_in_what_was_opened_for_it() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let (read, write) = (folder.0.join("read"), folder.0.join("write"));
    for path in [&read, &write] {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let tries = format!(
        r#"
        for my $place ('/', '/usr', '/usr/bin', '/etc', '/dev', '/home', '/opt', '/var/tmp', '{read}') {{
            try($place, sub {{ open(my $f, '>', "$place/planted") }});
        }}
        try("device", sub {{ open(my $f, '>', '/dev/sda') || open(my $f, '>', '/dev/vda') }});
        try("node", sub {{ !system('mknod /server/disk b 254 0 2>/dev/null') }});
        try("mount", sub {{ !system('mount -t tmpfs none /server 2>/dev/null') }});
        try("rights", sub {{ !system('setpriv --reuid=0 --clear-groups true 2>/dev/null') }});
        try("sysctl", sub {{ open(my $f, '>', '/proc/sys/kernel/core_pattern') }});
        "#,
        read = read.display(),
    );
    let mut evil = hostile("evil", &tries);
    evil.open = vec![opened(&read, false), opened(&write, true)];
    assert_got_nothing(&printed(&sandboxes, evil).await, 14);
    let allowed = format!(
        r#"for my $place ('/server', '/tmp', '/dev/shm', '{}') {{ try($place, sub {{ open(my $f, '>', "$place/mine") }}); }}"#,
        write.display()
    );
    let mut good = hostile("good", &allowed);
    good.open = vec![opened(&write, true)];
    let printed = printed(&sandboxes, good).await;
    assert!(printed.lines().count() == 4 && printed.lines().all(|line| line.ends_with("YES")), "{printed}");
    assert!(write.join("mine").exists() && folder.0.join("stdio/homes/good/mine").exists());
    assert!(!folder.0.join("planted").exists());
}

#[tokio::test]
async fn it_reaches_no_socket_of_this_machine_without_a_network() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let path = folder.0.join("socket");
    let _unix = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let name = format!("gatehouse-test-{}", tcp.local_addr().unwrap().port());
    let _abstract = UnixListener::from_std({
        use std::os::linux::net::SocketAddrExt as _;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    })
    .unwrap();
    let tries = format!(
        r#"
        sub udp {{ socket(my $s, AF_INET, SOCK_DGRAM, 0) or return 0; send($s, 'x', 0, sockaddr_in($_[0], inet_aton('127.0.0.1'))) }}
        sub tcp {{ socket(my $s, AF_INET, SOCK_STREAM, 0) or return 0; connect($s, sockaddr_in($_[1], inet_aton($_[0]))) }}
        try("tcp", sub {{ tcp('127.0.0.1', {tcp}) }});
        try("elsewhere", sub {{ tcp('192.0.2.1', 80) }});
        try("udp", sub {{ udp({udp}) && 0 }});
        try("unix", sub {{ IO::Socket::UNIX->new(Peer => '{unix}') }});
        try("abstract", sub {{ IO::Socket::UNIX->new(Peer => "\0{name}") }});
        "#,
        tcp = tcp.local_addr().unwrap().port(),
        udp = udp.local_addr().unwrap().port(),
        unix = path.display(),
    );
    assert_got_nothing(&printed(&sandboxes, hostile("evil", &tries)).await, 5);
    assert!(udp.try_recv(&mut [0]).is_err(), "nothing came");
    // The test can tell: with the network opened the same program reaches what listens here.
    let networked = Spec { network: true, ..hostile("net", &tries) };
    let printed = printed(&sandboxes, networked).await;
    assert!(printed.contains("tcp: YES") && printed.contains("abstract: YES"), "{printed}");
    assert!(printed.contains("unix: no"), "its path is not there: {printed}");
}

#[tokio::test]
async fn it_signals_nobody_and_traces_nobody() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    let mark = format!("victim-{}", std::process::id());
    let mut victim = Command::new("/usr/bin/perl").args(["-e", "sleep 1000", &mark]).spawn().unwrap();
    let mut neighbour = Running::start(&sandboxes, perl("other", "print \"ready\\n\"; <STDIN>;")).await;
    assert_eq!(neighbour.line().await, "ready");
    let tries = format!(
        r#"
        try("gateway", sub {{ kill(0, {gateway}) }});
        try("victim", sub {{ kill(9, {victim}) }});
        try("neighbour", sub {{ kill(9, {neighbour}) }});
        try("all", sub {{ kill(9, -1) && 0 }});
        try("group", sub {{ kill(0, -{gateway}) }});
        "#,
        gateway = std::process::id(),
        victim = victim.id(),
        neighbour = neighbour.process.pid(),
    );
    // The first process inside is not its own: it lives on after `kill -1`, and so does the program, which that spares.
    assert_got_nothing(&printed(&sandboxes, hostile("evil", &tries)).await, 5);
    assert_eq!(victim.try_wait().unwrap(), None);
    assert_eq!(neighbour.process.exit(), None);
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(processes_with(&mark).is_empty());
}

#[tokio::test]
async fn a_program_that_asks_for_what_is_not_there_or_has_no_sandbox_is_not_started() {
    let folder = Folder::new();
    let sandboxes = Sandboxes::new(folder.0.join("stdio"));
    sandboxes.check().await.unwrap();
    let mut spec = perl("s", "print 1;");
    spec.open = vec![opened(&folder.0.join("gone"), false)];
    let refused = sandboxes.start(spec).await.unwrap_err().to_string();
    assert!(refused.contains("/gone is not there"), "{refused}");
}
