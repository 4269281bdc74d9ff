//! Files that a run reads and writes: no input is overwritten, and no file is written twice.
//!
//! Models and the arrays of rules are known from the command line. Every other file notes itself when it is read, so that
//! no command has to list it. What is written is compared with all of them before anything is written, and a document once
//! more when it is written.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use typelift::WeightsMode;
use typelift::findings::shell_word;
use typelift::host::{self, FileId};

use crate::failure::Failure;
use crate::input::{Input, directory, is_stdout};
use crate::noted;
use crate::output::{Destination, OutputArgs, Target, check_ending, is_stream, refused, same_file};

/// Every file that a command names.
#[derive(Default)]
pub(crate) struct Run<'a> {
    pub(crate) models: &'a [Input],
    /// Files that the statements of rules read.
    pub(crate) rules: &'a [PathBuf],
    pub(crate) output: Option<&'a OutputArgs>,
    /// Further outputs, each with its description.
    pub(crate) documents: &'a [(&'a Path, &'static str)],
}

const MODEL: &str = "a model is read from it";
const WEIGHTS: &str = "weights are read from it";
const RULES: &str = "rules use it";

/// The files that a run reads and writes, with their purpose.
#[derive(Default)]
struct Files {
    read: HashMap<FileId, &'static str>,
    written: HashMap<FileId, (&'static str, PathBuf)>,
    /// The files to write, in order; the flag is true if the directory is created for it.
    paths: Vec<(PathBuf, bool)>,
}

impl Run<'_> {
    /// Fails if the run would overwrite an input, write one file twice, or could not write at all. Nothing has been
    /// written at this point.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let mut documents = self.documents.iter().filter(|(path, _)| !is_stdout(path) && !is_stream(path)).peekable();
        if self.output.is_none_or(|output| !output.is_given()) && documents.peek().is_none() {
            return Ok(());
        }
        let mut files = Files { read: self.read(), ..Files::default() };
        if let Some(output) = self.output {
            for model in self.models {
                if let Some(Target::File(place)) = Target::plan(output, model)? {
                    files.add_model(&place, model, output)?;
                }
            }
        }
        for (path, what) in documents {
            files.add(path, what, &[], false)?;
        }
        let mut directories = HashSet::new();
        files.paths.iter().try_for_each(|(path, made)| check_writable(path, *made, &mut directories))
    }

    fn read(&self) -> HashMap<FileId, &'static str> {
        let weights = self.models.iter().filter_map(Input::weights).map(|file| (FileId::of(&file), WEIGHTS));
        let models = self.models.iter().filter(|model| !model.is_stdin());
        let models = models.map(|model| (FileId::of(&model.file), MODEL));
        let rules = self.rules.iter().map(|file| (FileId::of(file), RULES));
        // A text at the place of a model's own weights is no weights, which the model may replace.
        let noted = noted::all().into_iter().map(|id| (id, noted::TEXT));
        weights.chain(models).chain(rules).chain(noted).collect()
    }
}

impl Files {
    fn add_model(&mut self, place: &Destination, input: &Input, args: &OutputArgs) -> Result<(), Failure> {
        let (path, made) = (&place.path, args.directory().is_some());
        if place.in_place {
            check_names(path)?;
        }
        // Another process may replace the pair between two looks, so that its names lead to other files.
        let own: &[_] = if place.in_place { &[MODEL, WEIGHTS] } else { &[] };
        self.add(path, "a model", own, made)?;
        if !place.in_place {
            check_ending(path, "xml", "OpenVINO IR")?;
        }
        if place.weights == WeightsMode::None {
            return Ok(());
        }
        let weights = path.with_extension("bin");
        let id = FileId::of(&weights);
        let own = input.weights().filter(|own| *own == weights || self.read.contains_key(&id) && FileId::of(own) == id);
        // If constants are added or removed, new weights replace those of this model. Another name of the file keeps
        // the old ones.
        let is_place =
            |own: &PathBuf| fs::canonicalize(own).is_ok_and(|own| fs::canonicalize(&weights).is_ok_and(|it| it == own));
        let is_new = matches!(place.weights, WeightsMode::Copy | WeightsMode::Compact);
        if !place.in_place && is_new && own.as_ref().is_some_and(is_place) {
            return Err(taken(&weights, "the weights", WEIGHTS)
                .help("give another file, or --weights none, and it stays as it is"));
        }
        let own: &[_] = if own.is_some() { &[WEIGHTS, MODEL] } else { &[] };
        self.add_as(id, &weights, "the weights", own, made)
    }

