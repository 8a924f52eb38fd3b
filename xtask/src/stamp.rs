//! Is it up to date? A stamp lies beside what was made and holds the fingerprint of what it was made from; who deletes the one deletes the other.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// The fingerprint of some files, taken before the work: what changes during it makes the stamp stale.
pub struct Stamp {
    file: PathBuf,
    fingerprint: String,
}

impl Stamp {
    /// Reads all of `sources` (files or directories; what does not exist counts as empty), for the stamp `file`.
    ///
    /// # Errors
    /// When a source can not be read.
    pub fn new(file: &str, sources: &[&str]) -> Result<Self, Failure> {
        // 64 bits are enough: this tells a file from its older self, and is no defence.
        let mut hasher = DefaultHasher::new();
        for source in sources {
            add(&mut hasher, Path::new(source)).map_err(|cause| Failure::file(source, &cause))?;
        }
        Ok(Self { file: file.into(), fingerprint: format!("{:016x}\n", hasher.finish()) })
    }

    #[must_use]
    pub fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|stamped| stamped == self.fingerprint)
    }

    /// Call it after the work.
    ///
    /// # Errors
    /// When the stamp can not be written.
    pub fn set(&self) -> Result<(), Failure> {
        fs::write(&self.file, &self.fingerprint).map_err(|cause| Failure::file(&self.file, &cause))
    }
}

fn add(hasher: &mut DefaultHasher, path: &Path) -> io::Result<()> {
    path.hash(hasher);
    if path.is_dir() {
        let mut entries: Vec<_> =
            fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        entries.sort();
        entries.iter().try_for_each(|entry| add(hasher, entry))
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
    fn a_stamp_is_stale_when_a_file_changes_appears_or_goes() {
        let dir = std::env::temp_dir().join(format!("edgefront-stamp-{}", std::process::id()));
        fs::create_dir_all(dir.join("src/deep")).unwrap();
        fs::write(dir.join("src/a"), "1").unwrap();
        let (file, source) = (dir.join("stamp"), dir.join("src"));
        let stamp = || Stamp::new(file.to_str().unwrap(), &[source.to_str().unwrap()]).unwrap();

        assert!(!stamp().is_current());
        stamp().set().unwrap();
        assert!(stamp().is_current());
        fs::write(source.join("a"), "2").unwrap();
        assert!(!stamp().is_current());
        stamp().set().unwrap();
        fs::write(source.join("deep/b"), "").unwrap();
        assert!(!stamp().is_current());
        stamp().set().unwrap();
        fs::remove_file(source.join("deep/b")).unwrap();
        assert!(!stamp().is_current());

        fs::remove_dir_all(dir).unwrap();
    }
}
