//! The models of a run: finding them, and processing many in parallel.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use typelift::findings::{Frame, shell_word};
use walkdir::{DirEntry, WalkDir};

use crate::failure::{Failure, Kind};
use crate::files::Run;
use crate::input::{Input, Member, is_dash, is_stdout};
use crate::output::{OutputArgs, same_file};
use crate::panics;
use crate::status::Status;
use crate::terminal::{Page, Terminal};
use crate::{not_a_model, usage, waiting};

/// The usual stack of the main thread, so that a model in a batch has as much as a single one.
pub(crate) const STACK: usize = 8 << 20;

pub(crate) const LINES: Frame = framed("", "", "");
pub(crate) const PARAGRAPHS: Frame = framed("", "\n", "");
pub(crate) const ARRAY: Frame = framed("[\n", ",\n", "]\n");

const fn framed(open: &'static str, between: &'static str, close: &'static str) -> Frame {
    Frame { open: Cow::Borrowed(open), between: Cow::Borrowed(between), close: Cow::Borrowed(close) }
}

/// Models to read.
#[derive(clap::Args)]
pub(crate) struct Inputs {
    /// The model's .xml, or - for standard input; several models, or directories with .xml files below them
    #[arg(value_name = "IN.xml", required = true)]
    paths: Vec<PathBuf>,
    /// The weights, if they are not in the .bin next to it
    #[arg(long, value_name = "FILE")]
    bin: Option<PathBuf>,
    /// Number of models to process in parallel; 1 uses one thread, even for a large model [default: the number of
    /// cores]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
}

fn parse_jobs(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "the number of jobs must be a number of at least 1")
}

pub(crate) struct Batch {
    models: Vec<Input>,
    jobs: usize,
}

pub(crate) struct Outcomes<T> {
    /// The result of each model that could be read and written, with or without errors, in their order.
    pub(crate) done: Vec<T>,
    /// The number of files in directories that are not models.
    skipped: usize,
    /// The number of models that could not be read or written, or at which the program has a bug.
    failed: usize,
    worst: Status,
}

