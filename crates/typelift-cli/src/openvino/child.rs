//! The process of Python that answers requests, within limits of time and size.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use typelift::promote::ElementType;
use typelift::shape::Shape;
use typelift_run::verify::{RunError, Tensor};

use super::SCRIPT;
use crate::process::{Group, Output, Part};

/// Limit on the JSON of a reply, in bytes.
const MOST_HEAD: u64 = 1 << 24;
/// Limit on the tensors of a reply, in bytes.
const MOST_VALUES: u64 = 4 << 30;
/// Limit on the last lines of standard error, in bytes.
const MOST_SAID: usize = 4096;
/// The time that a process may take to end after it has closed its output.
const LEAVING: Duration = Duration::from_secs(2);

/// Variables with folders in which a program, a module or a library is looked for.
const SEARCH_PATHS: [&str; 4] = ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// Python 3.11 leaves that folder out of its search path by `PYTHONSAFEPATH`. Older versions put it there as an empty
/// part, which is removed before anything is imported. The parts of the variables are read before that.
fn python_command(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg("-c").arg(format!("import sys; sys.path[:] = filter(None, sys.path)\n{SCRIPT}"));
    command.env("PYTHONSAFEPATH", "1");
    for variable in SEARCH_PATHS {
        let Some(value) = std::env::var_os(variable) else { continue };
        match std::env::join_paths(std::env::split_paths(&value).filter(|part| part.is_absolute())) {
            Ok(parts) if !parts.is_empty() => command.env(variable, parts),
            _ => command.env_remove(variable),
        };
    }
    command
}

pub(super) struct Running {
    group: Group,
    requests: ChildStdin,
    replies: Receiver<io::Result<Reply>>,
    /// The end of its standard error.
    said: Output,
}

pub(super) struct Reply {
    pub(super) head: Value,
    pub(super) blobs: Vec<Vec<u8>>,
}

impl Running {
    pub(super) fn start(python: &Path) -> io::Result<Self> {
        let mut command = python_command(python);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = Group::start(&mut command)?;
        let requests = group.leader.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut answers = group.leader.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let said = Output::of(group.leader.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?, Part::Last(MOST_SAID))?;
        let (sender, replies) = channel();
        thread::Builder::new().spawn(move || {
            loop {
                let reply = read_reply(&mut answers);
                let is_over = reply.is_err();
                if sender.send(reply).is_err() || is_over {
                    break;
                }
            }
        })?;
        Ok(Self { group, requests, replies, said })
    }

    /// Sends a request and waits for its reply. After an error the process has ended.
    pub(super) fn ask(&mut self, mut head: Value, blobs: &[&[u8]], seconds: u64) -> Result<Reply, RunError> {
        head["blobs"] = blobs.iter().map(|blob| blob.len()).collect();
        let Self { group, requests, replies, said } = self;
        thread::scope(|scope| {
            // A process that does not read its requests must not hold up the limit of time.
            let writing = thread::Builder::new().spawn_scoped(scope, || send(requests, &head.to_string(), blobs));
            let writing = writing.map_err(broken)?;
            let reply = match replies.recv_timeout(Duration::from_secs(seconds)) {
                Ok(Ok(reply)) => Ok(reply),
                Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    Err(RunError::Broken(format!("the answer of Python cannot be read: {error}")))
                }
                Err(RecvTimeoutError::Timeout) => Err(RunError::TimedOut(seconds)),
                Ok(Err(_)) | Err(_) => Err(match group.wait_for(LEAVING).map_err(broken)? {
                    Some(status) => RunError::Crashed(reason(status, &said.text())),
                    None => RunError::Broken("Python closed its output and went on".to_owned()),
                }),
            };
            if reply.is_err() {
                let _status = group.end();
            }
            let written = writing.join().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
            // A process that ended says why in the place of its reply.
            reply.and_then(|reply| written.map(|()| reply).map_err(broken))
        })
    }
}

fn broken(error: io::Error) -> RunError {
    RunError::Broken(error.to_string())
}

fn send(requests: &mut ChildStdin, head: &str, blobs: &[&[u8]]) -> io::Result<()> {
    requests.write_all(&(head.len() as u64).to_le_bytes())?;
    requests.write_all(head.as_bytes())?;
    blobs.iter().try_for_each(|blob| requests.write_all(blob))?;
    requests.flush()
}

fn reason(status: ExitStatus, said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join("; ");
    if last.is_empty() { status.to_string() } else { format!("{status}: {last}") }
}

