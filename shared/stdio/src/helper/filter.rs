//! Seccomp: system calls that no server needs and that lead out of a sandbox, or that would let it take what nobody counts.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpArgLen::Qword, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter,
};

use crate::{Tier, plan::Stage};

/// Never: other name spaces and mounts, the kernel's own matters, ways around this filter (`io_uring`), and memory that belongs to no
/// process.
const NEVER: &[i64] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
];
/// And where processes of others can be named.
const NEVER_AMONG_OTHERS: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];
/// Name spaces that `clone` could make.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
/// Numbers of system calls with this bit are the same calls for another width of pointers.
const OTHER_WIDTH: i64 = 0x4000_0000;

/// Applies the filters. Later ones cannot be lifted; nothing after this may need what they forbid.
pub(super) fn apply(stage: &Stage) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("seccomp cannot be applied: {error}");
    // `clone3` hides its flags in memory. Every C library falls back to `clone` when the kernel does not know it.
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    for (rules, errno) in [(unknown, libc::ENOSYS), (forbidden(stage).map_err(|error| failed(&error))?, libc::EPERM)] {
        let program = program(rules, errno).map_err(|error| failed(&error))?;
        apply_filter(&program).map_err(|error| failed(&error))?;
    }
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn forbidden(stage: &Stage) -> Result<Rules, seccompiler::BackendError> {
    let weak = stage.tier == Tier::Weak;
    let among_others: &[i64] = if weak { NEVER_AMONG_OTHERS } else { &[] };
    let mut rules: Rules = NEVER.iter().chain(among_others).map(|&call| (call, Vec::new())).collect();
    let clone = NAMESPACES.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        SeccompRule::new(vec![SeccompCondition::new(0, Qword, SeccompCmpOp::MaskedEq(flag), flag)?])
    });
    rules.insert(libc::SYS_clone, clone.into_iter().collect::<Result<_, _>>()?);
    // Keys pressed on behalf of a terminal.
    let typing = SeccompCondition::new(1, Dword, SeccompCmpOp::Eq, TIOCSTI)?;
    rules.insert(libc::SYS_ioctl, vec![SeccompRule::new(vec![typing])?]);
    if weak {
        // Limits of other processes.
        let other = SeccompCondition::new(0, Dword, SeccompCmpOp::Ne, 0)?;
        rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![other])?]);
    }
    rules.insert(libc::SYS_socket, sockets(stage)?);
    if cfg!(target_arch = "x86_64") {
        let again: Vec<_> = rules.iter().map(|(call, rules)| (call | OTHER_WIDTH, rules.clone())).collect();
        rules.extend(again);
    }
    Ok(rules)
}

/// Which sockets may not be made. With name spaces, families that they do not divide; without, all but those of an open network:
/// nothing there keeps a program from the sockets of others. Pairs (`socketpair`) are made by another call.
fn sockets(stage: &Stage) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let allowed: &[libc::c_int] = match (stage.tier, stage.network) {
        (Tier::Weak, false) => return Ok(Vec::new()),
        (Tier::Weak, true) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        _ => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let none_of = allowed
        .iter()
        .map(|family| SeccompCondition::new(0, Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
    Ok(vec![SeccompRule::new(none_of.collect::<Result<_, _>>()?)?])
}

const TIOCSTI: u64 = 0x5412;

fn program(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let errno = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, errno, arch)?.try_into()
}
