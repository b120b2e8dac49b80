//! Holds the house style: sizes, layers, and words that do not belong in a finished project.
//!
//! Each rule is tried on a sample that breaks it, so that a rule that stopped working fails here too.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "style/mask.rs"]
mod mask;
#[path = "style/project.rs"]
mod project;
#[path = "style/rules.rs"]
mod rules;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use rules::{File, check};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is two folders deep").to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[track_caller]
fn assert_clean(found: &[String]) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_file_keeps_the_rules() {
    let files = project::files(&root());
    assert!(files.iter().filter(|file| file.is_rust()).count() > 20, "the files were not found");
    assert_clean(&files.iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn services_have_the_same_skeleton_and_do_not_know_each_other() {
    let files = project::files(&root());
    let paths: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
    let manifests = files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let mut found = project::skeleton(&paths);
    found.extend(manifests.flat_map(project::dependencies));
    assert_clean(&found);
}

#[test]
fn the_document_on_errors_has_a_heading_for_each_reason_and_no_other() {
    let rows = project::reasons(&read("shared/platform/src/error.rs"));
    let steps = project::step_reasons(&read("proto/gatehouse/gateway/v1/servers.proto"));
    assert!(rows.len() > 10 && steps.len() > 5, "{rows:?} {steps:?}");
    let documented = project::headings(&read("docs/errors.md"));
    assert_eq!(documented, rows.union(&steps).cloned().collect());
}

#[test]
fn the_document_on_operations_names_each_variable() {
    let variables = project::variables(&read("shared/platform/src/config.rs"));
    assert!(variables.len() > 15, "{variables:?}");
    let text = read("docs/operations.md");
    let missing: Vec<String> = variables.into_iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert_clean(&missing);
}

/// Asserts that a sample file breaks exactly one rule, whose report holds `words`.
#[track_caller]
fn breaks(path: &str, text: &str, words: &str) {
    let found = check(&File::new(path, text));
    assert!(found.len() == 1 && found[0].contains(words), "{path} should break `{words}`, not {found:?}");
}

#[track_caller]
fn keeps(path: &str, text: &str) {
    assert_clean(&check(&File::new(path, text)));
}

#[test]
fn a_long_file_is_found() {
    keeps("a.rs", &"\n".repeat(400));
    for path in ["a.rs", "a.mjs", "a.ts", "a.vue", "a.py", "a.sh", "dev"] {
        breaks(path, &"\n".repeat(401), "401 lines");
    }
    keeps("docs/a.md", &"\n".repeat(401));
    breaks("services/gateway/src/main.rs", &format!("//! A service.\n{}", "\n".repeat(20)), "main.rs has 21 lines");
}

#[test]
fn a_long_function_is_found_whatever_its_text_holds() {
    let body = |lines: usize| "    let a = ['{', '\\'']; // {\n".repeat(lines);
    keeps("a.rs", &format!("fn a(b: [u8; 2]) -> u8 {{\n{}}}\n", body(68)));
    breaks("a.rs", &format!("fn a<'a>(b: &'a [u8; 2]) -> u8 {{\n{}}}\n", body(69)), "71 lines");
    breaks("a.rs", &format!("impl A {{\n    fn a() {{\n let x = r#\"}}\"#;\n{}}}\n}}\n", body(69)), "72 lines");
    keeps("a.rs", &format!("trait A {{\n fn a();\n}}\ntype F = fn(u8) -> u8;\nconst B: u8 = 0;\n{}", body(80)));
    let script = |lines: usize| "  x\n".repeat(lines);
    keeps("dev", &format!("a() {{\n{}}}\n", script(69)));
    breaks("dev", &format!("a() {{\n{}}}\n", script(70)), "71 lines");
    breaks("a.mjs", &format!("export function a() {{\n{}}}\n", script(70)), "71 lines");
    breaks("a.py", &format!("def a():\n{}", script(70)), "71 lines");
}

#[test]
fn marks_of_unfinished_work_and_of_one_machine_are_found() {
    for word in [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"]] {
        breaks("a.md", &format!("{}: later", word.concat()), "unfinished");
    }
    keeps("a.md", &["A ", "HA", "CKER and a ma", "todo"].concat());
    for folder in ["root", "work", "home"] {
        breaks("dev", &format!("cd /{folder}/x"), "one machine");
        keeps("dev", &format!("cd \"$tmp\"/{folder}; cd a/{folder}/x"));
    }
    breaks("a.toml", &["url = \"https://", "pypi", ".org\""].concat(), "registry");
}

#[test]
fn switched_off_tests_and_lints_without_a_reason_are_found() {
    breaks("a.rs", "#[ignore]\nfn a() {}\n", "switched off");
    breaks("a.rs", "#[ignore = \"slow\"]\nfn a() {}\n", "switched off");
    breaks("a.rs", "#![allow(dead_code)]\n", "without a reason");
    breaks("a.rs", "#[expect(dead_code)]\nfn a() {}\n", "without a reason");
    keeps("a.rs", "#[expect(dead_code, reason = \"read by a later version\")]\nfn a() { b.expect(\"c\"); }\n");
    keeps("a.rs", "// #[ignore]\nconst A: &str = \"#[allow(x)]\";\n");
}

#[test]
fn sleeping_tests_are_found() {
    let call = "tokio::time::sleep(D).await";
    keeps("shared/mcp/src/a.rs", &format!("async fn a() {{ {call}; }}\n"));
    breaks("shared/mcp/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ async fn a() {{ {call}; }} }}\n"), "sleeps");
    breaks("services/gateway/tests/a.rs", &format!("async fn a() {{ {call}; }}\n"), "sleeps");
    breaks("tests/e2e/main.rs", &format!("async fn a() {{ {call}; }}\n"), "sleeps");
}

#[test]
fn a_crate_used_in_the_wrong_layer_is_found() {
    breaks("services/gateway/src/registry/server.rs", "use tonic::Status;\n", "`tonic` is for");
    breaks("services/gateway/src/registry/server.rs", "fn a() -> prost_types::Any { b() }\n", "`prost_types` is for");
    breaks("services/gateway/src/grpc/servers.rs", "use sqlx::PgPool;\n", "`sqlx` is for");
    breaks("shared/mcp/src/a.rs", "use rmcp::model::Tool;\n", "`rmcp` is for");
    breaks("services/gateway/src/decide.rs", "//! Pure decisions.\nasync fn a() {}\n", "`async` is for");
    keeps("services/gateway/src/grpc/servers.rs", "use tonic::Status;\n");
    keeps("services/gateway/src/store/servers.rs", "use sqlx::PgConnection;\n");
    keeps(
        "services/gateway/src/edge/a.rs",
        "// not tonic\nuse rmcp::model::Tool;\n#[cfg(test)]\nmod tests { use tonic::Code; }\n",
    );
    breaks("services/gateway/src/lib.rs", "mod a;\n", "opens with");
}

#[test]
fn a_missing_part_and_a_forbidden_dependency_are_found() {
    let paths = ["gateway", "interaction", "oauth"].map(|name| format!("services/{name}/src"));
    let all: BTreeSet<String> = paths
        .iter()
        .flat_map(|src| ["main", "lib", "config", "error"].map(|file| format!("{src}/{file}.rs")))
        .collect();
    assert_eq!(project::skeleton(&all).len(), 4, "task-poller lacks all four");
    let manifest = |path: &str, line: &str| project::dependencies(&File::new(path, line)).len();
    assert_eq!(manifest("services/oauth/Cargo.toml", "gatehouse-gateway.workspace = true"), 1);
    assert_eq!(manifest("services/gatehouse/Cargo.toml", "gatehouse-gateway.workspace = true"), 0);
    assert_eq!(manifest("shared/types/Cargo.toml", "tokio = \"1\""), 1);
    assert_eq!(manifest("shared/platform/Cargo.toml", "tokio-util.workspace = true"), 0);
}

#[test]
fn reasons_are_read_from_the_table_the_proto_and_the_headings() {
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(project::reasons("    row(Reason::NotFound, \"NOT_FOUND\", Code::NotFound),\n"), set(&["NOT_FOUND"]));
    let proto =
        "  string message = 4;\n  // Such as `DNS_FAILED`,\n  // `NOT_MCP`.\n  string reason = 5;\n // `OTHER_ONE`";
    assert_eq!(project::step_reasons(proto), set(&["DNS_FAILED", "NOT_MCP"]));
    let table = "const VARIABLES: &[(&str, &str)] = &[\n    (\"A_URL\", \"x\"),\n    (\n        \"B\",\n \"Y\"),\n];\n(\"C\", 1)";
    assert_eq!(project::variables(table), set(&["A_URL", "B"]));
    assert_eq!(project::headings("# Errors\n### `NOT_FOUND`\ntext `NOT_MCP`\n"), set(&["NOT_FOUND"]));
}