impl Inputs {
    /// Finds the models. Fails if the output, including other documents, could not be written or would replace an input,
    /// including files that rules use.
    pub(crate) fn find(
        &self,
        output: Option<&OutputArgs>,
        documents: &[(&Path, &'static str)],
        rules: &[PathBuf],
    ) -> Result<Batch, Failure> {
        if let [file] = &self.paths[..]
            && !file.is_dir()
        {
            let on_one_thread = self.jobs.is_some_and(|jobs| jobs.get() == 1);
            let models = vec![Input { bin: self.bin.clone(), on_one_thread, ..Input::new(file) }];
            Run { models: &models, rules, output, documents }.check()?;
            return Ok(Batch { models, jobs: 1 });
        }
        if self.paths.iter().any(|path| is_dash(path)) {
            return Err(Failure::new("standard input is one model, and there are others").help("give it alone"));
        }
        if self.bin.is_some() {
            return Err(Failure::new("--bin is for one model, and there are several")
                .help("leave it out, and the weights of each are looked for next to it"));
        }
        let directory = output.and_then(|output| output.output.as_deref());
        if let Some(path) = directory {
            let missing = self.paths.iter().find(|path| !path.exists()).map(|path| path.to_string_lossy());
            let mut folders = self.paths.iter().filter(|path| path.is_dir());
            let found = folders.find_map(|folder| Some((folder, find(folder, directory).ok()?)));
            let found = found.as_ref().map(|(folder, models)| (folder, &models[..]));
            many_fit(path).map_err(|failure| match (missing, found) {
                (Some(word), _) => Failure::new(format!("`{word}` is taken for a model, and it does not exist")),
                (_, Some((folder, []))) => no_models(folder),
                (_, Some((_, [model]))) => {
                    failure.helped(format!("give the model in the folder: `{}`", model.display()))
                }
                _ => failure,
            })?;
        }
        if let Some(word) = self.paths.iter().find(|path| usage::is_no_file(path)) {
            return Err(Failure::no_file(word));
        }
        let mut models = Vec::new();
        for path in &self.paths {
            if path.is_dir() {
                let found = find(path, directory).map_err(|error| unreadable(path, error))?;
                if found.is_empty() {
                    return Err(no_models(path));
                }
                models.extend(found.into_iter().map(|file| {
                    let place = file.strip_prefix(path).unwrap_or(&file).to_owned();
                    member(file, place, true)
                }));
            } else {
                let place = path.file_name().map(PathBuf::from).unwrap_or_default();
                models.push(member(path.clone(), place, false));
            }
        }
        if let Some(output) = output {
            each_has_its_place(&models, output)?;
        }
        Run { models: &models, rules, output, documents }.check()?;
        Ok(self.batch(models))
    }

    fn batch(&self, models: Vec<Input>) -> Batch {
        let jobs = self.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        Batch { jobs: jobs.min(models.len()), models }
    }

    /// Finds the models among changed files, as a hook names them. A `.bin` stands for the `.xml` next to it, and XML
    /// of another kind is skipped.
    pub(crate) fn find_changed(&self) -> Batch {
        let models = self.paths.iter().map(|path| match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("bin") => path.with_extension("xml"),
            _ => path.clone(),
        });
        let mut files: Vec<_> = models.filter(|file| file.is_file()).collect();
        files.sort_unstable();
        files.dedup();
        self.batch(files.into_iter().map(|file| member(file.clone(), file, true)).collect())
    }

    /// The failure of a command that writes models without an output. `look` is an option that writes none.
    pub(crate) fn nowhere(&self, look: &str) -> Failure {
        let output = if self.paths.len() > 1 { "-o FOLDER" } else { "-o OUT.xml" };
        Failure::new("nowhere to write to")
            .help(format!("give {output}, or --in-place to write over the model, or {look}"))
    }

    /// Fails if the last of several models does not exist and looks like another argument: the output, or a statement.
    /// Fails for a directory, whose models need another one.
    pub(crate) fn check_for_other_arguments(&self) -> Result<(), Failure> {
        if let Some(folder) = self.paths.iter().find(|path| path.is_dir()) {
            let names = find(folder, None).map_err(|error| unreadable(folder, error))?;
            let names = names.iter().map(|file| format!("`{}`", file.display()));
            let failure = Failure::new("nowhere to write to");
            let few = names.clone().take(3).collect::<Vec<_>>().join(", ");
            return Err(failure.help(match names.len() {
                0 => not_a_model::folder(folder),
                count => format!(
                    "-o FOLDER writes the {} in it ({few}{}) to a folder, which is created",
                    crate::columns::count(count, "model"),
                    if count > 3 { ", …" } else { "" }
                ),
            }));
        }
        let [before, last] = &self.paths[..] else { return Ok(()) };
        if last.exists() || is_dash(last) || !before.is_file() {
            return Ok(());
        }
        let text = last.to_string_lossy();
        let word = shell_word(&text);
        let failure = Failure::new(format!("`{text}` is taken for a second model, and it does not exist"));
        Err(match last.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("xml") => {
                failure.help(format!("to write to it, write -o {word}"))
            }
            _ if text.contains(' ') => failure.help(format!("if it is a statement, write -e {word}")),
            _ => failure,
        })
    }
}

/// Input of a run with several models, which share its threads.
fn member(file: PathBuf, place: PathBuf, found: bool) -> Input {
    Input { file, bin: None, member: Some(Member { place, found }), on_one_thread: true }
}

impl Batch {
    /// The model if it was named alone: then the output contains nothing else.
    pub(crate) fn single(&self) -> Option<&Input> {
        self.models.first().filter(|model| model.member.is_none())
    }

