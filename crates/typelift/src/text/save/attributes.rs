//! Attributes of a file other than its bytes, transferred to its replacement.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Copies the permissions of the file at `old` to `new`, and where the system allows it the owner and the extended
/// attributes. Does nothing if there is no such file.
pub(super) fn keep(old: &Path, new: &File) -> io::Result<()> {
    let Ok(found) = fs::metadata(old) else { return Ok(()) };
    #[cfg(unix)]
    {
        copy_extended(old, new);
        own(&found, new)
    }
    #[cfg(not(unix))]
    new.set_permissions(found.permissions())
}

/// Copies owner and permissions. If the group cannot be set, its permissions are withdrawn.
#[cfg(unix)]
fn own(old: &fs::Metadata, new: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let mut mode = old.mode() & 0o7777;
    if fchown(new, Some(old.uid()), Some(old.gid())).is_err() && fchown(new, None, Some(old.gid())).is_err() {
        let others = mode & 0o7;
        mode &= 0o707 | others << 3;
    }
    new.set_permissions(fs::Permissions::from_mode(mode))
}

/// Copies extended attributes. Those that only the system may set are skipped, as are file systems without any.
#[cfg(unix)]
fn copy_extended(old: &Path, new: &File) {
    use xattr::FileExt;
    for name in xattr::list(old).into_iter().flatten() {
        if let Ok(Some(value)) = xattr::get(old, &name) {
            let _refused = new.set_xattr(&name, &value);
        }
    }
}
