use std::net::SocketAddr;

use secrecy::ExposeSecret as _;

use super::*;

fn source(pairs: &[(&str, &str)]) -> Source {
    Source::from_pairs(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

fn names(source: &Source) -> Vec<String> {
    source.finish().unwrap_err().0.into_iter().map(|problem| problem.name).collect()
}

#[test]
fn all_errors_are_reported_at_once_with_the_name_and_what_it_takes_and_never_the_value() {
    let mut source = source(&[
        ("GATEHOUSE_OPS_LISTEN", "hunter2"),
        ("GATEHOUSE_KEYRING_FILE", "/does/not/exist"),
        ("GATEHOUSE_LOG_FORMAT", "json"),
    ]);
    source.add_toml(
        "gatehouse.toml",
        "edge_listen = \"hunter2\"\nedge_listne = \"127.0.0.1:1\"\ndatabase_url = { a = 1 }",
    );
    let default: SocketAddr = "127.0.0.1:1".parse().unwrap();
    assert_eq!(source.value("GATEHOUSE_OPS_LISTEN", default), default);
    assert_eq!(source.value("GATEHOUSE_EDGE_LISTEN", default), default);
    assert!(source.secret("GATEHOUSE_KEYRING").is_none());
    source.missing("DATABASE_URL");
    assert_eq!(source.text("GATEHOUSE_LOG_FORMAT"), Some("json"));
    let expected = [
        "gatehouse.toml: database_url",
        "gatehouse.toml: edge_listne",
        "GATEHOUSE_OPS_LISTEN",
        "GATEHOUSE_EDGE_LISTEN",
        "GATEHOUSE_KEYRING_FILE",
        "DATABASE_URL",
    ];
    assert_eq!(names(&source), expected);
    let words = source.finish().unwrap_err().to_string();
    assert!(
        words.contains("GATEHOUSE_OPS_LISTEN: has a wrong value; it takes an address and port, such as 127.0.0.1:7310")
    );
    assert!(!words.contains("hunter2"), "{words}");
}

#[test]
fn the_environment_wins_over_the_file_and_an_empty_variable_is_not_set() {
    let mut source = source(&[("GATEHOUSE_LOG", "debug"), ("GATEHOUSE_LOG_FORMAT", "")]);
    source.add_toml("f", "log = 'info'\nlog_format = 'human'\nupstream_allow = ['10.0.0.0/8', 'host.example']");
    assert_eq!(source.text("GATEHOUSE_LOG"), Some("debug"));
    assert_eq!(source.text("GATEHOUSE_LOG_FORMAT"), Some("human"));
    assert_eq!(source.list::<String>("GATEHOUSE_UPSTREAM_ALLOW"), ["10.0.0.0/8", "host.example"]);
    source.finish().unwrap();
}

#[test]
fn a_file_that_is_no_toml_is_reported_by_line_without_quoting_it() {
    let mut source = source(&[]);
    source.add_toml("f", "log = 'info'\nkeyring = hunter2");
    let words = source.finish().unwrap_err().to_string();
    assert!(words.contains("f: is not TOML (line 2)") && !words.contains("hunter2"), "{words}");
}

#[test]
fn a_wrong_entry_of_a_list_is_reported() {
    let source = source(&[("GATEHOUSE_UPSTREAM_ALLOW", "1, x")]);
    assert!(source.list::<u8>("GATEHOUSE_UPSTREAM_ALLOW").is_empty());
    assert_eq!(names(&source), ["GATEHOUSE_UPSTREAM_ALLOW"]);
}

#[test]
fn a_source_prints_names_and_no_values() {
    let source = source(&[("GATEHOUSE_SERVICE_TOKEN", " hunter2\n")]);
    assert_eq!(format!("{source:?}"), r#"{"GATEHOUSE_SERVICE_TOKEN"}"#);
    assert_eq!(source.secret("GATEHOUSE_SERVICE_TOKEN").unwrap().expose_secret(), "hunter2");
}

#[test]
fn the_variables_are_in_order_and_each_says_what_it_takes() {
    assert!(VARIABLES.is_sorted());
    assert!(VARIABLES.iter().all(|(_, takes)| takes.len() > 10));
}
