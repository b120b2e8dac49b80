//! Servers that are programs, as the registry keeps them.

use std::collections::HashMap;

use gatehouse_proto::gateway::v1;

use crate::harness::{Gateway, wrong_fields};

const SECRET: &str = "planted-variable-8c1f";

fn program() -> v1::Stdio {
    v1::Stdio {
        program: "npx".to_owned(),
        args: vec!["-y".to_owned(), "a-server".to_owned()],
        open: vec![v1::OpenedPath { path: "/srv/data".to_owned(), write: true }],
        network: true,
        limits: Some(v1::StdioLimits { memory_bytes: Some(256 << 20), ..v1::StdioLimits::default() }),
        ..v1::Stdio::default()
    }
}

fn env(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn new(name: &str) -> v1::CreateServerRequest {
    let command = v1::StdioCommand { stdio: Some(program()), env: env(&[("API_KEY", SECRET)]) };
    v1::CreateServerRequest { name: name.to_owned(), stdio: Some(command), ..Default::default() }
}

fn stdio_of(server: v1::Server) -> v1::Stdio {
    let Some(v1::server::Transport::Stdio(stdio)) = server.transport else { panic!("{server:?}") };
    stdio
}

#[tokio::test]
async fn a_program_comes_back_as_it_was_registered_without_its_secrets() {
    let gateway = Gateway::start().await;
    let mut servers = gateway.servers();
    let created = servers.create_server(new("files")).await.unwrap().into_inner().server.unwrap();
    assert!(!format!("{created:?}").contains(SECRET));
    let get = v1::GetServerRequest { server: "files".to_owned() };
    let got = servers.get_server(get).await.unwrap().into_inner().server.unwrap();
    assert!(!format!("{got:?}").contains(SECRET) && got.process.is_none(), "{got:?}");
    let stdio = stdio_of(got);
    assert_eq!((stdio.program.as_str(), &stdio.args, &stdio.open), ("npx", &program().args, &program().open));
    assert_eq!((stdio.env_names, stdio.network, stdio.trusted), (vec!["API_KEY".to_owned()], true, false));
    let limits = stdio.limits.unwrap();
    assert_eq!(
        (limits.memory_bytes, limits.cpu_percent),
        (Some(256 << 20), Some(200)),
        "what is not set is the default"
    );
}

#[tokio::test]
async fn every_wrong_field_of_a_program_is_named_at_once() {
    let gateway = Gateway::start().await;
    let stdio = v1::Stdio {
        program: "../sh".to_owned(),
        args: vec!["a\0b".to_owned()],
        open: vec![v1::OpenedPath { path: "/etc".to_owned(), write: false }],
        limits: Some(v1::StdioLimits { memory_bytes: Some(-1), cpu_percent: Some(0), ..Default::default() }),
        ..Default::default()
    };
    let command = v1::StdioCommand { stdio: Some(stdio), env: env(&[("PATH", "/x"), ("OK", "v")]) };
    let request = v1::CreateServerRequest {
        name: "x".to_owned(),
        url: "http://a.example/mcp".to_owned(),
        stdio: Some(command),
        ..Default::default()
    };
    let fields = wrong_fields(gateway.servers().create_server(request).await);
    for field in [
        "stdio.stdio.program",
        "stdio.stdio.args[0]",
        "stdio.stdio.open[0].path",
        "stdio.stdio.limits.memory_bytes",
        "stdio.stdio.limits.cpu_percent",
        "stdio.env[\"PATH\"]",
        "stdio",
    ] {
        assert!(fields.iter().any(|found| found == field), "{field}: {fields:?}");
    }
    assert_eq!(fields.len(), 7, "{fields:?}");
}

#[tokio::test]
async fn a_program_is_replaced_as_a_whole_and_its_environment_variable_by_variable() {
    let gateway = Gateway::start().await;
    let mut servers = gateway.servers();
    servers.create_server(new("files")).await.unwrap();
    let other = v1::Stdio { program: "/usr/bin/node".to_owned(), trusted: true, ..Default::default() };
    let update = v1::UpdateServerRequest {
        server: "files".to_owned(),
        stdio: Some(other),
        set_env: env(&[("MODE", "x")]),
        ..Default::default()
    };
    let stdio = stdio_of(servers.update_server(update).await.unwrap().into_inner().server.unwrap());
    assert_eq!(
        (stdio.program.as_str(), stdio.args.len(), stdio.network, stdio.trusted),
        ("/usr/bin/node", 0, false, true)
    );
    assert_eq!(stdio.env_names, ["API_KEY", "MODE"]);
    let remove = v1::UpdateServerRequest {
        server: "files".to_owned(),
        remove_env: vec!["API_KEY".to_owned()],
        ..Default::default()
    };
    let stdio = stdio_of(servers.update_server(remove).await.unwrap().into_inner().server.unwrap());
    assert_eq!((stdio.env_names, stdio.trusted), (vec!["MODE".to_owned()], true));
}

#[tokio::test]
async fn a_server_does_not_change_its_kind() {
    let gateway = Gateway::start().await;
    let mut servers = gateway.servers();
    servers.create_server(new("program")).await.unwrap();
    let http = v1::CreateServerRequest {
        name: "endpoint".to_owned(),
        url: "http://a.example/mcp".to_owned(),
        ..Default::default()
    };
    servers.create_server(http).await.unwrap();
    let change = |server: &str| v1::UpdateServerRequest { server: server.to_owned(), ..Default::default() };
    let changes = [
        (v1::UpdateServerRequest { url: Some("http://b.example/".to_owned()), ..change("program") }, "url"),
        (v1::UpdateServerRequest { set_headers: env(&[("X-A", "b")]), ..change("program") }, "set_headers"),
        (v1::UpdateServerRequest { stdio: Some(program()), ..change("endpoint") }, "stdio"),
        (v1::UpdateServerRequest { set_env: env(&[("A", "b")]), ..change("endpoint") }, "set_env"),
    ];
    for (request, field) in changes {
        assert_eq!(wrong_fields(servers.update_server(request).await), [field]);
    }
}

#[tokio::test]
async fn where_no_program_can_be_run_that_is_said() {
    let gateway = Gateway::start().await;
    let mut servers = gateway.servers();
    servers.create_server(new("files")).await.unwrap();
    let test = v1::TestServerRequest { server: "files".to_owned(), ..Default::default() };
    let report = servers.test_server(test).await.unwrap().into_inner();
    let step = report.steps.last().unwrap();
    assert_eq!((report.ok, step.reason.as_str()), (false, "NOT_STARTED"));
    assert!(step.message.contains("GATEHOUSE_STDIO_HOME"), "{step:?}");
}
