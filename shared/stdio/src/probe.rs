//! Which sandboxes can be had on this machine: by starting something in them.

use std::fmt;

use crate::{Config, Limits, Spec, StartError, Status, Tier, helper::landlock, process};

/// The home of what is started to see whether a sandbox can be had.
const CHECKED: &str = "gatehouse-check";
/// Below this version of its interface Landlock does not stop a program from emptying files.
const OLDEST_LANDLOCK: u32 = 3;

/// What can be had, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// [`Tier::Strong`]; else what is missing and what to do.
    pub strong: Result<(), String>,
    /// [`Tier::Weak`], with the version of the kernel's Landlock; else what is missing and what to do.
    pub weak: Result<u32, String>,
}

impl fmt::Display for Tiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.strong {
            Ok(()) => f.write_str("Bubblewrap: works. ")?,
            Err(words) => write!(f, "Bubblewrap: {words}. ")?,
        }
        match &self.weak {
            Ok(version) => write!(f, "Landlock: works, version {version}."),
            Err(words) => write!(f, "Landlock: {words}."),
        }
    }
}

/// What was found to work.
#[derive(Debug, Default)]
pub(crate) struct Found {
    strong: bool,
    weak: Option<u32>,
}

impl Found {
    pub(crate) async fn tiers(&mut self, config: &Config) -> Tiers {
        Tiers { strong: self.strong(config).await, weak: self.weak(config).await }
    }

    pub(crate) async fn strong(&mut self, config: &Config) -> Result<(), String> {
        if !self.strong {
            run(config, Tier::Strong).await.map_err(|words| advice(&words))?;
            self.strong = true;
        }
        Ok(())
    }

    pub(crate) async fn weak(&mut self, config: &Config) -> Result<u32, String> {
        if let Some(version) = self.weak {
            return Ok(version);
        }
        let version = landlock::version();
        if version == 0 {
            return Err(
                "the kernel does not offer it; Linux 6.2 or newer with `landlock` in its `lsm=` list does".into()
            );
        }
        if version < OLDEST_LANDLOCK {
            return Err(format!(
                "the kernel offers version {version} and {OLDEST_LANDLOCK} is needed: Linux 6.2 or newer"
            ));
        }
        run(config, Tier::Weak).await?;
        self.weak = Some(version);
        Ok(version)
    }
}

/// Starts something that ends at once.
async fn run(config: &Config, tier: Tier) -> Result<(), String> {
    let done = started(config, tier).await;
    let _ = tokio::fs::remove_dir_all(config.homes().join(CHECKED)).await;
    done
}

async fn started(config: &Config, tier: Tier) -> Result<(), String> {
    let spec = Spec {
        program: "true".into(),
        args: Vec::new(),
        env: Vec::new(),
        name: CHECKED.into(),
        open: Vec::new(),
        network: false,
        trusted: false,
        limits: Limits::default(),
    };
    let process = match process::start(config, &spec, tier).await {
        Ok(process) => process,
        Err(error @ (StartError::Home(..) | StartError::Supervisor(_))) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            return Err(format!("{error}: {cause}"));
        }
        Err(error) => return Err(error.to_string()),
    };
    drop(process.take_pipes());
    let exit = process.ended().await;
    if exit.status == Status::Code(0) { Ok(()) } else { Err(format!("a program in it failed: {exit}")) }
}

/// What to do about what bubblewrap said.
fn advice(words: &str) -> String {
    let advice = if words.contains("was not found") {
        "install the package `bubblewrap`"
    } else if words.contains("mount proc") || words.contains("mount devpts") {
        "in Kubernetes set `procMount: Unmasked` (with `hostUsers: false`); in Docker `--security-opt systempaths=unconfined`"
    } else if ["namespace", "uid map", "Operation not permitted", "Permission denied"]
        .iter()
        .any(|part| words.contains(part))
    {
        "user namespaces are not allowed: see docs/stdio-servers.md for the kernel's settings and the pod's seccomp profile"
    } else {
        "see docs/stdio-servers.md"
    };
    format!("{words} ({advice})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bubblewrap_says_comes_with_what_to_do() {
        for (said, advised) in [
            ("the sandbox's program bwrap was not found", "install the package"),
            ("it ended: bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "procMount"),
            ("it ended: bwrap: No permissions to create new namespace", "user namespaces are not allowed"),
            ("bwrap: Creating new namespace failed: Operation not permitted", "user namespaces are not allowed"),
        ] {
            assert!(advice(said).contains(advised), "{}", advice(said));
        }
    }
}
