//! `typelift schema`: prints the schema of JSON documents.

use clap::builder::PossibleValuesParser;

use crate::failure::Failure;
use crate::status::Status;
use crate::terminal::Terminal;

const SCHEMAS: [(&str, &str); 11] = [
    ("check", include_str!("../schema/check.json")),
    ("convert", include_str!("../schema/convert.json")),
    ("diff", include_str!("../schema/diff.json")),
    ("infer", include_str!("../schema/infer.json")),
    ("promote", include_str!("../schema/promote.json")),
    ("reduce", include_str!("../schema/reduce.json")),
    ("rewrite", include_str!("../schema/rewrite.json")),
    ("show", include_str!("../schema/show.json")),
    ("stats", include_str!("../schema/stats.json")),
    ("verify", include_str!("../schema/verify.json")),
    ("why", include_str!("../schema/why.json")),
];

/// Print the JSON Schema of a command's output or report
///
/// The schema uses JSON Schema 2020-12. It is valid for every document with this `format` version.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift schema check
  typelift schema convert > report.schema.json")]
pub(crate) struct Args {
    /// The command
    #[arg(value_name = "VERB", value_parser = PossibleValuesParser::new(SCHEMAS.map(|(verb, _)| verb)))]
    verb: String,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let schema = SCHEMAS.iter().find(|(verb, _)| *verb == args.verb).map(|(_, schema)| schema);
    schema.into_iter().try_for_each(|schema| terminal.print(schema))?;
    Ok(Status::Done)
}