    /// Calls `work` for each model and prints its page. A failure of one model is reported and the others continue;
    /// pages are printed in the order of the models.
    pub(crate) fn each<T: Send>(
        &self,
        frame: &Frame,
        terminal: &mut Terminal,
        work: impl Fn(&Input, &mut Page) -> Result<T, Failure> + Sync,
    ) -> Result<Outcomes<T>, Failure> {
        let mut outcomes = Outcomes { done: Vec::new(), skipped: 0, failed: 0, worst: Status::Done };
        if let Some(model) = self.single() {
            let (page, result) = waiting::shown(|| caught(model, &work))?;
            terminal.print(if result.is_ok() { &frame.open } else { "" })?;
            terminal.show(&page)?;
            outcomes.done.push(result?);
            terminal.print(&frame.close)?;
            return Ok(outcomes);
        }
        terminal.print(&frame.open)?;
        let mut printed = false;
        self.in_order(
            |model| caught(model, &work),
            |model, (mut page, result)| {
                match result {
                    Ok(done) => outcomes.done.push(done),
                    Err(failure) => {
                        outcomes.worst = outcomes.worst.max(failure.status());
                        let is_skipped = failure.kind == Kind::NoModel;
                        outcomes.skipped += usize::from(is_skipped);
                        outcomes.failed += usize::from(!is_skipped);
                        let file = model.file.to_string_lossy();
                        if *frame == ARRAY && !is_skipped {
                            page.printed = failure.json(Some(&file))?;
                        }
                        page.said += &failure.at(&file).text();
                    }
                }
                if printed && !page.printed.is_empty() {
                    terminal.print(&frame.between)?;
                }
                printed |= !page.printed.is_empty();
                terminal.show(&page)?;
                // If both streams go to one place, messages about a model stay next to its output.
                terminal.flush()
            },
        )?;
        terminal.print(&frame.close)?;
        Ok(outcomes)
    }

    /// The order in which models are started. It is their own order, but a model that takes a large part of a thread's
    /// total time comes first, because the others would wait for it at the end.
    fn order(&self) -> Vec<usize> {
        const PARTS: u64 = 16;
        let lengths: Vec<_> =
            self.models.iter().map(|model: &Input| fs::metadata(&model.file).map_or(0, |found| found.len())).collect();
        let short = lengths.iter().sum::<u64>() / (self.jobs as u64 * PARTS);
        let mut order: Vec<_> = (0..lengths.len()).collect();
        order.sort_by_key(|&at| Reverse(lengths[at].max(short)));
        order
    }

    /// Calls `work` for each model on several threads, and passes on the results in the order of the models as early as
    /// possible.
    fn in_order<R: Send>(
        &self,
        work: impl Fn(&Input) -> R + Sync,
        mut take: impl FnMut(&Input, R) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let bar = ProgressBar::with_draw_target(Some(self.models.len() as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} models, {eta} left") {
            bar.set_style(style);
        }
        let (order, next) = (self.order(), AtomicUsize::new(0));
        let (sender, receiver) = mpsc::channel();
        let (order, next, work) = (&order, &next, &work);
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                let sender = sender.clone();
                let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                    while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // The receiver is closed after printing has failed.
                        if sender.send((at, work(&self.models[at]))).is_err() {
                            break;
                        }
                    }
                });
                thread.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
            }
            drop(sender);
            let mut early = BTreeMap::new();
            let mut models = self.models.iter().enumerate().peekable();
            for (at, result) in receiver {
                bar.inc(1);
                early.insert(at, result);
                while let Some((model, result)) = models.peek().and_then(|(at, model)| Some((model, early.remove(at)?)))
                {
                    bar.suspend(|| take(model, result))?;
                    models.next();
                }
            }
            bar.finish_and_clear();
            Ok(())
        })
    }
}

/// Calls `work` for a model, and returns what it printed also if it fails.
fn caught<T>(model: &Input, work: impl Fn(&Input, &mut Page) -> Result<T, Failure>) -> (Page, Result<T, Failure>) {
    let mut page = Page::default();
    let result = panics::catch(Some(&model.file), || work(model, &mut page));
    (page, result)
}

impl<T> Outcomes<T> {
    pub(crate) fn status(&self, faulty: impl Fn(&T) -> bool) -> Status {
        self.worst.max(Status::of(self.done.iter().any(faulty)))
    }

    /// Formats `12 files: 9 converted, 2 refused, 1 skipped` from these counts and their names.
    pub(crate) fn summary(&self, counts: &[(usize, &str)]) -> String {
        let total = self.done.len() + self.skipped + self.failed;
        let rest = [(self.skipped, "skipped"), (self.failed, "failed")];
        let parts = counts.iter().chain(&rest).filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        format!("{total} file{}: {}", if total == 1 { "" } else { "s" }, parts.join(", "))
    }
}

fn no_models(folder: &Path) -> Failure {
    Failure::new(format!("the directory `{}` has no .xml", folder.display())).help(not_a_model::folder(folder))
}

