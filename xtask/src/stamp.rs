//! Build stamps. A stamp file is inside a build result and contains two fingerprints: one of the sources, and one of
//! the result. The result is up to date while both are the same. Deleting the directory of the result deletes its stamp
//! as well, and deleting a part of the result makes the stamp stale.

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
    sources: u64,
    result: BuildResult,
}

/// The result of comparing sources and result with the last [`Stamp::write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Both are unchanged.
    Current,
    /// The sources are unchanged, but the result is not.
    Damaged,
    /// The sources have changed, or there is no stamp.
    Outdated,
}

/// The files or directories that a build writes, and how the stamp checks them.
pub enum BuildResult {
    /// Compares the bytes.
    Contents(Vec<PathBuf>),
    /// Compares the names and sizes of the files in a large directory, and the targets of links. Skips hidden files,
    /// which hold the caches of programs.
    Listing(PathBuf),
    /// Compares the names of the `SQLite` databases in a directory that are not empty. Their contents change in use.
    Databases(PathBuf),
}

impl Stamp {
    /// Reads `sources` (files or directories; a missing one counts as empty) for the stamp file `file`.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn new(file: &str, sources: &[&str], result: BuildResult) -> Result<Self, Failure> {
        // 64 bits suffice: the hash detects changes and protects against nothing.
        let mut hasher = DefaultHasher::new();
        for source in sources {
            hash_contents(&mut hasher, Path::new(source)).map_err(|cause| Failure::file(source, &cause))?;
        }
        Ok(Self { file: file.into(), sources: hasher.finish(), result })
    }

    /// Compares sources and result with the last [`Stamp::write`].
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        let stored = fs::read_to_string(&self.file).unwrap_or_default();
        if !stored.starts_with(&format!("{:016x} ", self.sources)) {
            Freshness::Outdated
        } else if self.text().is_ok_and(|current| stored == current) {
            Freshness::Current
        } else {
            Freshness::Damaged
        }
    }

    /// Returns whether sources and result are unchanged since the last [`Stamp::write`].
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.freshness() == Freshness::Current
    }

    /// Writes the stamp file. Call it after the build.
    ///
    /// # Errors
    /// When the result is missing, or the file cannot be written.
    pub fn write(&self) -> Result<(), Failure> {
        let text = self.text()?;
        fs::write(&self.file, text).map_err(|cause| Failure::file(&self.file, &cause))
    }

    fn text(&self) -> Result<String, Failure> {
        Ok(format!("{:016x} {:016x}\n", self.sources, self.result.fingerprint()?))
    }
}

impl BuildResult {
    /// # Errors
    /// When a part of the result is missing.
    fn fingerprint(&self) -> Result<u64, Failure> {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Contents(paths) => {
                for path in paths {
                    fs::metadata(path)
                        .and_then(|_| hash_contents(&mut hasher, path))
                        .map_err(|cause| Failure::file(path, &cause))?;
                }
            }
            Self::Listing(directory) => {
                hash_listing(&mut hasher, directory).map_err(|cause| Failure::file(directory, &cause))?;
            }
            Self::Databases(directory) => {
                let databases = databases(directory).map_err(|cause| Failure::file(directory, &cause))?;
                if databases.is_empty() {
                    let cause = format!("{}: there is no database", directory.display());
                    return Err(Failure::new(cause, "check the section [[d1_databases]] of wrangler.toml"));
                }
                databases.hash(&mut hasher);
            }
        }
        Ok(hasher.finish())
    }
}

fn hash_contents(hasher: &mut DefaultHasher, path: &Path) -> io::Result<()> {
    path.hash(hasher);
    if path.is_dir() {
        sorted_entries(path)?.iter().try_for_each(|entry| hash_contents(hasher, entry))
    } else if path.exists() {
        fs::read(path)?.hash(hasher);
        Ok(())
    } else {
        Ok(())
    }
}

fn hash_listing(hasher: &mut DefaultHasher, directory: &Path) -> io::Result<()> {
    for entry in sorted_entries(directory)? {
        let name = entry.file_name().unwrap_or_default();
        // npm links the programs from .bin.
        if name.as_encoded_bytes().starts_with(b".") && name != ".bin" {
            continue;
        }
        entry.hash(hasher);
        let metadata = fs::symlink_metadata(&entry)?;
        if metadata.is_dir() {
            hash_listing(hasher, &entry)?;
        } else if metadata.is_symlink() {
            fs::read_link(&entry)?.hash(hasher);
        } else {
            metadata.len().hash(hasher);
        }
    }
    Ok(())
}

