//! `typelift completions` and `typelift man`: data for shells and `man`.

use std::path::PathBuf;

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use typelift::findings::Code;
use typelift::ops::Release;
use typelift::promote::ElementType;

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

pub(crate) fn run(args: &Args, program: Command, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut script = Vec::new();
    let mut program = program.mut_subcommands(with_values);
    clap_complete::generate(args.shell, &mut program, "typelift", &mut script);
    terminal.print_as(&String::from_utf8_lossy(&script), Form::Product)?;
    Ok(Status::Done)
}

/// Adds the values that a shell can complete: codes of findings, releases, element types.
fn with_values(command: Command) -> Command {
    let codes = Code::ALL.iter().map(|code| code.name());
    let (is_explain, is_promote) = (command.get_name() == "explain", command.get_name() == "promote");
    command.mut_args(|arg| match arg.get_long() {
        Some("deny") if arg.get_possible_values().is_empty() => {
            arg.value_parser(PossibleValuesParser::new(codes.clone().chain(["warnings"])))
        }
        Some("allow") => arg.value_parser(PossibleValuesParser::new(codes.clone())),
        Some("target") => {
            // The program ends after it has printed the completions.
            let releases = Release::all().map(|release| &*release.to_string().leak());
            arg.value_parser(PossibleValuesParser::new(releases))
        }
        None if is_explain && arg.is_positional() => arg.value_parser(PossibleValuesParser::new(codes.clone())),
        None if is_promote && arg.is_positional() => {
            arg.value_parser(PossibleValuesParser::new(ElementType::all().map(ElementType::name)))
        }
        _ => arg,
    })
}

/// Write the man pages of the program and its commands into a directory
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The directory
    #[arg(value_name = "DIRECTORY", value_hint = clap::ValueHint::DirPath)]
    directory: PathBuf,
}

pub(crate) fn man(args: &ManArgs, program: Command, terminal: &mut Terminal) -> Result<Status, Failure> {
    let folder = args.directory.display().to_string();
    let name = folder.trim_end_matches(".1").trim_start_matches("typelift-");
    if !args.directory.exists() && (name == "typelift" || program.find_subcommand(name).is_some()) {
        let page = if name == "typelift" { "typelift --help".to_owned() } else { format!("typelift {name} --help") };
        let all = "`typelift man ~/.local/share/man/man1` writes all pages into a folder";
        return Err(
            Failure::new(format!("`{folder}` names a command")).help(format!("`{page}` prints its page; {all}"))
        );
    }
    let pages = 1 + program.get_subcommands().filter(|verb| !verb.is_hide_set()).count();
    std::fs::create_dir_all(&args.directory).map_err(|error| Failure::io("create", &args.directory, &error))?;
    clap_mangen::generate_to(program, &args.directory)
        .map_err(|error| Failure::io("write", &args.directory, &error))?;
    terminal.say(&format!("wrote {pages} pages to {folder}\n"));
    Ok(Status::Done)
}
