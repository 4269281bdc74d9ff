//! Options of commands that change models, and reports on the changes.

use std::path::{Path, PathBuf};

use crate::batch::{Batch, Inputs, LINES, Outcomes};
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::output::{self, OutputArgs};
use crate::terminal::{Page, Terminal};
use crate::verify::BeforeWriting;

#[derive(clap::Args)]
pub(crate) struct ChangeArgs {
    #[command(flatten)]
    pub(crate) before: BeforeWriting,
    /// Print the plan, and write no model
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the changes to this file as JSON, or - for standard output; for a refused model, its findings. For several
    /// models the document is an array
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

impl ChangeArgs {
    pub(crate) fn reports_on_stdout(&self) -> bool {
        self.report.as_deref().is_some_and(input::is_stdout)
    }

    pub(crate) fn document(&self) -> Option<(&Path, &'static str)> {
        self.report.as_deref().map(|path| (path, "the report"))
    }

    /// Fails if a model is written, and has no place or the same one as the report.
    pub(crate) fn check(&self, inputs: &Inputs, output: &OutputArgs, is_written: bool) -> Result<(), Failure> {
        if !is_written {
            return Ok(());
        }
        if !output.is_given() {
            inputs.check_for_other_arguments()?;
            return Err(inputs.nowhere("--dry-run to see what would be done"));
        }
        if self.reports_on_stdout() && output.is_stdout() {
            return Err(Failure::new("standard output cannot take both the model and the report")
                .help("give one of them a file"));
        }
        Ok(())
    }

    /// Changes each model, and writes their reports, which `take_report` removes from the results.
    pub(crate) fn each<T: Send>(
        &self,
        batch: &Batch,
        terminal: &mut Terminal,
        work: impl Fn(&Input, &mut Page) -> Result<T, Failure> + Sync,
        take_report: impl FnMut(&mut T) -> Option<String>,
    ) -> Result<Outcomes<T>, Failure> {
        terminal.answers_in_json = self.reports_on_stdout();
        let outcomes = batch.each(&LINES, terminal, work);
        let mut outcomes = outcomes.inspect_err(|_| self.report.iter().for_each(|path| output::forget_report(path)))?;
        if let Some(path) = &self.report {
            let reports = outcomes.done.iter_mut().filter_map(take_report).collect();
            output::write_reports(path, reports, batch.single().is_none(), terminal)?;
        }
        Ok(outcomes)
    }
}
