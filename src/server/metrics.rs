//! Counters and histograms of the service, for Prometheus.
//!
//! Labels have few values, all chosen by the service: routes are patterns, reasons are codes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::error::ApiError;
use crate::detect::Verdict;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    queue: &'static str,
}

/// Work that waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Texts to be judged.
    Judging,
    /// Texts to be generated.
    Generation,
}

impl QueueKind {
    fn name(self) -> &'static str {
        match self {
            Self::Judging => "judging",
            Self::Generation => "generation",
        }
    }
}

/// All figures of one service.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram>,
    in_flight: Gauge,
    refusals: Family<ReasonLabels, Counter>,
    failed_authentications: Counter,
    judged: Family<VerdictLabels, Counter>,
    judged_tokens: Counter,
    judging: Histogram,
    generated: Counter,
    generated_tokens: Counter,
    generation: Histogram,
    queues: Family<QueueLabels, Gauge>,
    lost_audit_lines: Counter,
    lost_access_lines: Counter,
    uptime: Gauge<f64, AtomicU64>,
}

/// What others count, at the moment of a look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) lost_audit_lines: u64,
    pub(super) lost_access_lines: u64,
    pub(super) uptime: Duration,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram = || Histogram::new(exponential_buckets(0.0005, 2.0, 20));
        let durations = Family::<RouteLabels, Histogram>::new_with_constructor(histogram);
        let mut metrics = Self {
            registry: Registry::with_prefix("greenmark"),
            requests: Family::default(),
            durations,
            in_flight: Gauge::default(),
            refusals: Family::default(),
            failed_authentications: Counter::default(),
            judged: Family::default(),
            judged_tokens: Counter::default(),
            judging: histogram(),
            generated: Counter::default(),
            generated_tokens: Counter::default(),
            generation: histogram(),
            queues: Family::default(),
            lost_audit_lines: Counter::default(),
            lost_access_lines: Counter::default(),
            uptime: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    /// Gives every figure its name. The encoder ends each help text with a full stop.
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("requests", "Requests answered", self.requests.clone());
        registry.register_with_unit(
            "request_duration",
            "Time from the head of a request to the head of its reply",
            Unit::Seconds,
            self.durations.clone(),
        );
        let help = "Requests whose reply is not sent whole yet";
        registry.register("requests_in_flight", help, self.in_flight.clone());
        let help = "Error replies by their code";
        registry.register("refusals", help, self.refusals.clone());
        let help = "Requests without a valid API key";
        registry.register("authentication_failures", help, self.failed_authentications.clone());
        registry.register("texts_judged", "Texts judged", self.judged.clone());
        let help = "Tokens of the texts judged";
        registry.register("tokens_judged", help, self.judged_tokens.clone());
        let help = "Time to judge a text";
        registry.register_with_unit("judging_duration", help, Unit::Seconds, self.judging.clone());
        registry.register("texts_generated", "Texts generated", self.generated.clone());
        registry.register("tokens_generated", "Tokens generated", self.generated_tokens.clone());
        let help = "Time to generate a text";
        registry.register_with_unit(
            "generation_duration",
            help,
            Unit::Seconds,
            self.generation.clone(),
        );
        registry.register("queue_length", "Texts that wait for their turn", self.queues.clone());
        let help = "Audit lines that could not be written";
        registry.register("audit_failures", help, self.lost_audit_lines.clone());
        let help = "Lines of the access log that could not be written";
        registry.register("access_log_failures", help, self.lost_access_lines.clone());
        let help = "Time since the service started";
        registry.register_with_unit("uptime", help, Unit::Seconds, self.uptime.clone());
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What runs", build);
    }

    /// A text was judged.
    pub fn judged(&self, verdict: Verdict, tokens: u64, duration: Duration) {
        let verdict = match verdict {
            Verdict::Watermarked => "watermarked",
            Verdict::NotDetected => "not_detected",
            Verdict::Insufficient => "insufficient",
        };
        self.judged.get_or_create(&VerdictLabels { verdict }).inc();
        self.judged_tokens.inc_by(tokens);
        self.judging.observe(duration.as_secs_f64());
    }

    /// A text was generated.
    pub fn generated(&self, tokens: u64, duration: Duration) {
        self.generated.inc();
        self.generated_tokens.inc_by(tokens);
        self.generation.observe(duration.as_secs_f64());
    }

    /// So many texts wait now.
    pub fn set_queue_length(&self, queue: QueueKind, length: usize) {
        let labels = QueueLabels { queue: queue.name() };
        self.queues.get_or_create(&labels).set(i64::try_from(length).unwrap_or(i64::MAX));
    }

    /// A request began; it is in flight until the value is dropped.
    pub(super) fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// The head of a reply is ready.
    pub(super) fn answered(
        &self,
        method: &'static str,
        route: &str,
        status: u16,
        duration: Duration,
    ) {
        let route = route.to_owned();
        self.durations
            .get_or_create(&RouteLabels { route: route.clone() })
            .observe(duration.as_secs_f64());
        self.requests.get_or_create(&RequestLabels { method, route, status }).inc();
    }

    /// A reply is an error with this code.
    pub(super) fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// A request had no valid API key.
    pub(super) fn authentication_failed(&self) {
        self.failed_authentications.inc();
    }

    /// Everything, in the text format of `OpenMetrics`.
    pub(super) fn render(&self, observed: Observed) -> Result<String, ApiError> {
        // Counted elsewhere, and only ever growing there.
        self.lost_audit_lines.inner().store(observed.lost_audit_lines, Ordering::Relaxed);
        self.lost_access_lines.inner().store(observed.lost_access_lines, Ordering::Relaxed);
        self.uptime.set(observed.uptime.as_secs_f64());
        let mut text = String::new();
        // A String takes every write.
        encode(&mut text, &self.registry).map_err(|_| ApiError::internal())?;
        Ok(text)
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
