//! `typelift completions` and `typelift man`: data for shells and `man`.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::gate::Form;
use crate::status::Status;
use crate::terminal::Terminal;

/// Print completions for a shell
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift completions bash > ~/.local/share/bash-completion/completions/typelift
  typelift completions zsh > ~/.zfunc/_typelift
  typelift completions fish > ~/.config/fish/completions/typelift.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut program: Command, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "typelift", &mut script);
    terminal.print_as(&String::from_utf8_lossy(&script), Form::Product)?;
    Ok(Status::Done)
}

/// Write the man pages of the program and its commands into a directory
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The directory, which must exist
    directory: PathBuf,
}

pub(crate) fn man(args: &ManArgs, program: Command) -> Result<Status, Failure> {
    clap_mangen::generate_to(program, &args.directory)
        .map_err(|error| Failure::io("write", &args.directory, &error))?;
    Ok(Status::Done)
}
