//! The stage: gives up one right after the other, and becomes the program.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::fs::MetadataExt as _, unix::process::CommandExt as _},
    process::{Command, ExitCode},
};

use rustix::{
    fs::{Gid, Uid},
    process::{
        DumpableBehavior, Resource, Rlimit, Signal, geteuid, getppid, getrlimit, getsid, set_dumpable_behavior,
        set_parent_process_death_signal, setrlimit, setsid,
    },
    thread::{
        CapabilitySet, UnshareFlags, clear_ambient_capability_set, remove_capability_from_bounding_set,
        set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    },
};

use super::{filter, landlock, socket, supervisor::READY};
use crate::{Tier, plan::Stage, wire};

/// The status of a stage that did not become a program. Shells use it too.
const NOT_EXECUTED: u8 = 127;

pub(super) fn main() -> ExitCode {
    // Without the plan nobody can be told anything.
    let received = socket().and_then(|socket| wire::receive::<Stage>(&socket));
    let Ok((stage, files)) = received else { return ExitCode::from(NOT_EXECUTED) };
    let Ok([input, says]) = <[OwnedFd; 2]>::try_from(files) else { return ExitCode::from(NOT_EXECUTED) };
    let mut says = File::from(says);
    if let Err(words) = become_program(&stage, &input, &mut says) {
        // It fails when the supervisor has gone, which ends this process too.
        let _ = says.write_all(words.as_bytes());
    }
    ExitCode::from(NOT_EXECUTED)
}

/// Returns only when that failed, in words.
fn become_program(stage: &Stage, input: &OwnedFd, says: &mut File) -> Result<(), String> {
    let parent = getppid();
    match stage.tier {
        Tier::Strong => {
            limit(stage)?;
            if let Some(user) = stage.user {
                become_user(user)?;
                own_user_namespace(user)?;
            }
        }
        Tier::Weak => {
            session()?;
            limit(stage)?;
            if let Some(user) = stage.user {
                become_user(user)?;
            }
        }
        Tier::Trusted => session()?,
    }
    make_temporary(stage)?;
    rustix::stdio::dup2_stdin(input).map_err(because("its input cannot be set"))?;
    // It is forgotten when the user changes, so it comes after.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(because("it cannot be tied to its owner"))?;
    if getppid() != parent {
        return Err("its owner has gone".into());
    }
    if stage.tier != Tier::Trusted {
        set_no_new_privs(true).map_err(because("new rights cannot be forbidden"))?;
    }
    if stage.tier == Tier::Weak {
        landlock::restrict(stage)?;
    }
    if stage.tier != Tier::Trusted {
        filter::apply(stage)?;
    }
    says.write_all(READY).map_err(|error| format!("its supervisor has gone: {error}"))?;
    Err(execute(stage))
}

fn because(what: &'static str) -> impl Fn(rustix::io::Errno) -> String {
    move |error| format!("{what}: {error}")
}

/// A session of its own: no terminal, no signals that are for others.
fn session() -> Result<(), String> {
    match setsid() {
        Ok(_) => Ok(()),
        Err(_) if getsid(None).is_ok_and(|session| session == rustix::process::getpid()) => Ok(()),
        Err(error) => Err(format!("it cannot get a session of its own: {error}")),
    }
}

/// Limits that the kernel holds. Never on address space or CPU time: those end honest servers.
fn limit(stage: &Stage) -> Result<(), String> {
    let limits = &stage.limits;
    let others = if stage.tier == Tier::Weak && stage.user.is_none() { tasks_of_user() } else { 0 };
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files.into()),
        // Counted for each user; within a user namespace only what is in it.
        (Resource::Nproc, others + u64::from(limits.processes)),
    ] {
        let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| format!("its limit of {resource:?} cannot be set: {error}"))?;
    }
    Ok(())
}

/// Processes and threads that this user has already.
fn tasks_of_user() -> u64 {
    let user = geteuid().as_raw();
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let processes =
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().bytes().all(|c| c.is_ascii_digit()));
    let own = processes.filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == user));
    own.filter_map(|entry| fs::read_dir(entry.path().join("task")).ok()).map(|tasks| tasks.count() as u64).sum()
}

/// From root to a user that has nothing.
fn become_user(user: u32) -> Result<(), String> {
    set_thread_groups(&[]).map_err(because("its groups cannot be taken"))?;
    let group = Gid::from_raw(user);
    set_thread_res_gid(group, group, group).map_err(because("it cannot get a group of its own"))?;
    for (_, capability) in CapabilitySet::all().iter_names() {
        match remove_capability_from_bounding_set(capability) {
            // This kernel does not know it.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(format!("its rights cannot be taken: {error}")),
        }
    }
    clear_ambient_capability_set().map_err(because("its rights cannot be taken"))?;
    let user = Uid::from_raw(user);
    set_thread_res_uid(user, user, user).map_err(because("it cannot get a user of its own"))
}

/// A user namespace in which there is only this user.
#[expect(
    deprecated,
    reason = "what makes it unsafe is other threads and their file descriptors, and there is no other thread"
)]
fn own_user_namespace(user: u32) -> Result<(), String> {
    // What changed its user does not own its files in /proc until it says that it may be looked at.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(because("it cannot write its user map"))?;
    rustix::thread::unshare(UnshareFlags::NEWUSER).map_err(because("it cannot get a user namespace"))?;
    let map = format!("{user} {user} 1");
    for (file, text) in [("setgroups", "deny"), ("gid_map", &map), ("uid_map", &map)] {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("its user map cannot be written: {error}"))?;
    }
    Ok(())
}

/// Without bubblewrap there is no `/tmp` of its own: it gets a folder in its home.
fn make_temporary(stage: &Stage) -> Result<(), String> {
    if stage.tier == Tier::Strong {
        return Ok(());
    }
    match fs::create_dir(stage.folder.clone() + "/tmp") {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(format!(
            "its home {} cannot be used ({error}): let others pass through the folders above it",
            stage.folder
        )),
        _ => Ok(()),
    }
}

/// Returns only when that failed, in words.
fn execute(stage: &Stage) -> String {
    let mut command = Command::new(&stage.program);
    command.args(&stage.args).env_clear().envs(stage.env.iter().map(|(name, value)| (name, value)));
    let error = command.current_dir(&stage.folder).exec();
    let program = &stage.program;
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "the program {program} was not found inside the sandbox: give its path, or open the folder that it and its interpreter are in"
        ),
        io::ErrorKind::PermissionDenied => {
            format!("the program {program} may not be executed: make it executable, and open the folder that it is in")
        }
        _ => format!("the program {program} cannot be executed: {error}"),
    }
}
