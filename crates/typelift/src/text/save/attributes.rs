//! What a file has besides its bytes, carried over to the one that takes its place.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Gives `new` the permissions, and where the system allows it the owner and the extended attributes, of the file at `old`;
/// nothing where there is none.
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

/// Owner and permissions. A group that the file cannot be given leaves its rights to nobody.
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

/// Extended attributes. Those that only the system may set, and file systems without any, are passed over.
#[cfg(unix)]
fn copy_extended(old: &Path, new: &File) {
    use xattr::FileExt;
    for name in xattr::list(old).into_iter().flatten() {
        if let Ok(Some(value)) = xattr::get(old, &name) {
            let _refused = new.set_xattr(&name, &value);
        }
    }
}
