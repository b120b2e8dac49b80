//! Completions for shells.

use clap::{Args, Subcommand as _};
use clap_complete::Shell;

use super::{
    Command,
    failure::{Code, Failure},
    globals::Globals,
};

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gatehouse completions bash > ~/.local/share/bash-completion/completions/gatehouse\n  \
                        gatehouse completions zsh > \"${fpath[1]}/_gatehouse\"\n  \
                        gatehouse completions fish > ~/.config/fish/completions/gatehouse.fish"
)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// The script: for the whole command line when `main` told it, else for the administrator's commands.
    pub(crate) fn script(&self, root: Option<fn() -> clap::Command>) -> Result<String, Failure> {
        let mut root = root.map_or_else(administrator, |root| root());
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut root, "gatehouse", &mut script);
        String::from_utf8(script).map_err(|_| Failure::new(Code::Internal, "the script is not UTF-8"))
    }
}

fn administrator() -> clap::Command {
    Command::augment_subcommands(Globals::augment_args(clap::Command::new("gatehouse")))
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let script = Completions { shell }.script(None).unwrap();
            assert!(script.contains("rotate-token") && script.contains("import"), "{shell}");
        }
        let matches = administrator().try_get_matches_from(["gatehouse", "completions", "zsh"]).unwrap();
        assert!(matches!(Command::from_arg_matches(&matches), Ok(Command::Completions(_))));
    }
}
