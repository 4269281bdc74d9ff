//! The program `typelift`.

use std::process::ExitCode;

/// With musl's own allocator, a conversion takes longer than with glibc.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    ExitCode::from(typelift_cli::run(std::env::args_os()))
}
