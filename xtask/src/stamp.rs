//! Build stamps. A stamp file is beside a build result and contains the fingerprint of its sources. The result is up to
//! date while the fingerprint is the same. Deleting the directory of the result deletes its stamp as well.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// The fingerprint of source files, taken before the build. A source that changes during the build makes the stamp
/// stale.
pub struct Stamp {
    file: PathBuf,
    fingerprint: String,
}

impl Stamp {
    /// Reads `sources` (files or directories; a missing one counts as empty) for the stamp file `file`.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn new(file: &str, sources: &[&str]) -> Result<Self, Failure> {
        // 64 bits suffice: the hash detects changes and protects against nothing.
        let mut hasher = DefaultHasher::new();
        for source in sources {
            hash_tree(&mut hasher, Path::new(source)).map_err(|cause| Failure::file(source, &cause))?;
        }
        Ok(Self { file: file.into(), fingerprint: format!("{:016x}\n", hasher.finish()) })
    }

    /// Returns whether the sources are unchanged since the last [`Stamp::write`].
    #[must_use]
    pub fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|stored| stored == self.fingerprint)
    }

    /// Writes the stamp file. Call it after the build.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self) -> Result<(), Failure> {
        fs::write(&self.file, &self.fingerprint).map_err(|cause| Failure::file(&self.file, &cause))
    }
}

fn hash_tree(hasher: &mut DefaultHasher, path: &Path) -> io::Result<()> {
    path.hash(hasher);
    if path.is_dir() {
        let mut entries: Vec<_> =
            fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        entries.sort();
        entries.iter().try_for_each(|entry| hash_tree(hasher, entry))
    } else if path.exists() {
        fs::read(path)?.hash(hasher);
        Ok(())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_stale_after_a_file_changes_appears_or_disappears() {
        let dir = std::env::temp_dir().join(format!("edgefront-stamp-{}", std::process::id()));
        fs::create_dir_all(dir.join("src/deep")).unwrap();
        fs::write(dir.join("src/a"), "1").unwrap();
        let (file, source) = (dir.join("stamp"), dir.join("src"));
        let stamp = || Stamp::new(file.to_str().unwrap(), &[source.to_str().unwrap()]).unwrap();

        assert!(!stamp().is_current());
        stamp().write().unwrap();
        assert!(stamp().is_current());
        fs::write(source.join("a"), "2").unwrap();
        assert!(!stamp().is_current());
        stamp().write().unwrap();
        fs::write(source.join("deep/b"), "").unwrap();
        assert!(!stamp().is_current());
        stamp().write().unwrap();
        fs::remove_file(source.join("deep/b")).unwrap();
        assert!(!stamp().is_current());

        fs::remove_dir_all(dir).unwrap();
    }
}