fn read_reply(stream: &mut impl Read) -> io::Result<Reply> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let head = exactly(stream, u64::from_le_bytes(length), MOST_HEAD)?;
    let head: Value = serde_json::from_slice(&head).map_err(|_| invalid("it is not JSON"))?;
    let sizes = head.get("blobs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut left = MOST_VALUES;
    let blobs = sizes.iter().map(|size| {
        let bytes = exactly(stream, size.as_u64().ok_or_else(|| invalid("a length is not a number"))?, left)?;
        left -= bytes.len() as u64;
        Ok(bytes)
    });
    let blobs = blobs.collect::<io::Result<_>>()?;
    Ok(Reply { head, blobs })
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_owned())
}

/// Reads that many bytes, if the limit permits it. Memory is taken as bytes arrive.
fn exactly(stream: &mut impl Read, length: u64, most: u64) -> io::Result<Vec<u8>> {
    if length > most {
        return Err(invalid(&format!("it has {length} bytes, and at most {most} are read")));
    }
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

impl Reply {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.head.get(name).and_then(Value::as_str)
    }

    /// The tensors of a reply, each with its name if it has one.
    ///
    /// # Errors
    /// A tensor without its bytes, or with more or fewer bytes than its type and shape need.
    pub(super) fn tensors(mut self) -> Result<Vec<(String, Tensor)>, RunError> {
        let described = self.head.get_mut("outputs").map(Value::take);
        let Some(Value::Array(described)) =
            described.filter(|it| it.as_array().map(Vec::len) == Some(self.blobs.len()))
        else {
            return Err(RunError::Broken("the answer of Python does not describe its tensors".to_owned()));
        };
        let tensors = described.iter().zip(self.blobs).map(|(value, bytes)| {
            let name = value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let tensor = tensor(value, bytes)
                .ok_or_else(|| RunError::Broken(format!("Python answered a tensor that cannot be: {value}")))?;
            Ok((name, tensor))
        });
        tensors.collect()
    }
}

/// `None` if its bytes are not those of its type and shape.
fn tensor(value: &Value, bytes: Vec<u8>) -> Option<Tensor> {
    let element_type = ElementType::from_name(value.get("type")?.as_str()?)?;
    let dims = value.get("shape")?.as_array()?.iter().map(|dim| usize::try_from(dim.as_u64()?).ok());
    let dims = dims.collect::<Option<Vec<_>>>().filter(|dims| dims.len() <= Shape::MAX_RANK)?;
    let count = dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim))?;
    let fits = match element_type {
        ElementType::String => texts(&bytes) == Some(count),
        _ => {
            let bits = element_type.bits() as usize;
            let size = count.checked_mul(bits)?.div_ceil(8);
            bits > 0 && (bytes.len() == size || bits < 8 && bytes.len() > size)
        }
    };
    fits.then(|| Tensor::new(element_type, dims, bytes))
}