fn databases(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut databases = sorted_entries(directory)?;
    databases.retain(|path| {
        path.extension().is_some_and(|extension| extension == "sqlite")
            && fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
    });
    Ok(databases)
}

fn sorted_entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<_> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Build {
        directory: PathBuf,
    }

    impl Build {
        /// A build with the sources `src/` and the result `out/`.
        fn new(name: &str) -> Self {
            let directory = std::env::temp_dir().join(format!("edgefront-stamp-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&directory);
            let build = Self { directory };
            build.write("src/a", "1");
            build.write("src/deep/b", "1");
            build.write("out/deep/index.js", "built");
            build
        }

        fn path(&self, path: &str) -> PathBuf {
            self.directory.join(path)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn stamp(&self, result: BuildResult) -> Stamp {
            let (file, source) = (self.path("out/.stamp"), self.path("src"));
            Stamp::new(file.to_str().unwrap(), &[source.to_str().unwrap()], result).unwrap()
        }

        fn contents(&self) -> Stamp {
            self.stamp(BuildResult::Contents(vec![self.path("out/deep")]))
        }

        fn listing(&self) -> Stamp {
            self.stamp(BuildResult::Listing(self.path("out")))
        }

        fn databases(&self) -> Stamp {
            self.stamp(BuildResult::Databases(self.path("out/d1")))
        }
    }

    impl Drop for Build {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.directory).unwrap();
        }
    }

    #[test]
    fn a_stamp_is_stale_after_a_source_changes_appears_or_disappears() {
        let build = Build::new("sources");
        assert!(!build.contents().is_current());
        build.contents().write().unwrap();
        assert!(build.contents().is_current());
        build.write("src/a", "2");
        assert!(!build.contents().is_current());
        build.contents().write().unwrap();
        build.write("src/deep/c", "");
        assert!(!build.contents().is_current());
        build.contents().write().unwrap();
        fs::remove_file(build.path("src/deep/c")).unwrap();
        assert_eq!(build.contents().freshness(), Freshness::Outdated);
    }

    #[test]
    fn a_stamp_is_stale_after_a_file_of_the_result_is_damaged_or_removed() {
        let build = Build::new("contents");
        build.contents().write().unwrap();
        build.write("out/deep/index.js", "BUILT");
        assert_eq!(build.contents().freshness(), Freshness::Damaged);
        build.contents().write().unwrap();
        fs::remove_dir_all(build.path("out/deep")).unwrap();
        assert!(!build.contents().is_current());
        assert!(build.contents().write().is_err(), "a build without a result is not done");
    }

    #[test]
    fn a_listing_is_stale_after_a_file_is_truncated_or_a_link_is_removed_but_not_after_a_cache_changes() {
        let build = Build::new("listing");
        build.write("out/.bin/readme", "");
        std::os::unix::fs::symlink("../deep/index.js", build.path("out/.bin/program")).unwrap();
        build.listing().write().unwrap();
        build.write("out/.cache/entry", "1");
        assert!(build.listing().is_current());
        build.write("out/deep/index.js", "");
        assert_eq!(build.listing().freshness(), Freshness::Damaged);
        build.listing().write().unwrap();
        fs::remove_file(build.path("out/.bin/program")).unwrap();
        assert_eq!(build.listing().freshness(), Freshness::Damaged);
    }

    #[test]
    fn a_stamp_of_databases_is_stale_after_one_is_removed_or_emptied_but_not_after_it_is_used() {
        let build = Build::new("databases");
        build.write("out/d1/one.sqlite", "");
        assert!(build.databases().write().is_err(), "an empty file is no database");
        build.write("out/d1/one.sqlite", "tables");
        build.databases().write().unwrap();
        build.write("out/d1/one.sqlite", "tables and rows");
        build.write("out/d1/one.sqlite-wal", "rows");
        assert!(build.databases().is_current());
        build.write("out/d1/one.sqlite", "");
        assert!(!build.databases().is_current());
        fs::remove_dir_all(build.path("out/d1")).unwrap();
        assert!(!build.databases().is_current());
    }
}
