//! A folder with homes, programs and things that are nobody's business.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use gatehouse_stdio::{Allowed, Config, HOME, Limits, Opened, Process, Sandboxes, Spec, StartError, Tier};
use secrecy::SecretString;
use tokio::{io::AsyncReadExt as _, time::timeout};

/// Longest time for anything here.
pub(crate) const WITHIN: Duration = Duration::from_mins(1);
/// Where the programs are, when they are not where they were built.
pub(crate) const PROGRAMS: &str = "GATEHOUSE_TEST_PROGRAMS";

static WORLDS: AtomicU32 = AtomicU32::new(0);

pub(crate) struct World {
    pub(crate) root: PathBuf,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) tier: Tier,
}

impl World {
    pub(crate) fn new(tier: Tier) -> Self {
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("gatehouse-stdio-{}-{number}", std::process::id()));
        let root = {
            fs::create_dir(&root).expect("a folder");
            fs::canonicalize(root).expect("the folder")
        };
        open_up(&root, 0o755);
        for name in ["programs", "outside"] {
            fs::create_dir(root.join(name)).expect("a folder");
            // What is outside is open to everyone: if it is not reached, then because of the sandbox.
            open_up(&root.join(name), if name == "outside" { 0o777 } else { 0o755 });
        }
        fs::write(root.join("outside/secret"), "a secret").expect("a file");
        open_up(&root.join("outside/secret"), 0o666);
        for name in ["gatehouse-stdio-helper", "gatehouse-stdio-hostile"] {
            let copy = root.join("programs").join(name);
            fs::copy(program(name), &copy).expect("a copy");
            open_up(&copy, 0o755);
        }
        let mut config = Config::new(root.join("stdio"));
        config.helper = vec![root.join("programs/gatehouse-stdio-helper")];
        config.allowed = if tier == Tier::Weak { Allowed::WeakOnly } else { Allowed::Strong };
        config.closed = vec![root.join("closed")];
        Self { sandboxes: Sandboxes::new(config), root, tier }
    }

    /// The hostile program in its home, with nothing opened but the folder that it is in.
    pub(crate) fn spec(&self, words: &[&str]) -> Spec {
        Spec {
            program: self.path("programs/gatehouse-stdio-hostile"),
            args: words.iter().map(|&word| word.to_owned()).collect(),
            env: vec![("KEY".into(), SecretString::from("planted-secret"))],
            name: "own".into(),
            open: vec![Opened { path: self.root.join("programs"), write: false }],
            network: false,
            trusted: self.tier == Tier::Trusted,
            limits: Limits::default(),
        }
    }

    pub(crate) fn path(&self, below: &str) -> String {
        self.root.join(below).to_string_lossy().into_owned()
    }

    /// Something in the home of the hostile program, as that sees it.
    pub(crate) fn own(&self, below: &str) -> String {
        if self.tier == Tier::Strong {
            format!("{HOME}/{below}")
        } else {
            self.path(&format!("stdio/homes/own/{below}"))
        }
    }

    pub(crate) async fn start(&self, words: &[&str]) -> Process {
        self.start_spec(self.spec(words)).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub(crate) async fn start_spec(&self, spec: Spec) -> Result<Process, StartError> {
        let process = self.sandboxes.start(spec).await?;
        assert_eq!(process.tier(), self.tier);
        Ok(process)
    }

    /// What one attempt told.
    pub(crate) async fn attempt(&self, words: &[&str]) -> String {
        self.attempt_spec(self.spec(words)).await
    }

    pub(crate) async fn attempt_spec(&self, spec: Spec) -> String {
        let process = self.start_spec(spec).await.unwrap_or_else(|error| panic!("{error}"));
        let said = read_all(&process).await;
        let exit = timeout(WITHIN, process.ended()).await.expect("it ends");
        if said.is_empty() { format!("{exit} {:?}", process.stderr_tail()) } else { said }
    }

    #[track_caller]
    pub(crate) fn denied(&self, said: &str) {
        assert!(said.starts_with("denied"), "{:?}: {said}", self.tier);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.root);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

pub(crate) async fn read_all(process: &Process) -> String {
    let mut said = String::new();
    let (input, mut output) = process.take_pipes().expect("its pipes");
    timeout(WITHIN, output.read_to_string(&mut said)).await.expect("the output ends").expect("text");
    drop(input);
    said.trim().to_owned()
}

/// Reads one line.
pub(crate) async fn line(output: &mut gatehouse_stdio::Stdout) -> String {
    let mut said = Vec::new();
    while !said.ends_with(b"\n") {
        let byte = timeout(WITHIN, output.read_u8()).await.expect("a line in time");
        said.push(byte.unwrap_or_else(|error| panic!("{error} after {}", String::from_utf8_lossy(&said))));
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}

pub(crate) fn open_up(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode is set");
}

pub(crate) fn program(name: &str) -> PathBuf {
    match (std::env::var_os(PROGRAMS), name) {
        (Some(folder), _) => PathBuf::from(folder).join(name),
        (None, "gatehouse-stdio-helper") => env!("CARGO_BIN_EXE_gatehouse-stdio-helper").into(),
        (None, _) => env!("CARGO_BIN_EXE_gatehouse-stdio-hostile").into(),
    }
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Every process of the machine whose command holds a word.
pub(crate) fn with_word(word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        is_alive(*pid) && String::from_utf8_lossy(&command).contains(word)
    };
    pids.filter(holds).collect()
}

/// Waits until something is so. It is asked again and again; it fails when that takes too long.
pub(crate) async fn until(what: &str, is: impl Fn() -> bool) {
    let asking = async {
        let mut often = tokio::time::interval(Duration::from_millis(20));
        while !is() {
            often.tick().await;
        }
    };
    timeout(WITHIN, asking).await.unwrap_or_else(|_| panic!("{what}: not in time"));
}
