//! Help of the commands: options under headings, the most used first. `-h` fits one screen, and `--help` explains.

use clap::{Arg, Command};

/// Options by heading, the most used first. In commands with many options, `-h` leaves those in parentheses to `--help`.
/// An option that is not listed fails a test.
const HEADINGS: &[(&str, &str)] = &[
    (
        "Files",
        "output in-place (bin) (changed) (weights) (strip-weights) (save-weights) (canonical) (max-growth) (jobs) \
         (ran) no-open inputs (write-plan) npy",
    ),
    ("Statements", "statement rules use op list-rules source explain table compare"),
    (
        "Types",
        "(align) input-type (output-type) (input-layout) (output-layout) (set-type) set-shape (set-length) \
         (keep-noop-converts) (eliminate-converts) (promote-unsafe) (pytorch-scalar-promotion) \
         (u64-integer-promotion-target) default-dtype no-x64",
    ),
    (
        "Precision",
        "compress quantize types (keep-io) (mark-keeps) (decompress) (audit) (max-error) (like) (group-size) \
         (ratio) (all-layers) (backup) (group-fallback) (dequantize)",
    ),
    ("Release", "target for"),
    ("Fixes", "fix diff"),
    ("Failure", "finding refused differs match max-runs (timeout) anonymize"),
    ("Selection", "around depth keep only fold-constants losses path shapes axis info at all"),
    (
        "Runs",
        "device device-a (device-b) (python) python-a (python-b) (config) (config-a) (config-b) hint (hint-a) \
         (hint-b) (simulate) (simulate-a) (simulate-b) expect (save-inputs) shape (samples) (seed) (steps) (rtol) \
         (atol) layers",
    ),
    ("Report", "verify dry-run (report) format deny allow ignore"),
    ("General", "quiet (verbose) (color) (full-names) (max-memory) help version"),
];

/// The number of examples that `-h` shows.
const EXAMPLES: usize = 3;

/// Shortest text before a colon that says enough alone.
const CLAUSE: usize = 20;

/// The number of options with values from which `-h` leaves out the rare ones.
const MANY: usize = 6;

/// General options of commands that read no model, and so have no use for them.
const WITHOUT_MODEL: &[(&str, &[&str])] = &[
    ("explain", &["full-names", "max-memory"]),
    ("promote", &["full-names", "max-memory"]),
    ("schema", &["color", "full-names", "max-memory"]),
    ("completions", &["color", "full-names", "max-memory"]),
    ("man", &["color", "full-names", "max-memory"]),
];

pub(crate) fn arranged(mut program: Command) -> Command {
    program.build();
    arrange(program).mut_subcommands(arrange)
}

fn arrange(command: Command) -> Command {
    let has_many = command.get_opts().filter(|option| !option.is_hide_set()).count() >= MANY;
    let name = command.get_name().to_owned();
    let unused = WITHOUT_MODEL.iter().find(|(verb, _)| *verb == name).map_or(&[][..], |row| row.1);
    let command = with_few_examples(command);
    command.mut_args(|arg| {
        let Some(long) = arg.get_long().map(str::to_owned) else { return shortened(arg) };
        let hidden = arg.is_hide_set() || unused.contains(&long.as_str());
        let is_rare = arg.is_hide_short_help_set();
        let arg = shortened(arg).hide(hidden);
        match place(&long) {
            Some((heading, order, rare)) => {
                arg.help_heading(heading).display_order(order).hide_short_help(is_rare || rare && has_many)
            }
            None => arg,
        }
    })
}

/// Shows the first examples in `-h`, and all of them in `--help`.
fn with_few_examples(command: Command) -> Command {
    let Some(all) = command.get_after_help().map(ToString::to_string) else { return command };
    if !all.starts_with("Examples:") {
        return command;
    }
    let few: Vec<&str> = all.lines().take(1 + EXAMPLES).collect();
    let few = few.join("\n");
    command.after_help(few).after_long_help(all)
}

/// The heading of an option, its place below it, and whether `-h` leaves it out.
fn place(long: &str) -> Option<(&'static str, usize, bool)> {
    HEADINGS.iter().find_map(|(heading, options)| {
        let (order, option) =
            options.split(' ').enumerate().find(|(_, option)| option.trim_matches(['(', ')']) == long)?;
        Some((*heading, order, option != long))
    })
}

/// Leaves the first sentence of an option's help to `-h`, and all of it to `--help`.
fn shortened(arg: Arg) -> Arg {
    let Some(text) = arg.get_help().map(ToString::to_string) else { return arg };
    let colon = text.find(": ").filter(|&at| at >= CLAUSE);
    let end = ["; ", ". "].iter().filter_map(|mark| text.find(mark)).chain(colon).min();
    let Some(short) = end.and_then(|end| text.get(..end)).map(str::to_owned) else { return arg };
    let mut long = arg.get_long_help().map_or(text, ToString::to_string);
    // Many values do not fit on a screen.
    if arg.is_hide_possible_values_set() {
        let values: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        long.push_str(&format!(" [possible values: {}]", values.join(", ")));
    }
    arg.help(short).long_help(long)
}

#[cfg(test)]
mod tests {
    use super::place;

    /// An option without a heading would stand apart from the others.
    #[test]
    fn every_option_has_a_heading() {
        let program = crate::whole_command();
        let commands =
            program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
        for command in commands {
            let longs = command.get_arguments().filter_map(clap::Arg::get_long);
            let missing: Vec<_> = longs.filter(|long| place(long).is_none()).collect();
            assert!(missing.is_empty(), "{}: {missing:?}", command.get_name());
        }
    }

    /// A screen has 40 lines of 80 columns.
    #[test]
    fn the_short_help_of_each_command_fits_one_screen() {
        let mut program = crate::whole_command();
        let long: Vec<_> = program
            .get_subcommands_mut()
            .map(|command| (command.get_name().to_owned(), command.clone().term_width(80).render_help().to_string()))
            .filter(|(_, page)| page.lines().count() > 40)
            .map(|(name, page)| format!("{name}: {} lines\n{page}", page.lines().count()))
            .collect();
        assert!(long.is_empty(), "{}", long.concat());
    }
}
