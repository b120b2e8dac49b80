use proptest::prelude::*;

use super::*;

fn keyring(ids: &[(&str, u8)]) -> Keyring {
    let entries: Vec<_> =
        ids.iter().map(|(id, byte)| format!("{id}:{}", STANDARD.encode([*byte; KEY_BYTES]))).collect();
    Keyring::parse(&SecretString::from(entries.join(","))).unwrap()
}

fn place() -> Place {
    Place::new("servers", "headers_sealed", "row-1")
}

#[test]
fn a_generated_keyring_parses_and_no_two_are_alike() {
    let (one, two) = (Keyring::generate().unwrap(), Keyring::generate().unwrap());
    assert_ne!(one.expose_secret(), two.expose_secret());
    Keyring::parse(&one).unwrap();
}

#[test]
fn a_wrong_keyring_is_refused_by_entry_and_never_quoted() {
    let good = format!("a:{}", STANDARD.encode([1; 32]));
    let short = format!("{good},b:{}", STANDARD.encode([1; 31]));
    let cases = [
        (String::new(), ParseError::Empty),
        (" ,\n".to_owned(), ParseError::Empty),
        ("supersecret".to_owned(), ParseError::Entry(1)),
        (format!(":{good}"), ParseError::Entry(1)),
        (format!("{good},b b:AAAA"), ParseError::Entry(2)),
        (format!("{good},{good}"), ParseError::Duplicate(2)),
        (format!("{good}\nb:not base64"), ParseError::Key(2)),
        (short, ParseError::Key(2)),
    ];
    for (text, expected) in cases {
        let error = Keyring::parse(&SecretString::from(text)).unwrap_err();
        assert_eq!(error, expected);
        assert!(!error.to_string().contains("supersecret"));
    }
}

#[test]
fn a_keyring_prints_its_key_ids_and_no_key() {
    let text = format!("{:?}", keyring(&[("new", 7), ("old", 9)]));
    assert_eq!(text, r#"["new", "old"]"#);
}

#[test]
fn after_rotation_old_values_open_and_new_ones_use_the_new_key() {
    let old = keyring(&[("old", 1)]);
    let both = keyring(&[("new", 2), ("old", 1)]);
    let sealed = old.seal(&place(), b"secret").unwrap();
    assert_eq!(both.open(&place(), &sealed).unwrap().expose_secret(), b"secret");
    assert!(both.is_outdated(&sealed) && !old.is_outdated(&sealed));
    let sealed = both.seal(&place(), b"secret").unwrap();
    assert_eq!(old.open(&place(), &sealed).unwrap_err(), OpenError::UnknownKey("new".to_owned()));
    assert!(!both.is_outdated(&sealed));
}

#[test]
fn derived_keys_differ_by_purpose_and_key_and_rotation_keeps_the_old_ones() {
    let old = keyring(&[("old", 1)]);
    let both = keyring(&[("new", 2), ("old", 1)]);
    let all = both.derive_all("edge");
    assert_eq!(all[0].expose_secret(), both.derive("edge").expose_secret());
    assert_eq!(all[1].expose_secret(), old.derive("edge").expose_secret());
    assert_ne!(all[0].expose_secret(), all[1].expose_secret());
    assert_ne!(old.derive("edge").expose_secret(), old.derive("other").expose_secret());
    assert_ne!(old.derive("edge").expose_secret(), &[1; KEY_BYTES]);
    assert_ne!(old.derive("edge").expose_secret(), &[0; KEY_BYTES]);
}

proptest! {
    #[test]
    fn what_is_sealed_opens_in_its_place_and_shows_nothing(plaintext in prop::collection::vec(any::<u8>(), 0..300)) {
        let keys = keyring(&[("k1", 1)]);
        let sealed = keys.seal(&place(), &plaintext).unwrap();
        let opened = keys.open(&place(), &sealed).unwrap();
        prop_assert_eq!(opened.expose_secret(), plaintext.as_slice());
        prop_assert_ne!(&sealed, &keys.seal(&place(), &plaintext).unwrap(), "each has a nonce of its own");
        if plaintext.len() >= 8 {
            prop_assert!(!sealed.windows(plaintext.len()).any(|window| window == plaintext));
        }
    }

    #[test]
    fn nothing_opens_in_another_place(row in "[a-z0-9]{0,5}", shift in 0_usize..3) {
        let keys = keyring(&[("k1", 1)]);
        let sealed = keys.seal(&Place::new("tab", "col", &row), b"secret").unwrap();
        // Moved by row, by column, by table, and with the same letters split at another point.
        let others = [
            Place::new("tab", "col", format!("{row}x")),
            Place::new("tab", "co", format!("l{row}")),
            Place::new("ta", "bcol", &row),
        ];
        prop_assert!(keys.open(&others[shift], &sealed).is_err());
    }

    #[test]
    fn another_key_of_the_same_id_opens_nothing(byte in 2_u8..) {
        let sealed = keyring(&[("k1", 1)]).seal(&place(), b"secret").unwrap();
        let refused = keyring(&[("k1", byte)]).open(&place(), &sealed).unwrap_err();
        prop_assert_eq!(refused, OpenError::Refused("k1".to_owned()));
    }

    #[test]
    fn nothing_that_was_cut_or_changed_opens(
        plaintext in prop::collection::vec(any::<u8>(), 0..40), at in any::<prop::sample::Index>(), bit in 0_u8..8,
    ) {
        let keys = keyring(&[("k1", 1), ("k3", 1)]);
        let sealed = keys.seal(&place(), &plaintext).unwrap();
        let at = at.index(sealed.len());
        prop_assert!(keys.open(&place(), &sealed[..at]).is_err());
        let mut flipped = sealed.clone();
        // The flip may turn the id into that of the other key, which has the same bytes: the header is bound too.
        flipped[at] ^= 1 << bit;
        prop_assert!(keys.open(&place(), &flipped).is_err());
        let mut longer = sealed;
        longer.push(0);
        prop_assert!(keys.open(&place(), &longer).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_open_and_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(keyring(&[("k1", 1)]).open(&place(), &bytes).is_err());
    }
}
