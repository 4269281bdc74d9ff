//! The files that a run reads and writes: nothing is written over what is read, and no two things to one file.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use typelift::WeightsMode;
use typelift::save::FileId;

use crate::failure::Failure;
use crate::input::{Input, is_stdout};
use crate::output::{Destination, OutputArgs, Target, check_ending, directory, is_stream, refused};

/// Every file that a verb names.
#[derive(Default)]
pub(crate) struct Run<'a> {
    pub(crate) models: &'a [Input],
    /// Files of rules, and those that their statements read.
    pub(crate) rules: &'a [PathBuf],
    /// Where the models go.
    pub(crate) output: Option<&'a OutputArgs>,
    /// What else is written, and what it is.
    pub(crate) document: Option<(&'a Path, &'static str)>,
}

const MODEL: &str = "a model is read from it";
const WEIGHTS: &str = "weights are read from it";
const RULES: &str = "rules are read from it, or use it";

const ANOTHER: &str = "give another file";

/// The files that a run reads and writes, and for what.
#[derive(Default)]
struct Files {
    read: HashMap<FileId, &'static str>,
    written: HashMap<FileId, &'static str>,
    /// What is written, in order, and whether its directory is made for it.
    paths: Vec<(PathBuf, bool)>,
}

impl Run<'_> {
    /// Fails where the run would write over what it reads, or two things to one file, or where it could not write at all. Nothing
    /// is written by then.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let document = self.document.filter(|(path, _)| !is_stdout(path) && !is_stream(path));
        if self.output.is_none_or(|output| !output.is_given()) && document.is_none() {
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
        if let Some((path, what)) = document {
            files.add(path, what, None, false)?;
        }
        let mut directories = HashSet::new();
        files.paths.iter().try_for_each(|(path, made)| check_writable(path, *made, &mut directories))
    }

    /// What is read, and for what.
    fn read(&self) -> HashMap<FileId, &'static str> {
        let mut read = HashMap::new();
        for weights in self.models.iter().filter_map(Input::weights) {
            read.insert(FileId::of(&weights), WEIGHTS);
        }
        for model in self.models.iter().filter(|model| !model.is_stdin()) {
            read.insert(FileId::of(&model.file), MODEL);
        }
        for rules in self.rules {
            read.insert(FileId::of(rules), RULES);
        }
        read
    }
}

impl Files {
    fn add_model(&mut self, place: &Destination, input: &Input, args: &OutputArgs) -> Result<(), Failure> {
        let (path, made) = (&place.path, args.directory().is_some());
        if place.in_place {
            check_names(path)?;
        }
        self.add(path, "a model", place.in_place.then_some(MODEL), made)?;
        if !place.in_place {
            check_ending(path, "xml", "OpenVINO IR")?;
        }
        if place.weights == WeightsMode::None {
            return Ok(());
        }
        let weights = path.with_extension("bin");
        let id = FileId::of(&weights);
        let own = input.weights().filter(|own| self.read.contains_key(&id) && FileId::of(own) == id);
        // Where constants come or go, other weights take the place of those that this model is read with. Another name of the file
        // keeps them.
        let is_place =
            |own: &PathBuf| fs::canonicalize(own).is_ok_and(|own| fs::canonicalize(&weights).is_ok_and(|it| it == own));
        let is_new = matches!(place.weights, WeightsMode::Copy | WeightsMode::Compact);
        if !place.in_place && is_new && own.as_ref().is_some_and(is_place) {
            return Err(taken(&weights, "the weights", WEIGHTS)
                .help("give another file, or --weights none, and it stays as it is"));
        }
        self.add_as(id, &weights, "the weights", own.is_some().then_some(WEIGHTS), made)
    }

    /// Something to be written, to a file from which nothing is read, or only what is its `own`.
    fn add(&mut self, path: &Path, what: &'static str, own: Option<&'static str>, made: bool) -> Result<(), Failure> {
        self.add_as(FileId::of(path), path, what, own, made)
    }

    fn add_as(
        &mut self,
        id: FileId,
        path: &Path,
        what: &'static str,
        own: Option<&'static str>,
        made: bool,
    ) -> Result<(), Failure> {
        if let Some(read) = self.read.get(&id).filter(|read| Some(**read) != own) {
            return Err(taken(path, what, read).help(ANOTHER));
        }
        self.paths.push((path.to_owned(), made));
        match self.written.insert(id, what) {
            Some(other) => Err(taken(path, what, &format!("{other} would go there too")).help(ANOTHER)),
            None => Ok(()),
        }
    }
}

fn taken(path: &Path, what: &str, reason: &str) -> Failure {
    Failure::new(format!("cannot write {what} to `{}`: {reason}", path.display()))
}

/// Fails for a file of several names, of which only one would get the new model.
fn check_names(path: &Path) -> Result<(), Failure> {
    #[cfg(unix)]
    if let Ok(found) = fs::metadata(path) {
        let names = std::os::unix::fs::MetadataExt::nlink(&found);
        if names > 1 {
            let reason = format!("the file has {names} names (hard links), and the others would keep the old model");
            return Err(refused(path, &reason)
                .help("write to another file with -o, or put a copy in the place of the link first"));
        }
    }
    Ok(())
}

/// Fails where a file, or one beside it, could not be written. Its directory may be missing where it is `made`.
fn check_writable(path: &Path, made: bool, known: &mut HashSet<PathBuf>) -> Result<(), Failure> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::io("write", path, &error)),
        // To open a pipe would wait for its reader.
        Ok(found) if !found.is_file() && !found.is_dir() => return Err(refused(path, "it is not a regular file")),
        // A link is replaced, so the file it leads to need not be writable.
        Ok(found) if found.is_file() && path.is_symlink() => {}
        Ok(_) => {
            File::options().append(true).open(path).map_err(|error| Failure::io("write", path, &error))?;
        }
    }
    let mut directory = directory(path);
    if !made && !known.contains(directory) && !directory.exists() {
        return Err(refused(path, &format!("the directory `{}` does not exist", directory.display())));
    }
    while known.insert(directory.to_owned()) {
        if directory.exists() {
            // A file without a name: nobody sees it.
            tempfile::tempfile_in(directory).map_err(|error| Failure::io("write to", directory, &error))?;
            break;
        }
        directory = self::directory(directory);
    }
    Ok(())
}
