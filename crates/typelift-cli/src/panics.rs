//! Panics are bugs of this program: each is reported for the model at which it occurred, and other models continue.

use std::any::Any;
use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use typelift::findings::shell_word;

use crate::failure::{Failure, Kind};

struct Known {
    arguments: Vec<OsString>,
    /// The message and the position of each panic that was not reported yet.
    panics: Vec<(String, String)>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { arguments: Vec::new(), panics: Vec::new() });

/// The part of a command that a bug report needs, in characters.
const COMMAND: usize = 400;

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects panics for [`catch`] instead of printing them, unless backtraces are enabled.
pub(crate) fn expect(arguments: &[OsString]) {
    known().arguments = arguments.to_vec();
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |found| {
            let place = found.location().map(ToString::to_string).unwrap_or_default();
            known().panics.push((message(found.payload()), place));
            if std::env::var_os("RUST_BACKTRACE").is_some_and(|wanted| wanted != "0") {
                print(found);
            }
        }));
    });
}

pub(crate) fn arguments() -> Vec<OsString> {
    known().arguments.clone()
}

fn command(arguments: &[OsString]) -> String {
    let mut command = "typelift".to_owned();
    for word in arguments.iter().skip(1).map(|word| word.to_string_lossy()) {
        let value = word.trim_start_matches('-');
        command += &format!(" {}{}", &word[..word.len() - value.len()], shell_word(value));
    }
    if let Some((end, _)) = command.char_indices().nth(COMMAND) {
        command.replace_range(end.., " …");
    }
    command
}

/// Calls `work`, possibly for a model; a panic becomes a failure.
pub(crate) fn catch<T>(model: Option<&Path>, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(failure(model, payload.as_ref())))
}

fn failure(model: Option<&Path>, payload: &(dyn Any + Send)) -> Failure {
    let message = message(payload);
    let mut known = known();
    let at = known.panics.iter().position(|(of, _)| *of == message);
    let place = at.map(|at| known.panics.swap_remove(at).1).map_or(String::new(), |place| format!(", at {place}"));
    let model = model.map_or("the model".to_owned(), |model| format!("`{}`", model.display()));
    Failure::of_kind(Kind::Faulty, format!("internal error: {message}{place}")).help(format!(
        "this is a fault of typelift {}, not of the model; please send us this message, {model} with its .bin, and the command `{}`",
        env!("CARGO_PKG_VERSION"),
        command(&known.arguments)
    ))
}

fn message(payload: &dyn Any) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}