/// Counts the texts of a tensor; `None` if a length exceeds what is left.
fn texts(mut bytes: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk()?;
        bytes = rest.get(u32::from_le_bytes(*length) as usize..)?;
        count += 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngSeed, TestRunner};
    use serde_json::json;

    use super::*;

    fn message(head: &str, blobs: &[u8]) -> Vec<u8> {
        [&(head.len() as u64).to_le_bytes()[..], head.as_bytes(), blobs].concat()
    }

    #[test]
    fn a_tensor_has_the_bytes_of_its_type_and_shape() {
        let is_one = |ty: &str, shape: Value, bytes: &[u8]| {
            tensor(&json!({ "type": ty, "shape": shape }), bytes.to_vec()).is_some()
        };
        assert!(is_one("f32", json!([2, 1]), &[0; 8]) && is_one("f32", json!([]), &[0; 4]));
        assert!(is_one("boolean", json!([3]), &[0; 3]) && is_one("u4", json!([3]), &[0; 2]));
        assert!(is_one("i64", json!([0, 1_u64 << 62]), &[]) && is_one("string", json!([2]), b"\x01\0\0\0a\0\0\0\0"));
        for (ty, shape, bytes) in [
            ("f32", json!([1_000_000]), &[0; 4][..]),
            ("f32", json!([1]), &[0; 8]),
            ("f32", json!([1_u64 << 62, 1_u64 << 62]), &[]),
            ("f32", json!([-1]), &[]),
            ("f32", json!(["1"]), &[0; 4]),
            ("f32", json!(vec![1; 1025]), &[0; 4]),
            ("f32", Value::Null, &[0; 4]),
            ("float", json!([1]), &[0; 4]),
            ("dynamic", json!([1]), &[]),
            ("string", json!([2]), b"\x01\0\0\0a"),
            ("string", json!([1]), b"\xff\0\0\0a"),
        ] {
            assert!(!is_one(ty, shape.clone(), bytes), "{ty} {shape}");
        }
    }

    #[test]
    fn a_reply_that_is_too_large_or_no_json_is_an_error() {
        let kind = |bytes: &[u8]| read_reply(&mut &bytes[..]).map(drop).map_err(|error| error.kind());
        assert_eq!(kind(&message(r#"{"blobs": [2]}"#, b"ab")), Ok(()));
        assert_eq!(kind(&message(r#"{"blobs": [2]}"#, b"a")), Err(io::ErrorKind::UnexpectedEof));
        for head in ["[".repeat(100_000).as_str(), "", r#"{"blobs": [99999999999]}"#, r#"{"blobs": [-1]}"#] {
            assert_eq!(kind(&message(head, b"")), Err(io::ErrorKind::InvalidData), "{head:.20}");
        }
        assert_eq!(kind(b"garbage! garbage!"), Err(io::ErrorKind::InvalidData));
        let reply = |head: Value, blobs: usize| Reply { head, blobs: vec![Vec::new(); blobs] }.tensors();
        assert!(reply(json!({ "outputs": [{ "type": "f32", "shape": [0] }] }), 1).is_ok());
        assert!(reply(json!({ "outputs": 1 }), 0).is_err() && reply(json!({}), 0).is_err());
        assert!(reply(json!({ "outputs": [] }), 1).is_err());
    }

    const PIECES: &[&str] =
        &["99999999999999999999", "-1", "1e400", "[[", "null", "\"u4\"", "\"string\"", ",0", "\\ud800", "{}"];

    /// A reply of two tensors.
    fn whole() -> Vec<u8> {
        let head = r#"{"outputs": [{"name": "a", "type": "f32", "shape": [2, 1]}, {"type": "string", "shape": [1]}], "blobs": [8, 5]}"#;
        message(head, b"12345678\x01\0\0\0a")
    }

    #[test]
    fn damaged_replies_are_replies_or_errors() {
        let whole = whole();
        assert_eq!(read_reply(&mut &whole[..]).unwrap().tensors().unwrap().len(), 2);
        for at in 0..whole.len() {
            for byte in [0, 1, b'9', b'-', b'"', b'[', 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                drop(read_reply(&mut &damaged[..]).map(Reply::tensors));
            }
            assert!(read_reply(&mut &whole[..at]).is_err());
        }
    }

    /// Bytes are removed, doubled or replaced in replies, and nothing panics. `PROPTEST_CASES` makes it try more.
    #[test]
    fn replies_with_several_damages_are_replies_or_errors() {
        let cases = Config::default().cases.max(2000);
        let config = Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(0), ..Config::default() };
        let damage = (0.0..1.0, 0_usize..12, 0..4, prop::sample::select(PIECES), any::<u8>());
        let replies = AtomicUsize::new(0);
        let result = TestRunner::new(config).run(&prop::collection::vec(damage, 0..4), |damages| {
            let mut reply = whole();
            for (share, length, kind, piece, byte) in damages {
                let start = (share * reply.len() as f64) as usize;
                let end = (start + length).min(reply.len());
                match kind {
                    0 => drop(reply.drain(start..end)),
                    1 => drop(reply.splice(start..start, piece.bytes())),
                    2 => reply.truncate(end),
                    _ => reply[start..end].iter_mut().take(1).for_each(|it| *it = byte),
                }
                // Most damage leaves the length of the head right, or nothing behind it would be tested.
                if byte.is_multiple_of(2) && reply.len() > 21 {
                    let head = (reply.len() - 21) as u64;
                    reply[..8].copy_from_slice(&head.to_le_bytes());
                }
            }
            let read = read_reply(&mut &reply[..]).map_err(|_| ()).and_then(|reply| reply.tensors().map_err(|_| ()));
            replies.fetch_add(usize::from(read.is_ok()), Ordering::Relaxed);
            Ok(())
        });
        result.unwrap_or_else(|failure| panic!("{failure}"));
        assert!(replies.into_inner() > 400);
    }
}
