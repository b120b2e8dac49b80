use proptest::prelude::*;

use super::*;

fn decode(chunks: &[&[u8]]) -> Vec<Event> {
    let mut decoder = Decoder::new(1 << 20);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(event) = decoder.next_event().unwrap() {
            events.push(event);
        }
    }
    events
}

fn data(text: &str) -> Event {
    Event { data: Bytes::copy_from_slice(text.as_bytes()), ..Event::default() }
}

#[test]
fn the_three_line_endings_mean_the_same() {
    for end in ["\n", "\r", "\r\n"] {
        let stream = ["event: message", "id: 1", "data: a", "data:b", "", "data: c", "", ""].join(end);
        let first = Event { name: Some("message".into()), id: Some("1".into()), ..data("a\nb") };
        assert_eq!(decode(&[stream.as_bytes()]), [first, data("c")], "{end:?}");
    }
}

#[test]
fn comments_unknown_fields_and_a_byte_order_mark_are_passed_over() {
    let stream = b"\xef\xbb\xbf: hello\nfoo: bar\nno colon\n\n:\n\ndata: x\n\n";
    assert_eq!(decode(&[stream]), [data("x")]);
    assert_eq!(decode(&[b"\xef", b"\xbb", b"\xbfdata: x\n", b"\n"]), [data("x")]);
}

#[test]
fn a_priming_event_carries_its_id_and_no_message() {
    let events = decode(&[b"id: p1\nretry: 2500\ndata:\n\n"]);
    assert_eq!(events[0].id.as_deref(), Some("p1"));
    assert_eq!(events[0].retry, Some(Duration::from_millis(2500)));
    assert!(!events[0].is_message());
}

#[test]
fn odd_field_values_are_read_as_the_standard_says() {
    assert_eq!(decode(&[b"data\n\n"])[0].data, "");
    assert_eq!(decode(&[b"data:  two spaces\n\n"])[0].data, " two spaces");
    assert_eq!(decode(&[b"id: a\0b\ndata: x\n\n"])[0].id, None);
    assert_eq!(decode(&[b"retry: 1s\ndata: x\n\n"])[0].retry, None);
    assert!(!decode(&[b"event: endpoint\ndata: /x\n\n"])[0].is_message());
}

#[test]
fn what_follows_the_last_blank_line_is_no_event() {
    assert_eq!(decode(&[b"data: a\n\ndata: half\n"]), [data("a")]);
}

#[test]
fn an_event_in_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"data: payload\n\n");
    let mut decoder = Decoder::new(100);
    decoder.push(chunk.clone());
    let event = decoder.next_event().unwrap().unwrap();
    assert_eq!(event.data.as_ptr(), chunk[6..].as_ptr());
}

#[test]
fn an_event_beyond_the_bound_is_refused_before_it_is_whole() {
    let refused = |chunks: &[&[u8]]| {
        let mut decoder = Decoder::new(16);
        chunks.iter().any(|chunk| {
            decoder.push(Bytes::copy_from_slice(chunk));
            loop {
                match decoder.next_event() {
                    Ok(Some(_)) => {}
                    Ok(None) => return false,
                    Err(error) => return error == EventTooLarge { most: 16 },
                }
            }
        })
    };
    assert!(refused(&[b"data: 0123456", b"7890", b"12"]));
    assert!(refused(&[b"data: 01234567890\n\n"]));
    assert!(refused(&[b"data: 1\ndata: 2\ndata: 3\n"]));
    assert!(refused(&[b"id: 0123456\nretry: 123\n"]));
    assert!(!refused(&[b":01234567\n:01234567\n:01234567\ndata: 1\n\n"]), "comments are no part of an event");
    assert!(!refused(&[b"data: 1\n\ndata: 2\n\ndata: 3\n\n:comment\n\n"]));
}

proptest! {
    /// Whatever the stream and wherever it is cut, the events are those of the whole.
    #[test]
    fn any_chunking_gives_the_same_events(
        stream in "((data|id|event|retry|:|x)(:| |: |[a-c0-9\u{e9}\u{1f600}]){0,4}(\n|\r|\r\n){1,2}){0,12}",
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let bytes = stream.as_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let chunks: Vec<&[u8]> = at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = decode(&[bytes]);
        prop_assert_eq!(&decode(&chunks), &whole);
        prop_assert_eq!(&decode(&single), &whole);
    }

    #[test]
    fn what_is_encoded_reads_back(text in "[a-z\u{e9}\n]{0,40}", id in proptest::option::of("[!-~]{1,12}")) {
        let mut buffer = Vec::new();
        encode_retry(&mut buffer, Duration::from_millis(70));
        encode(&mut buffer, id.as_deref(), text.as_bytes());
        buffer.extend_from_slice(KEEP_ALIVE);
        let events = decode(&[&buffer]);
        prop_assert_eq!(events.len(), 1);
        prop_assert_eq!(&events[0].data, text.as_bytes());
        prop_assert_eq!(events[0].id.as_deref(), id.as_deref());
        prop_assert_eq!(events[0].retry, Some(Duration::from_millis(70)));
    }
}
