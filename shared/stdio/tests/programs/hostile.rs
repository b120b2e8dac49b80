//! A server that tries to get out. Each command is one attempt; it tells `got` and what it got, or `denied` and why.

#![expect(clippy::print_stdout, reason = "it is a program that tells what it did")]

use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram, UnixStream},
    },
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::{Pid, Signal, kill_process, setsid},
    thread::UnshareFlags,
};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match attempt(&words) {
        Ok(got) => println!("got {got}"),
        Err(error) => println!("denied {error}"),
    }
    ExitCode::SUCCESS
}

fn attempt(words: &[&str]) -> io::Result<String> {
    match *words {
        ["read", path] => fs::read(path).map(|found| format!("{} bytes", found.len())),
        ["list", path] => Ok(format!("{} entries", fs::read_dir(path)?.count())),
        ["write", path] => fs::write(path, "hostile").map(|()| "written".into()),
        ["append", path] => {
            fs::OpenOptions::new().append(true).open(path)?.write_all(b"hostile").map(|()| "written".into())
        }
        ["stat", path] => fs::metadata(path).map(|found| format!("{} bytes", found.len())),
        ["chmod", path] => {
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).map(|()| "changed".into())
        }
        ["remove", path] => fs::remove_file(path).map(|()| "removed".into()),
        ["tcp", address] => TcpStream::connect(address)?.write_all(b"hostile").map(|()| "sent".into()),
        ["listen"] => TcpListener::bind("127.0.0.1:0").map(|_| "listening".into()),
        ["udp", address] => UdpSocket::bind("127.0.0.1:0")?.send_to(b"hostile", address).map(|_| "sent".into()),
        ["unix", path] => UnixStream::connect(path)?.write_all(b"hostile").map(|()| "sent".into()),
        ["abstract", name] => {
            let address = SocketAddr::from_abstract_name(name)?;
            UnixDatagram::unbound()?.send_to_addr(b"hostile", &address).map(|_| "sent".into())
        }
        ["signal", pid] => {
            let pid = pid.parse().ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
            Ok(kill_process(pid, Signal::USR1).map(|()| "sent".into())?)
        }
        ["userns"] => user_namespace(),
        ["environment"] => Ok(env::vars().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")),
        ["status"] => fs::read_to_string("/proc/self/status").map(|text| text.replace('\n', ";")),
        ["fill-memory"] => fill_memory(),
        ["fill-memfd"] => fill_memfd(),
        ["fill-disk", folder] => fill_disk(Path::new(folder)),
        ["fill-file", path] => fill_file(Path::new(path)),
        ["open-files"] => open_files(),
        ["fork"] => fork(),
        ["orphan", seconds] => orphan(seconds),
        ["spin"] => loop {
            std::hint::spin_loop();
        },
        ["echo"] => echo(),
        ["flood"] => flood(),
        ["deaf"] => deaf(),
        _ => Err(io::Error::other(format!("no attempt {words:?}"))),
    }
}

#[expect(deprecated, reason = "this process has one thread")]
fn user_namespace() -> io::Result<String> {
    Ok(rustix::thread::unshare(UnshareFlags::NEWUSER).map(|()| "a user namespace".into())?)
}

fn fill_memory() -> io::Result<String> {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        held.push(vec![u8::try_from(held.len() % 251).unwrap_or(1) + 1; 1 << 20]);
        if held.len() > 8_192 {
            return Ok("8 GiB".into());
        }
    }
}

/// Memory that is in no process's address space.
fn fill_memfd() -> io::Result<String> {
    let block = vec![7; 1 << 20];
    let mut held = Vec::new();
    for number in 0..8_192 {
        let mut file = fs::File::from(memfd_create(format!("fill-{number}"), MemfdFlags::CLOEXEC)?);
        file.write_all(&block)?;
        held.push(file);
    }
    Ok("8 GiB".into())
}

/// Many files, none of them too large.
fn fill_disk(folder: &Path) -> io::Result<String> {
    let block = vec![7; 1 << 20];
    for number in 0..8_192 {
        fs::write(folder.join(format!("fill-{number}")), &block)?;
    }
    Ok("8 GiB".into())
}

fn fill_file(path: &Path) -> io::Result<String> {
    let mut file = fs::File::create(path)?;
    let block = vec![7; 1 << 20];
    for _ in 0..8_192 {
        file.write_all(&block)?;
    }
    Ok("8 GiB".into())
}

fn open_files() -> io::Result<String> {
    let mut held = Vec::new();
    for _ in 0..100_000 {
        held.push(fs::File::open("/dev/null")?);
    }
    Ok("100000 files".into())
}

/// Children that stay, as many as it gets. Told before they end.
fn fork() -> io::Result<String> {
    let mut held = Vec::new();
    let own = env::current_exe()?;
    for _ in 0..20_000 {
        match Command::new(&own).arg("deaf").stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            Ok(child) => held.push(child),
            Err(error) => {
                println!("{} children", held.len());
                return Err(error);
            }
        }
    }
    Ok("20000 children".into())
}

/// A grandchild in a session of its own, whose parent has gone, and that lets nothing end it.
fn orphan(seconds: &str) -> io::Result<String> {
    if env::var_os("GENERATION").is_none() {
        let own = env::current_exe()?;
        let mut child =
            Command::new(own).args(["orphan", seconds]).env("GENERATION", "2").stdout(Stdio::null()).spawn()?;
        let status = child.wait()?;
        println!("orphaned {}", status.code().unwrap_or(-1));
        return echo();
    }
    setsid()?;
    let sleep = Command::new("sleep").arg(seconds).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    if let Err(error) = sleep {
        io::stderr().write_all(error.to_string().as_bytes())?;
        std::process::exit(1);
    }
    Ok("orphaned".into())
}

fn echo() -> io::Result<String> {
    println!("ready");
    let mut text = String::new();
    loop {
        text.clear();
        if io::stdin().read_line(&mut text)? == 0 {
            return Ok("the end of the input".into());
        }
        print!("{text}");
        io::stdout().flush()?;
    }
}

/// Writes to stderr without end, then shows that it was not held up.
fn flood() -> io::Result<String> {
    let line = "x".repeat(1_000) + "\n";
    for _ in 0..20_000 {
        io::stderr().write_all(line.as_bytes())?;
    }
    io::stderr().write_all(format!("the key is {}\n", env::var("KEY").unwrap_or_default()).as_bytes())?;
    println!("flooded");
    echo()
}

/// Does not listen to the end of its input.
fn deaf() -> io::Result<String> {
    let mut byte = [0];
    println!("ready");
    let (reader, _writer) = io::pipe()?;
    (&reader).read_exact(&mut byte)?;
    Ok("woken".into())
}
