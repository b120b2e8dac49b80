//! Pure. Which path each file of a result gets, and which of them the quota leaves out.

use std::collections::BTreeSet;

use gatehouse_workspace::name::{self, Source};

use super::FileToSave;

/// A file of the call that was saved before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Place within the result.
    pub place: u32,
    /// Its name: the last part of its path.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of what was saved.
    pub sha256: Vec<u8>,
    /// Whether the database has the bytes.
    pub in_platform: bool,
}

/// What to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Save it.
    New,
    /// The very same was saved before.
    Known {
        /// Whether the database has the bytes.
        in_platform: bool,
    },
    /// The session would have more bytes than it may.
    OverQuota,
    /// The session is no more.
    Deleted,
}

/// What to do with a file, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Name within the call's folder.
    pub name: String,
    /// What to do.
    pub step: Step,
}

impl Planned {
    /// For a session that is no more.
    pub const fn deleted() -> Self {
        Self { name: String::new(), step: Step::Deleted }
    }
}

/// Plans the files of a result. `used` are the bytes of the session's files so far, with those of `known`; `known` are the
/// files of this call. What is known keeps its name and counts once. Other content at a known place is another file.
pub(super) fn plan(files: &[FileToSave], hashes: &[[u8; 32]], known: &[Known], used: u64, quota: u64) -> Vec<Planned> {
    let before = |file: &FileToSave| known.iter().find(|known| known.place == file.place);
    let same = |file: &FileToSave, sha256: &[u8; 32]| before(file).filter(|known| known.sha256 == sha256);
    let taken: BTreeSet<String> = known.iter().map(|known| name::key(&known.name)).collect();
    let fresh = files.iter().zip(hashes).filter(|(file, sha256)| same(file, sha256).is_none());
    let sources: Vec<Source<'_>> = fresh.map(|(file, _)| source(file)).collect();
    let mut names = name::names(&sources, &taken).into_iter();
    let mut used = used;
    let mut planned = Vec::with_capacity(files.len());
    for (file, sha256) in files.iter().zip(hashes) {
        if let Some(known) = same(file, sha256) {
            let step = Step::Known { in_platform: known.in_platform };
            planned.push(Planned { name: known.name.clone(), step });
            continue;
        }
        // There is a name for each that is not known.
        let name = names.next().unwrap_or_default();
        let replaced = before(file).map_or(0, |known| known.size);
        let size = file.content.len() as u64;
        let then = used.saturating_sub(replaced).saturating_add(size);
        let step = if then > quota { Step::OverQuota } else { Step::New };
        if step == Step::New {
            used = then;
        }
        planned.push(Planned { name, step });
    }
    planned
}

fn source(file: &FileToSave) -> Source<'_> {
    Source { kind: file.kind, place: file.place, uri: &file.uri, media_type: &file.media_type }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gatehouse_workspace::Kind;
    use proptest::prelude::*;

    use super::*;

    fn file(place: u32, uri: &str, size: usize) -> FileToSave {
        let media_type = "text/plain".to_owned();
        FileToSave {
            place,
            kind: Kind::Resource,
            uri: uri.to_owned(),
            media_type,
            content: Bytes::from(vec![b'x'; size]),
        }
    }

    fn known(place: u32, name: &str, size: u64, hash: u8) -> Known {
        Known { place, name: name.to_owned(), size, sha256: vec![hash; 32], in_platform: false }
    }

    fn words(planned: &[Planned]) -> Vec<String> {
        planned.iter().map(|planned| format!("{} {:?}", planned.name, planned.step)).collect()
    }

    #[test]
    fn the_quota_leaves_out_what_does_not_fit_and_takes_what_does() {
        let files = [file(0, "a", 6), file(1, "b", 5), file(2, "c", 4), file(3, "d", 1)];
        let planned = plan(&files, &[[0; 32]; 4], &[], 90, 100);
        assert_eq!(words(&planned), ["a New", "b OverQuota", "c New", "d OverQuota"]);
    }

    #[test]
    fn what_is_known_keeps_its_name_and_counts_once() {
        let files = [file(0, "a.txt", 50), file(1, "a.txt", 50), file(2, "a.txt", 1)];
        let known = [known(0, "a-7.txt", 50, 0), known(1, "a.txt", 50, 1)];
        let planned = plan(&files, &[[0; 32], [1; 32], [2; 32]], &known, 100, 101);
        let yes = "Known { in_platform: false }";
        assert_eq!(words(&planned), [format!("a-7.txt {yes}"), format!("a.txt {yes}"), "a-2.txt New".to_owned()]);
    }

    #[test]
    fn other_content_at_a_known_place_is_another_file_in_the_room_of_the_first() {
        let planned = plan(&[file(0, "a.txt", 60)], &[[9; 32]], &[known(0, "a.txt", 50, 0)], 90, 100);
        assert_eq!(words(&planned), ["a-2.txt New"]);
        let planned = plan(&[file(0, "a.txt", 61)], &[[9; 32]], &[known(0, "a.txt", 50, 0)], 90, 100);
        assert_eq!(words(&planned), ["a-2.txt OverQuota"]);
    }

    proptest! {
        #[test]
        fn no_plan_passes_the_quota_or_gives_a_name_twice(
            sizes in prop::collection::vec(0_usize..50, 0..12), used in 0_u64..200, quota in 0_u64..200,
        ) {
            let files: Vec<FileToSave> = sizes.iter().zip(0..).map(|(size, place)| file(place, "x/n", *size)).collect();
            let hashes = vec![[0; 32]; files.len()];
            let planned = plan(&files, &hashes, &[], used, quota);
            let new: u64 = files.iter().zip(&planned).filter(|(_, planned)| planned.step == Step::New)
                .map(|(file, _)| file.content.len() as u64).sum();
            prop_assert!(new == 0 || used + new <= quota);
            let names: BTreeSet<&String> = planned.iter().map(|planned| &planned.name).collect();
            prop_assert_eq!(names.len(), files.len());
            prop_assert_eq!(&planned, &plan(&files, &hashes, &[], used, quota));
        }
    }
}
