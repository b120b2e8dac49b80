//! What stands between a file and its workspace, in words.

use std::{error::Error, fmt, io};

use gatehouse_types::Locale;
use rustix::io::Errno;

/// Why something is not possible in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// No space, or a quota of the file system is reached.
    Full,
    /// Larger than the file system or the process's limit takes.
    TooLarge,
    /// The file system can only be read.
    ReadOnly,
    /// The gateway may not write, or read, there.
    Permission,
    /// A symbolic link stands where a folder or the file should be: its path.
    Link(String),
    /// Something else than a folder stands where a folder should be, or than a file where the file should be: its path.
    InTheWay(String),
    /// The configured root is not there.
    NoRoot,
    /// There is no file at the path.
    Gone,
    /// All names that are tried for a file are taken.
    Crowded,
    /// The file became shorter while it was read.
    Changed,
    /// The disk or the object store does not answer in time.
    Silent,
    /// The object store cannot be reached.
    Unreachable,
    /// The object store refuses the credentials.
    Refused,
    /// The file system or object store cannot do what is needed to never replace a file.
    Unable,
    /// A path with `..`, empty or odd names.
    BadPath,
    /// Something else; the log has it.
    Other,
}

impl Cause {
    /// The reason as the end of a sentence, without a full stop.
    pub fn words(&self, locale: Locale) -> String {
        let (en, zh) = match self {
            Self::Full => ("the disk of the workspace is full", "工作区所在磁盘已满"),
            Self::TooLarge => {
                ("the file is larger than the workspace's file system takes", "文件超过了工作区文件系统允许的大小")
            }
            Self::ReadOnly => ("the workspace can only be read", "工作区是只读的"),
            Self::Permission => {
                ("the gateway lacks the permission to use the workspace's folder", "网关没有使用工作区文件夹的权限")
            }
            Self::Link(path) => {
                return match locale {
                    Locale::En => format!("a symbolic link stands in the way at `{path}`"),
                    Locale::Zh => format!("`{path}` 处有一个符号链接"),
                };
            }
            Self::InTheWay(path) => {
                return match locale {
                    Locale::En => format!("something that is not a folder stands in the way at `{path}`"),
                    Locale::Zh => format!("`{path}` 处被其他文件占用"),
                };
            }
            Self::NoRoot => ("the configured root of the workspaces is not there", "配置的工作区根目录不存在"),
            Self::Gone => ("there is no such file in the workspace any more", "工作区中已没有这个文件"),
            Self::Crowded => {
                ("all names for the file are taken in the workspace", "工作区中该文件的所有可用名称都已被占用")
            }
            Self::Changed => ("the file changed while it was read", "文件在读取过程中被修改"),
            Self::Silent => ("the workspace's storage did not answer in time", "工作区的存储没有及时响应"),
            Self::Unreachable => ("the object store of the workspace cannot be reached", "无法连接工作区的对象存储"),
            Self::Refused => ("the object store of the workspace refuses access", "工作区的对象存储拒绝访问"),
            Self::Unable => (
                "the workspace's storage cannot save a file without the risk of replacing another one",
                "工作区的存储无法保证保存时不覆盖其他文件",
            ),
            Self::BadPath => ("the path does not lead into the workspace", "路径不在工作区内"),
            Self::Other => ("the workspace's storage failed", "工作区的存储出错"),
        };
        locale.pick(en, zh).to_owned()
    }
}

/// A [`Cause`] with what the system said about it, for the log.
#[derive(Debug)]
pub struct Problem {
    /// Why.
    pub cause: Cause,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause.words(Locale::En))
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<Cause> for Problem {
    fn from(cause: Cause) -> Self {
        Self { cause, source: None }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self { cause: of_io(&error), source: Some(Box::new(error)) }
    }
}

impl From<object_store::Error> for Problem {
    fn from(error: object_store::Error) -> Self {
        use object_store::Error as Store;
        let cause = match &error {
            Store::NotFound { .. } => Cause::Gone,
            Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => Cause::Refused,
            Store::NotImplemented { .. } | Store::NotSupported { .. } => Cause::Unable,
            Store::InvalidPath { .. } => Cause::BadPath,
            // A request that failed after its retries.
            Store::Generic { .. } => Cause::Unreachable,
            _ => Cause::Other,
        };
        Self { cause, source: Some(Box::new(error)) }
    }
}

fn of_io(error: &io::Error) -> Cause {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT) => Cause::Full,
        Some(Errno::FBIG) => Cause::TooLarge,
        Some(Errno::ROFS) => Cause::ReadOnly,
        Some(Errno::ACCESS | Errno::PERM) => Cause::Permission,
        Some(Errno::NOENT) => Cause::Gone,
        Some(Errno::TIMEDOUT | Errno::STALE | Errno::HOSTDOWN | Errno::NOTCONN) => Cause::Silent,
        _ => Cause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_becomes_a_cause() {
        for (errno, cause) in [
            (Errno::NOSPC, Cause::Full),
            (Errno::DQUOT, Cause::Full),
            (Errno::FBIG, Cause::TooLarge),
            (Errno::ROFS, Cause::ReadOnly),
            (Errno::ACCESS, Cause::Permission),
            (Errno::PERM, Cause::Permission),
            (Errno::NOENT, Cause::Gone),
            (Errno::STALE, Cause::Silent),
            (Errno::IO, Cause::Other),
        ] {
            assert_eq!(Problem::from(io::Error::from(errno)).cause, cause, "{errno}");
        }
    }

    #[test]
    fn every_cause_has_words_of_its_own_in_both_languages() {
        let path = || "a/b".to_owned();
        let all = [
            Cause::Full,
            Cause::TooLarge,
            Cause::ReadOnly,
            Cause::Permission,
            Cause::Link(path()),
            Cause::InTheWay(path()),
            Cause::NoRoot,
            Cause::Gone,
            Cause::Crowded,
            Cause::Changed,
            Cause::Silent,
            Cause::Unreachable,
            Cause::Refused,
            Cause::Unable,
            Cause::BadPath,
            Cause::Other,
        ];
        for locale in [Locale::En, Locale::Zh] {
            let words: std::collections::BTreeSet<String> = all.iter().map(|cause| cause.words(locale)).collect();
            assert_eq!(words.len(), all.len());
        }
        assert!(Cause::Link(path()).words(Locale::Zh).contains("`a/b`"));
    }
}