/// Fails if several models have a destination that is not a directory.
fn many_fit(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    if is_stdout(path) {
        return Err(Failure::new("standard output takes one model, and there are several").help("give -o a directory"));
    }
    let is_file = path.exists() || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"));
    if is_file && !path.is_dir() {
        return Err(Failure::new(format!("several models cannot be written to the one file `{name}`"))
            .help("give -o a directory; it is created if it does not exist"));
    }
    Ok(())
}

fn unreadable(directory: &Path, error: walkdir::Error) -> Failure {
    let place = error.path().unwrap_or(directory).to_owned();
    Failure::io("read", &place, &error.into_io_error().unwrap_or_else(|| io::ErrorKind::Other.into()))
}

/// Every .xml below a directory, sorted, except those below `except`, so that a run does not read its own output. Links
/// to files are followed, links to directories are not.
fn find(directory: &Path, except: Option<&Path>) -> Result<Vec<PathBuf>, walkdir::Error> {
    let is_read =
        |entry: &DirEntry| !entry.file_type().is_dir() || except.is_none_or(|except| !same_file(except, entry.path()));
    let entries = WalkDir::new(directory).min_depth(1).sort_by_file_name().into_iter().filter_entry(is_read);
    entries.filter(|entry| entry.as_ref().map_or(true, is_model)).map(|entry| Ok(entry?.into_path())).collect()
}

fn is_model(entry: &DirEntry) -> bool {
    let is_xml = entry.path().extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"));
    // A broken link is reported when it is read.
    is_xml && (entry.file_type().is_file() || fs::metadata(entry.path()).map_or(true, |found| found.is_file()))
}

/// Fails if two models, or their weights, would be written to one file.
fn each_has_its_place(models: &[Input], output: &OutputArgs) -> Result<(), Failure> {
    let mut taken = HashMap::new();
    for model in models {
        let place = match (&output.output, &model.member) {
            (Some(directory), Some(member)) => directory.join(&member.place).with_extension(""),
            _ if output.in_place => fs::canonicalize(&model.file).unwrap_or_else(|_| model.file.clone()),
            _ => continue,
        };
        if let Some(other) = taken.insert(place, &model.file) {
            let (one, two) = (other.display(), model.file.display());
            let message = if one.to_string() == two.to_string() {
                format!("`{one}` is given twice")
            } else {
                format!("`{one}` and `{two}` would be written to one file")
            };
            return Err(Failure::new(message)
                .help("give each model once; of models of one name give the directory above them, in which each keeps its path"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::ColorChoice;

    use super::*;

    /// Two of several models make the program panic, one of them on its own thread.
    #[test]
    fn a_model_that_makes_the_program_panic_is_reported_and_the_others_go_on() {
        panics::expect(&["typelift", "check", "models"].map(Into::into));
        let model = |name: &str| member(name.into(), name.into(), true);
        for jobs in [1, 2, 4] {
            let names = ["a.xml", "bad.xml", "b.xml", "worse.xml", "c.xml"];
            let batch = Batch { models: names.map(model).into(), jobs };
            let work = |input: &Input, page: &mut Page| {
                page.said += "half";
                match input.file.to_str().unwrap() {
                    "bad.xml" => panic!("no layer {}", 7),
                    "worse.xml" => thread::scope(|scope| {
                        let panicked = scope.spawn(|| panic!("deep")).join();
                        panicked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    }),
                    name => Ok(name.to_owned()),
                }
            };
            let outcomes = batch.each(&LINES, &mut Terminal::new(ColorChoice::Never, false), work).unwrap();
            assert_eq!(outcomes.done, ["a.xml", "b.xml", "c.xml"]);
            assert_eq!(outcomes.summary(&[(3, "checked")]), "5 files: 3 checked, 2 failed");
            assert_eq!(outcomes.status(|_| false), Status::Faulty);
            let single = Batch { models: vec![Input { member: None, ..model("bad.xml") }], jobs: 1 };
            let failure = single.each(&LINES, &mut Terminal::new(ColorChoice::Never, false), work).err().unwrap();
            assert_eq!(failure.status(), Status::Faulty);
            let text = anstream::adapter::strip_str(&failure.text()).to_string();
            let (version, at) = (env!("CARGO_PKG_VERSION"), format!("{}:", file!()));
            for part in ["internal error: no layer 7, at ", &at, version, "`bad.xml`", "`typelift check models`"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}
