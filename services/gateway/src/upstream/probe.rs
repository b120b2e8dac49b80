//! The connection test: every step with its time, and words for what is wrong.

use std::time::Duration;

use gatehouse_mcp::{
    client::{Connection, OpenError, RequestError},
    lists::{ListError, ListLimits},
};
use gatehouse_outbound::{Error as HttpError, HttpClient, Step, Target};
use gatehouse_types::Settings;
use tokio::time::Instant;

use super::{
    pools::{connection_options, endpoint},
    processes::Processes,
    refresh::{list_error_words, request_error_words},
};
use crate::{
    call::words::Words,
    catalog::Server,
    registry::upstream::{TestReport, TestStep},
};

/// Longest a list may take in a test.
const LIST: Duration = Duration::from_secs(30);

/// Tests a server over connections of their own.
pub(super) async fn test(server: &Server, http: HttpClient, settings: &Settings) -> TestReport {
    let mut report = TestReport::default();
    let began = Instant::now();
    let target = match Target::parse(&server.url) {
        Ok(target) => target,
        Err(wrong) => {
            report.fail("address", began, wrong.to_string(), "INVALID_URL");
            return report;
        }
    };
    if !reach(&mut report, &http, &target, server.connect_timeout).await {
        return report;
    }
    let Some(connection) = initialize(&mut report, server, http, settings).await else { return report };
    lists(&mut report, &connection).await;
    connection.close().await;
    report
}

/// Tests a program: the process that serves, when it is registered, else one that is started for this alone.
pub(super) async fn test_program(server: &Server, processes: &Processes, settings: &Settings) -> TestReport {
    let mut report = TestReport::default();
    let began = Instant::now();
    if server.name.is_empty() {
        let work = async |opened: Result<&Connection, &Words>| take_program(&mut report, began, opened).await;
        processes.try_program(server, settings, work).await;
        return report;
    }
    let live = processes.live(server, settings).await;
    let opened = live.as_ref().map(|(live, _)| &live.connection);
    take_program(&mut report, began, opened).await;
    report
}

async fn take_program(report: &mut TestReport, began: Instant, opened: Result<&Connection, &Words>) {
    match opened {
        Ok(connection) => {
            report.pass("process", began, "the program runs".to_owned());
            report.initialized(began, connection);
            lists(report, connection).await;
        }
        Err(why) => report.fail("process", began, why.en.clone().into_owned(), "NOT_STARTED"),
    }
}

async fn reach(report: &mut TestReport, http: &HttpClient, target: &Target, connect_timeout: Duration) -> bool {
    let name = |step: Step| match step {
        Step::Address => "address",
        Step::Connect => "connect",
        Step::Tls => "tls",
    };
    let found = |step: Step| match step {
        Step::Address => "the host has an address that may be called",
        Step::Connect => "the port takes connections",
        Step::Tls => "the certificate is good",
    };
    let (done, failure) = match http.probe(target, Some(connect_timeout)).await {
        Ok(probe) => {
            report.tls = probe.tls.map(|tls| format!("{} {}", tls.version, tls.cipher)).unwrap_or_default();
            (probe.steps, None)
        }
        Err(failure) => (failure.done, Some((failure.step, failure.took, failure.error))),
    };
    for (step, took) in done {
        report.steps.push(TestStep { name: name(step), took, message: found(step).to_owned(), failure: None });
    }
    let Some((step, took, error)) = failure else { return true };
    let (message, reason) = http_words(&error);
    report.steps.push(TestStep { name: name(step), took, message, failure: Some(reason) });
    false
}

async fn initialize(
    report: &mut TestReport,
    server: &Server,
    http: HttpClient,
    settings: &Settings,
) -> Option<Connection> {
    let began = Instant::now();
    let options = gatehouse_mcp::client::Options { listen: false, ..connection_options(server, settings) };
    let opened = match endpoint(server) {
        Ok(place) => Connection::open(http, place, options, std::sync::Arc::new(())).await,
        Err(error) => Err(error),
    };
    match opened {
        Ok(connection) => {
            report.initialized(began, &connection);
            Some(connection)
        }
        Err(error) => {
            let (message, reason) = open_words(&error);
            report.fail("initialize", began, message, reason);
            None
        }
    }
}