    /// Adds a file to write. It must not be an input, except its `own`.
    fn add(&mut self, path: &Path, what: &'static str, own: &[&str], made: bool) -> Result<(), Failure> {
        self.add_as(FileId::of(path), path, what, own, made)
    }

    fn add_as(&mut self, id: FileId, path: &Path, what: &'static str, own: &[&str], made: bool) -> Result<(), Failure> {
        if let Some(read) = self.read.get(&id).filter(|read| !own.contains(read)) {
            return Err(taken(path, what, read).help(noted::ANOTHER));
        }
        self.paths.push((path.to_owned(), made));
        match self.written.insert(id, (what, path.to_owned())) {
            // A file that another process removes between two looks can give its number to a new one.
            Some((other, first)) if same_file(&first, path) => {
                Err(taken(path, what, &format!("{other} would go there too")).help(noted::ANOTHER))
            }
            _ => Ok(()),
        }
    }
}

fn taken(path: &Path, what: &str, reason: &str) -> Failure {
    Failure::new(format!("cannot write {what} to `{}`: {reason}", path.display()))
}

/// Fails for a file of several names, only one of which would get the new model.
fn check_names(path: &Path) -> Result<(), Failure> {
    match host::count_names(path) {
        Ok(names @ 2..) => {
            let reason = format!("the file has {names} names (hard links), and the others would keep the old model");
            Err(refused(path, &reason)
                .help("write to another file with -o, or put a copy in the place of the link first"))
        }
        _ => Ok(()),
    }
}

/// Fails if a file, or one next to it, could not be written. With `made` its directory may be missing.
fn check_writable(path: &Path, made: bool, known: &mut HashSet<PathBuf>) -> Result<(), Failure> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::io("write", path, &error)),
        // Opening a pipe would wait for its reader.
        Ok(found) if !found.is_file() && !found.is_dir() => return Err(refused(path, "it is not a regular file")),
        // A link is replaced, so the file it leads to need not be writable.
        Ok(found) if found.is_file() && path.is_symlink() => {}
        Ok(_) => match File::options().append(true).open(path) {
            // A graph is missing for a moment while another process replaces its pair.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Failure::io("write", path, &error)),
            _ => {}
        },
    }
    let mut directory = directory(path);
    if !made && !known.contains(directory) && !directory.exists() {
        let directory = directory.display().to_string();
        let failure = refused(path, &format!("the directory `{directory}` does not exist"));
        return Err(failure.help(format!("`mkdir -p {}` creates it", shell_word(&directory))));
    }
    while known.insert(directory.to_owned()) {
        if directory.exists() {
            // The file has no name, so nobody sees it.
            tempfile::tempfile_in(directory).map_err(|error| {
                Failure::io("write to", directory, &error).help("choose a folder in which files can be made")
            })?;
            break;
        }
        directory = self::directory(directory);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FileId, Files};

    /// Another process may remove a file after the look at it. Its number then goes to a new file.
    #[test]
    fn the_number_of_a_removed_file_is_no_conflict() {
        let folder = tempfile::tempdir().unwrap();
        let [removed, new] = ["removed", "new"].map(|name| folder.path().join(name));
        std::fs::write(&new, "").unwrap();
        let mut files = Files::default();
        files.written.insert(FileId::of(&new), ("a model", removed));
        assert!(files.add(&new, "the weights", &[], false).is_ok());
        assert!(files.add(&new, "a report", &[], false).is_err());
    }
}
