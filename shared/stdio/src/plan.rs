//! Pure: what is to happen, as the owner decides it and the supervisor and the stage carry it out.

use std::path::{Component, Path};

use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

use crate::{
    Config, HOME, Limits, Opened, Spec, StartError, Tier,
    home::Home,
    system::{ETC, ETC_NETWORK, PATH, System},
    wrap,
};

/// Longest name of a home.
const NAME_CHARS: usize = 64;
/// Folders that are never opened as a whole.
const NEVER: [&str; 6] = ["/", "/dev", "/etc", "/proc", "/run", "/sys"];

/// For the supervisor. It holds secrets: neither it nor the stage's part can be printed.
#[derive(Serialize, Deserialize)]
pub(crate) struct Plan {
    /// What stands before the stage: bubblewrap, or nothing.
    pub(crate) wrapper: Vec<String>,
    /// The program of the stage, and what stands before the name of the role.
    pub(crate) helper: String,
    pub(crate) helper_args: Vec<String>,
    /// What the stage does.
    pub(crate) stage: Stage,
    /// What the supervisor measures.
    pub(crate) limits: Limits,
    /// Whose size it measures.
    pub(crate) home: String,
}

/// For the stage: what it gives up, and what it becomes.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) folder: String,
    pub(crate) tier: Tier,
    /// The user that it becomes.
    pub(crate) user: Option<u32>,
    pub(crate) network: bool,
    pub(crate) limits: Limits,
    /// What Landlock leaves open, and whether for writing.
    pub(crate) open: Vec<(String, bool)>,
    /// Those of them without which the program cannot do.
    pub(crate) needed: Vec<String>,
}

impl Plan {
    /// Everything, in the order in which it is seen from outside.
    pub(crate) fn new(spec: &Spec, tier: Tier, home: &Home, config: &Config, mut helper: Vec<String>) -> Self {
        let wrapper = match tier {
            Tier::Strong => wrap::words(spec, home, &System::look(), config, &helper[0]),
            Tier::Weak | Tier::Trusted => Vec::new(),
        };
        let helper_args = helper.split_off(1);
        let helper = if tier == Tier::Strong { wrap::HELPER.to_owned() } else { helper.swap_remove(0) };
        let (path, seen) = (text(&home.path), if tier == Tier::Strong { HOME.to_owned() } else { text(&home.path) });
        let stage = Stage {
            program: spec.program.clone(),
            args: spec.args.clone(),
            env: environment(spec, tier, &seen),
            folder: seen,
            tier,
            user: home.user.filter(|_| tier != Tier::Trusted),
            network: spec.network,
            limits: spec.limits,
            open: if tier == Tier::Weak { opened(spec, &path, &System::look()) } else { Vec::new() },
            needed: spec.open.iter().map(|opened| text(&opened.path)).chain([path.clone()]).collect(),
        };
        Self { wrapper, helper, helper_args, stage, limits: spec.limits, home: path }
    }
}

/// A clean environment, and what was configured.
fn environment(spec: &Spec, tier: Tier, home: &str) -> Vec<(String, String)> {
    // Only bubblewrap has a folder for temporary files that is the program's own.
    let temporary = if tier == Tier::Strong { "/tmp".to_owned() } else { home.to_owned() + "/tmp" };
    let usual = [("PATH", PATH), ("HOME", home), ("LANG", "C.UTF-8"), ("USER", "server"), ("TMPDIR", &temporary)];
    let replaced = |name: &str| spec.env.iter().any(|(own, _)| own == name);
    let usual = usual.into_iter().filter(|(name, _)| !replaced(name)).map(|(name, value)| (name.into(), value.into()));
    usual.chain(spec.env.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))).collect()
}

/// What Landlock leaves open.
fn opened(spec: &Spec, home: &str, system: &System) -> Vec<(String, bool)> {
    let links = system.links.iter().map(|(path, _)| *path);
    let network: &[&str] = if spec.network { &ETC_NETWORK } else { &[] };
    let reading = system.folders.iter().copied().chain(links).chain(ETC).chain(network.iter().copied());
    // A process may look at itself. Not at its children: rules hold for folders that are there when it starts.
    let about = ["/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems"];
    let devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
    let mut all: Vec<(String, bool)> = reading.chain(about).map(|path| (path.to_owned(), false)).collect();
    all.extend(devices.map(|path| (path.to_owned(), true)));
    all.push((home.to_owned(), true));
    all.extend(spec.open.iter().map(|opened| (text(&opened.path), opened.write)));
    all
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn refused<T>(words: String) -> Result<T, StartError> {
    Err(StartError::Refused(words))
}

/// Refuses what cannot be, before anything is touched.
pub(crate) fn check(spec: &Spec, config: &Config) -> Result<(), StartError> {
    if spec.program.is_empty() || spec.program.contains('\0') || spec.args.iter().any(|arg| arg.contains('\0')) {
        return refused("the program is empty, or its command holds a zero byte: set another command".into());
    }
    for (name, value) in &spec.env {
        let good = !name.is_empty() && !name.contains(['=', '\0']) && !value.expose_secret().contains('\0');
        if !good {
            return refused(format!(
                "the environment variable {name:?} has a name or a value that no process can have"
            ));
        }
    }
    check_home(&spec.name, config)?;
    if spec.trusted {
        return Ok(());
    }
    spec.open.iter().try_for_each(|opened| check_opened(opened, config))
}

/// A home has a plain name, and is below a folder that has one, too.
pub(crate) fn check_home(name: &str, config: &Config) -> Result<(), StartError> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_CHARS || !name.chars().all(good) {
        return refused(format!("{name:?} cannot be the name of a home"));
    }
    if !config.root.is_absolute() || config.root.to_str().is_none() {
        return refused(format!("the folder of homes {} must be an absolute path in UTF-8", config.root.display()));
    }
    Ok(())
}

fn check_opened(opened: &Opened, config: &Config) -> Result<(), StartError> {
    let path = &opened.path;
    let shown = path.display();
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !plain || path.to_str().is_none() {
        return refused(format!("the opened path {shown} must be absolute, without `..`, in UTF-8"));
    }
    let real = match std::fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) => {
            return refused(format!("the opened path {shown} cannot be used ({error}): make it, or close it"));
        }
    };
    // A server that may write where a link lies could lead it anywhere before its next start.
    if real != *path {
        return refused(format!("the opened path {shown} is or passes a link: open {} itself", real.display()));
    }
    if real.starts_with(HOME) || Path::new(HOME).starts_with(&real) {
        return refused(format!("{shown} cannot be opened: the server's home is there"));
    }
    if NEVER.iter().any(|never| real == Path::new(never)) {
        return refused(format!("{shown} cannot be opened as a whole: open what the server needs of it"));
    }
    let closed = config.closed.iter().chain([&config.root]);
    for closed in closed.map(|closed| std::fs::canonicalize(closed).unwrap_or_else(|_| closed.clone())) {
        if real.starts_with(&closed) || closed.starts_with(&real) {
            return refused(format!("{shown} cannot be opened: Gatehouse's own files are there"));
        }
    }
    Ok(())
}
