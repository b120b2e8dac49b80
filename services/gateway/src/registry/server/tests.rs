use proptest::prelude::*;

use super::*;

#[test]
fn a_name_has_no_double_underscore_and_none_at_its_ends() {
    for good in ["a", "0", "-", "a_b", "a-b", "a--b", &"x".repeat(32)] {
        assert!(name(good).is_ok(), "{good}");
    }
    for bad in ["", "_a", "a_", "a__b", "A", "a.b", "a b", "é", "_", &"x".repeat(33)] {
        assert!(name(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_url_is_absolute_and_http_and_bare() {
    for good in ["http://a", "https://mcp.example.com/mcp?x=1", "HTTP://127.0.0.1:8080/", "http://[::1]:1/mcp"] {
        assert!(url(good).is_ok(), "{good}");
    }
    let bad = [
        "",
        "mcp",
        "/mcp",
        "//a/b",
        "http:a",
        "http:/a",
        "http://",
        "http:///a",
        "ftp://a",
        "file:///etc/passwd",
        "http://u@a",
        "http://u:p@a",
        "http://@a",
        "http://a#f",
        "http://a#",
        "http://a b",
        " http://a",
        "http://a\n",
        "http://a\\b",
        "http://a:0/",
        "http://a:99999/",
        "http://[::1",
        "https://?q",
        "javascript:alert(1)",
    ];
    for text in bad {
        assert!(url(text).is_err(), "{text}");
    }
    assert!(url(&format!("http://a/{}", "x".repeat(URL_BYTES))).is_err());
}

#[test]
fn a_password_in_a_url_is_not_repeated_in_the_words() {
    assert!(!url("http://user:hidden@a/").unwrap_err().contains("hidden"));
    assert!(!url("http://user:hidden word@a/").unwrap_err().contains("hidden"));
}

#[test]
fn timeouts_are_whole_milliseconds_between_their_bounds() {
    assert!(connect_timeout(Duration::from_secs(1)).is_ok() && connect_timeout(Duration::from_mins(2)).is_ok());
    assert!(connect_timeout(Duration::from_millis(999)).is_err());
    assert!(connect_timeout(Duration::from_millis(120_001)).is_err());
    assert!(connect_timeout(Duration::from_micros(1_000_500)).is_err());
    assert!(request_timeout(LONGEST_REQUEST_TIMEOUT).is_ok());
    assert!(concurrency(0).is_err() && concurrency(-1).is_err() && concurrency(10_001).is_err());
}

proptest! {
    #[test]
    fn a_url_that_passes_passes_again_and_stays_the_same(
        text in "https?://[a-z0-9.]{1,12}(:[0-9]{1,5})?(/\\PC{0,12})?",
    ) {
        if let Ok(first) = url(&text) {
            prop_assert_eq!(url(&first), Ok(first));
        }
    }

    #[test]
    fn a_url_that_passes_has_no_credentials_and_no_fragment(text in "\\PC{0,30}", scheme in "https?://") {
        if let Ok(passed) = url(&format!("{scheme}{text}")) {
            let parsed = Url::parse(&passed).unwrap();
            prop_assert!(parsed.username().is_empty() && parsed.password().is_none());
            prop_assert!(parsed.fragment().is_none());
        }
    }

    #[test]
    fn a_name_that_passes_can_be_split_from_its_tool(text in "[a-z0-9_-]{1,32}", tool in "[a-z_]{1,8}") {
        if name(&text).is_ok() {
            let exposed = format!("{text}__{tool}");
            let (server, _) = exposed.split_once("__").unwrap();
            prop_assert_eq!(server, text);
        }
    }
}
