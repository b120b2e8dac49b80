//! Logs, traces and metrics of a process.
//!
//! Logs go to stderr as JSON or for people. Spans go to an OTLP collector when one is configured. Metrics are kept for
//! Prometheus to fetch from the ops server. Trace context travels as W3C `traceparent`.

use std::{
    io::IsTerminal as _,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use opentelemetry::{
    propagation::{Extractor, Injector},
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig as _};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::config::Source;

const DEFAULT_FILTER: &str = "info,sqlx::postgres::notice=warn";
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Buckets of durations in seconds, from 0.1 ms to 5 min.
const DURATION_BUCKETS: &[f64] = &[
    0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    Human,
}

/// What to log and where to send spans.
#[derive(Debug, Clone)]
pub struct Config {
    filter: String,
    format: Format,
    otlp_endpoint: Option<String>,
}

/// Telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The OTLP exporter cannot be made.
    #[error("spans cannot be exported to OTEL_EXPORTER_OTLP_ENDPOINT")]
    Exporter(#[from] ExporterBuildError),
    /// Another logger is there already.
    #[error("logging was already started")]
    Logger(#[from] tracing_subscriber::util::TryInitError),
    /// The metrics recorder cannot be made.
    #[error("the metrics recorder cannot start")]
    Recorder(#[from] BuildError),
}

impl Config {
    /// From `GATEHOUSE_LOG`, `GATEHOUSE_LOG_FORMAT` (default: human on a terminal, else JSON),
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn load(source: &Source) -> Self {
        let filter = source.text("GATEHOUSE_LOG").unwrap_or(DEFAULT_FILTER).to_owned();
        if EnvFilter::try_new(&filter).is_err() {
            source.refuse("GATEHOUSE_LOG");
        }
        let format = match source.text("GATEHOUSE_LOG_FORMAT") {
            Some("json") => Format::Json,
            Some("human") => Format::Human,
            Some(_) => {
                source.refuse("GATEHOUSE_LOG_FORMAT");
                Format::Json
            }
            None if std::io::stderr().is_terminal() => Format::Human,
            None => Format::Json,
        };
        let otlp_endpoint = source.optional::<url::Url>("OTEL_EXPORTER_OTLP_ENDPOINT").map(String::from);
        Self { filter, format, otlp_endpoint }
    }
}

static EXPORTS_SPANS: AtomicBool = AtomicBool::new(false);

/// Running telemetry. [`Telemetry::shutdown`] sends what is still here.
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
    metrics: PrometheusHandle,
}

impl Telemetry {
    /// Starts logging, span export and metrics for the whole process; once only. Needs a tokio runtime.
    pub fn start(process: &'static str, config: &Config) -> Result<Self, Error> {
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        let provider = config.otlp_endpoint.as_deref().map(|endpoint| provider(process, endpoint)).transpose()?;
        let spans =
            provider.as_ref().map(|provider| tracing_opentelemetry::layer().with_tracer(provider.tracer(process)));
        let lines = match config.format {
            Format::Json => tracing_subscriber::fmt::layer().json().with_writer(std::io::stderr).boxed(),
            Format::Human => tracing_subscriber::fmt::layer()
                .with_ansi(std::io::stderr().is_terminal())
                .with_writer(std::io::stderr)
                .boxed(),
        };
        tracing_subscriber::registry().with(EnvFilter::new(&config.filter)).with(lines).with(spans).try_init()?;
        EXPORTS_SPANS.store(provider.is_some(), Ordering::Relaxed);
        log_panics();
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), DURATION_BUCKETS)?;
        Ok(Self { provider, metrics: recorder.install_recorder()? })
    }

    /// What Prometheus fetches.
    pub fn metrics(&self) -> PrometheusHandle {
        self.metrics.clone()
    }

    /// Sends the spans that are still here, within a few seconds.
    pub async fn shutdown(self) {
        let Some(provider) = self.provider else { return };
        let sent = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(EXPORT_TIMEOUT)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::warn!("the last spans may not have reached the collector");
        }
    }
}

fn provider(process: &'static str, endpoint: &str) -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(EXPORT_TIMEOUT)
        .build()?;
    let resource = Resource::builder().with_service_name(format!("gatehouse-{process}")).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// A panic becomes a log line like any other, with its place.
fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        let words = info.payload_as_str().unwrap_or("no words");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(panic.message = words, panic.place = place, "a task panicked");
    }));
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct HeadersMut<'a>(&'a mut HeaderMap);

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

/// Whether spans go to a collector. Where every microsecond counts, a span is made only then.
pub fn exports_spans() -> bool {
    EXPORTS_SPANS.load(Ordering::Relaxed)
}

/// Makes `span` a child of the `traceparent` in the headers, when there is one. Call it before the span is entered.
pub fn continue_trace(headers: &HeaderMap, span: &Span) {
    if !headers.contains_key("traceparent") {
        return;
    }
    let parent = opentelemetry::global::get_text_map_propagator(|propagator| propagator.extract(&Headers(headers)));
    // Fails when the span is filtered out or no collector is configured; then there is nothing to continue.
    let _ = span.set_parent(parent);
}

/// Puts the current span's `traceparent` into the headers of an outgoing request.
pub fn pass_trace(headers: &mut HeaderMap) {
    let context = Span::current().context();
    opentelemetry::global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut HeadersMut(headers));
    });
}

/// The trace id of the current span in hex; empty when no collector is configured.
pub fn trace_id() -> String {
    let context = Span::current().context();
    let span = context.span();
    let span = span.span_context();
    if span.is_valid() { span.trace_id().to_string() } else { String::new() }
}
