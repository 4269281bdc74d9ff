//! The program `typelift`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(typelift_cli::run(std::env::args_os()))
}