async fn lists(report: &mut TestReport, connection: &Connection) {
    let view = connection.view();
    for (name, method) in [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")] {
        if view.capability(name).is_none() {
            continue;
        }
        let began = Instant::now();
        match connection.list_all(method, name, ListLimits { timeout: LIST, ..ListLimits::default() }).await {
            Ok(list) => {
                let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
                report.pass(name, began, format!("{count} listed"));
                match name {
                    "tools" => report.tools = Some(count),
                    "resources" => report.resources = Some(count),
                    _ => report.prompts = Some(count),
                }
            }
            Err(error) => {
                let reason = match &error {
                    ListError::Request(error) => request_reason(error),
                    ListError::TooLong { .. } => "TOO_LARGE",
                    ListError::CursorLoop | ListError::NoArray { .. } => "NOT_MCP",
                };
                report.fail(name, began, list_error_words(&error), reason);
                return;
            }
        }
    }
}

impl TestReport {
    fn initialized(&mut self, began: Instant, connection: &Connection) {
        let view = connection.view();
        let (name, version) = view.server();
        self.server_name = name.unwrap_or_default().into_owned();
        self.server_version = version.unwrap_or_default().into_owned();
        view.capabilities.map_or("{}", |raw| raw.get()).clone_into(&mut self.capabilities);
        connection.protocol_version().clone_into(&mut self.protocol_version);
        self.pass("initialize", began, format!("it speaks MCP {}", self.protocol_version));
    }

    fn pass(&mut self, name: &'static str, began: Instant, message: String) {
        self.steps.push(TestStep { name, took: began.elapsed(), message, failure: None });
    }

    fn fail(&mut self, name: &'static str, began: Instant, message: String, reason: &'static str) {
        self.steps.push(TestStep { name, took: began.elapsed(), message, failure: Some(reason) });
    }
}

fn open_words(error: &OpenError) -> (String, &'static str) {
    match error {
        OpenError::UnsupportedVersion { .. } => (error.to_string(), "UNSUPPORTED_VERSION"),
        OpenError::BadHeader(_) => (error.to_string(), "INVALID_HEADER"),
        OpenError::Request(RequestError::NotSent(error)) => http_words(error),
        OpenError::Request(error) => (request_error_words(error), request_reason(error)),
    }
}

fn request_reason(error: &RequestError) -> &'static str {
    match error {
        RequestError::NotSent(error) => http_words(error).1,
        RequestError::Unauthorized { .. } => "UNAUTHORIZED",
        RequestError::Forbidden { .. } => "FORBIDDEN",
        RequestError::Http { status: 404, .. } | RequestError::SessionGone => "NOT_FOUND_AT_URL",
        RequestError::Http { .. } => "HTTP_ERROR",
        RequestError::TimedOut => "TIMED_OUT",
        RequestError::Lost(_) => "CONNECTION_LOST",
        RequestError::TooLarge { .. } => "TOO_LARGE",
        RequestError::Rpc { .. } => "REFUSED_BY_SERVER",
        RequestError::NotMcp(_) | RequestError::Protocol(_) | RequestError::Cancelled => "NOT_MCP",
    }
}

fn http_words(error: &HttpError) -> (String, &'static str) {
    match error {
        HttpError::DnsFailed { .. } => (format!("{error}: check the host name in the URL"), "DNS_FAILED"),
        HttpError::AddressRefused(refused) if !refused.reason.can_be_opened() => (error.to_string(), "ADDRESS_REFUSED"),
        HttpError::AddressRefused(_) => (
            format!(
                "{error}. If this server may be called, an operator adds its network or host to GATEHOUSE_UPSTREAM_ALLOW"
            ),
            "ADDRESS_REFUSED",
        ),
        HttpError::ConnectionRefused => {
            (format!("{error}: check the port, and that the server runs"), "CONNECTION_REFUSED")
        }
        HttpError::ConnectTimedOut => (format!("{error}: check the address, and firewalls on the way"), "TIMED_OUT"),
        HttpError::TlsFailed(_) => (error.to_string(), "TLS_FAILED"),
        HttpError::RedirectRefused(_) => (error.to_string(), "REDIRECT_REFUSED"),
        HttpError::BadUrl(_) => (error.to_string(), "INVALID_URL"),
        HttpError::BadRequest(_) => (error.to_string(), "INVALID_HEADER"),
        HttpError::ConnectFailed(_) | HttpError::NotWritten(_) | HttpError::Reset(_) => {
            (error.to_string(), "CONNECTION_LOST")
        }
    }
}
