use proptest::prelude::*;

use super::*;

fn of(uri: &str) -> String {
    name(&Source { kind: Kind::Resource, place: 0, uri, media_type: "text/plain" })
}

#[test]
fn a_name_is_the_last_segment_of_the_uri() {
    for (uri, expected) in [
        ("file:///srv/reports/2024.pdf", "2024.pdf"),
        ("https://example.com/a/b.csv?x=/y.txt#/z", "b.csv"),
        ("https://example.com/folder/", "folder"),
        ("demo://resource/static/document/features.md", "features.md"),
        ("note://first", "first"),
        ("urn:example:report", "report"),
        ("file:///C:\\Users\\me\\plan.docx", "plan.docx"),
        ("C:\\plan.docx", "plan.docx"),
        ("notes.txt", "notes.txt"),
        ("https://example.com/%E8%AE%A2%E5%8D%95%20%231.xlsx", "订单 #1.xlsx"),
        ("https://example.com/100%25%2525.txt", "100%%25.txt"),
        ("https://example.com/100%.txt", "100%.txt"),
        ("a/%ff%fe.bin", "__.bin"),
    ] {
        assert_eq!(of(uri), expected, "{uri}");
    }
}

#[test]
fn without_a_usable_uri_a_name_says_kind_and_place_and_media_type() {
    for uri in
        ["", "https://example.com", "https://example.com/", "data:text/plain,abc", "a/%2e%2e", "a/..", "///", "a/%00"]
    {
        assert_eq!(of(uri), "file-1.txt", "{uri}");
    }
    for (kind, place, media_type, expected) in [
        (Kind::Text, 0, "", "text-1.txt"),
        (Kind::Text, 4, "application/json", "text-5.json"),
        (Kind::Image, 1, "image/png", "image-2.png"),
        (Kind::Image, 1, "IMAGE/JPEG; q=1", "image-2.jpg"),
        (Kind::Audio, 2, "audio/wav", "audio-3.wav"),
        (Kind::Resource, u32::MAX, "application/x-odd", "file-4294967296.bin"),
        (Kind::Resource, 0, "application/ld+json", "file-1.json"),
        (Kind::Resource, 0, "../../x", "file-1.bin"),
    ] {
        assert_eq!(name(&Source { kind, place, uri: "", media_type }), expected);
    }
}

#[test]
fn a_name_leads_nowhere_hides_nothing_and_is_no_option() {
    for (text, expected) in [
        ("..%2F..%2Fetc%2Fpasswd", "_.._etc_passwd"),
        ("%2e%2e%5cx", "_x"),
        (".env", "env"),
        ("--force", "force"),
        (". - .x", "x"),
        ("a. . .", "a"),
        ("a%0Ab%00c", "abc"),
        ("invoice%E2%80%AEfdp.exe", "invoicefdp.exe"),
        ("zero%E2%80%8Bwidth", "zerowidth"),
        ("a:b*c?", "a_b_c"),
        ("cafe%CC%81.txt", "café.txt"),
        ("a%C2%A0b%E3%80%80c", "a b c"),
        // GREEK QUESTION MARK and GREEK VARIA become ASCII when normalized.
        ("a%CD%BEb%E1%BF%AFc", "a;b_c"),
    ] {
        assert_eq!(of(text), expected, "{text}");
    }
}

#[test]
fn a_device_of_windows_is_no_name() {
    for (text, expected) in [
        ("con", "con_"),
        ("NUL.txt", "NUL_.txt"),
        ("com1.tar.gz", "com1_.tar.gz"),
        ("LPT²", "LPT²_"),
        ("aux .txt", "aux_.txt"),
        ("CONIN$", "CONIN$_"),
        ("com", "com"),
        ("com10", "com10"),
        ("console.log", "console.log"),
    ] {
        assert_eq!(safe(text).unwrap(), expected);
    }
}

#[test]
fn a_long_name_is_cut_before_its_extension_and_between_letters() {
    let name = safe(&format!("{}.tar", "订".repeat(100))).unwrap();
    assert_eq!(name, format!("{}.tar", "订".repeat(38)));
    assert_eq!(safe(&"a".repeat(500)).unwrap().len(), NAME_BYTES);
    assert_eq!(safe(&format!("a.{}", "b".repeat(500))).unwrap().len(), NAME_BYTES);
    let long = safe(&"a".repeat(500)).unwrap();
    assert_eq!(numbered(&long, 12), format!("{}-12", "a".repeat(117)));
}

#[test]
fn blocks_of_one_result_with_one_name_get_distinct_names_in_order() {
    let source = |place, uri| Source { kind: Kind::Resource, place, uri, media_type: "" };
    let sources =
        [source(0, "x/a.txt"), source(1, "y/A.TXT"), source(2, "z/a-2.txt"), source(3, "z/a.txt"), source(4, "")];
    let expected = ["a.txt", "A-2.TXT", "a-2-2.txt", "a-3.txt", "file-5.bin"];
    assert_eq!(names(&sources, &BTreeSet::new()), expected);
    assert_eq!(names(&sources[..1], &BTreeSet::from(["a.txt".to_owned()])), ["a-2.txt"]);
}

fn assert_safe(name: &str) {
    assert!(!name.is_empty() && name.len() <= NAME_BYTES, "{name:?}");
    assert!(!name.starts_with(['.', '-', ' ']) && !name.ends_with(['.', ' ']), "{name:?}");
    let bad = |letter: char| letter.is_control() || is_invisible(letter) || "<>:\"/\\|?*`".contains(letter);
    assert!(!name.contains(bad), "{name:?}");
    assert!(!is_device(name), "{name:?}");
    assert!(unicode_normalization::is_nfc(name), "{name:?}");
    assert_eq!(std::path::Path::new(name).components().count(), 1, "{name:?}");
}

proptest! {
    #[test]
    fn every_name_is_safe_and_made_the_same_again(uri in "\\PC{0,60}", media in "\\PC{0,20}", place: u32) {
        let source = Source { kind: Kind::Image, place, uri: &uri, media_type: &media };
        let first = name(&source);
        assert_safe(&first);
        prop_assert_eq!(&first, &name(&source));
    }

    #[test]
    fn every_text_is_made_safe_and_what_is_safe_stays(text in any::<String>(), repeat in 1_usize..30) {
        if let Some(name) = safe(&text.repeat(repeat)) {
            assert_safe(&name);
            prop_assert_eq!(safe(&name), Some(name));
        }
    }

    #[test]
    fn odd_texts_are_made_safe(text in "[ .\\-/\\\\%cCoOnN1a\u{301}\u{202e}\u{ff0f}]{0,200}") {
        if let Some(name) = safe(&percent_decoded(&text)) {
            assert_safe(&name);
            prop_assert_eq!(safe(&name), Some(name));
        }
    }

    #[test]
    fn names_of_one_result_are_distinct_and_safe(uris in prop::collection::vec("[aA./%-]{0,4}(\\.txt)?", 0..30)) {
        let sources: Vec<Source<'_>> = uris.iter().zip(0..)
            .map(|(uri, place)| Source { kind: Kind::Resource, place, uri, media_type: "" }).collect();
        let names = names(&sources, &BTreeSet::new());
        for name in &names {
            assert_safe(name);
        }
        let keys: BTreeSet<String> = names.iter().map(|name| key(name)).collect();
        prop_assert_eq!(keys.len(), names.len());
    }

    #[test]
    fn a_numbered_name_is_safe(text in "\\PC{1,200}", number in 2_usize..2_000) {
        if let Some(name) = safe(&text) {
            assert_safe(&numbered(&name, number));
        }
    }
}
