//! Landlock: which files can be reached, and no signals to others.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use crate::plan::Stage;

/// The newest version whose rights are used: it scopes signals and abstract sockets.
const NEWEST: u32 = 6;
/// The version that began to scope.
const SCOPES: u32 = 6;
/// The version that began to know the network.
const NETWORK: u32 = 4;

/// The version of the kernel's Landlock, as far as it is used here; 0 for none. Nothing is restricted.
pub(crate) fn version() -> u32 {
    (1..=NEWEST).rev().find(|version| ruleset(*version, false).is_ok()).unwrap_or(0)
}

fn abi(version: u32) -> ABI {
    match version {
        0..=1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    }
}

fn ruleset(version: u32, network: bool) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules = rules.handle_access(AccessFs::from_all(abi(version)))?;
    if version >= NETWORK && !network {
        rules = rules.handle_access(AccessNet::from_all(abi(version)))?;
    }
    if version >= SCOPES {
        rules = rules.scope(Scope::from_all(abi(version)))?;
    }
    rules.create()
}

/// Leaves open what the plan names, and nothing else. In words when it cannot be.
pub(super) fn restrict(stage: &Stage) -> Result<(), String> {
    let failed = |error: RulesetError| format!("Landlock cannot be applied: {error}");
    let version = version();
    let abi = abi(version);
    let (read, devices) = (AccessFs::from_read(abi), AccessFs::ReadFile | AccessFs::WriteFile);
    let write = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut rules = ruleset(version, stage.network).map_err(failed)?;
    for (path, writing) in &stage.open {
        let device = path.starts_with("/dev/");
        let access = if device {
            devices
        } else if *writing {
            write
        } else {
            read
        };
        rules = if stage.needed.contains(path) {
            let file = PathFd::new(path).map_err(|error| unreachable_path(path, stage.user, &error))?;
            let folder = std::fs::metadata(path).is_ok_and(|found| found.is_dir());
            let access = if folder { access } else { access & AccessFs::from_file(abi) };
            rules.add_rule(PathBeneath::new(file, access)).map_err(failed)?
        } else {
            // What the system does not have needs no rule.
            rules.add_rules(path_beneath_rules([path], access)).map_err(failed)?
        };
    }
    let status = rules.restrict_self().map_err(failed)?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        Ok(())
    } else {
        Err("Landlock is not enforced by this kernel".into())
    }
}

fn unreachable_path(path: &str, user: Option<u32>, error: &impl std::fmt::Display) -> String {
    let who = user.map_or_else(|| "its user".to_owned(), |user| format!("its user {user}"));
    format!("{path} cannot be reached by {who} ({error}): let others pass through the folders above it")
}
