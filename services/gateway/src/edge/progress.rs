//! Pure: progress notifications for an engine (MCP 2025-11-25, basic/utilities/progress).
//!
//! The engine's own token, and values that grow whatever the server sends: between its reports Gatehouse adds its own, so
//! that an engine with an idle limit keeps waiting.

use bytes::Bytes;

use crate::raw;

/// How much a report of our own adds to the value.
const STEP: f64 = 0.001;

/// Makes the notifications of one call.
#[derive(Debug)]
pub(super) struct Ticker {
    /// The engine's token as JSON text; `None` when it asked for no progress.
    token: Option<String>,
    last: Option<f64>,
}

impl Ticker {
    /// Notifications under this token; none without one.
    pub(super) fn new(token: Option<String>) -> Self {
        Self { token, last: None }
    }

    /// The server's report, with its numbers as it spelled them unless the value would not grow.
    pub(super) fn report(&mut self, progress: &str, total: Option<&str>, message: Option<&str>) -> Option<Bytes> {
        let value: f64 = progress.parse().ok().filter(|value: &f64| value.is_finite())?;
        if self.last.is_none_or(|last| value > last) {
            self.last = Some(value);
            return self.notification(progress, total, message);
        }
        let grown = self.grow();
        self.notification(&grown, total, message)
    }

    /// A report of our own.
    pub(super) fn tick(&mut self, message: &str) -> Option<Bytes> {
        let grown = self.grow();
        self.notification(&grown, None, Some(message))
    }

    fn grow(&mut self) -> String {
        // Of a large value the step is lost in rounding: then it is the next number that there is.
        let grown = self.last.map_or(0.0, |last| (last + STEP).max(last.next_up()));
        self.last = Some(grown);
        grown.to_string()
    }

    fn notification(&self, progress: &str, total: Option<&str>, message: Option<&str>) -> Option<Bytes> {
        let token = self.token.as_ref()?;
        let mut text = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{progress}"
        );
        let total = total.filter(|total| total.parse::<f64>().is_ok());
        if let Some(total) = total {
            text.push_str(",\"total\":");
            text.push_str(total);
        }
        if let Some(message) = message {
            text.push_str(",\"message\":");
            raw::push_string(&mut text, message);
        }
        text.push_str("}}");
        Some(Bytes::from(text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_report_keeps_the_servers_spelling_and_the_engines_token() {
        let mut ticker = Ticker::new(Some("\"t-1\"".to_owned()));
        let notification = ticker.report("1.50", Some("3"), Some("half \"way\"")).unwrap();
        insta::assert_snapshot!(String::from_utf8_lossy(&notification), @r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t-1","progress":1.50,"total":3,"message":"half \"way\""}}"#);
        assert_eq!(Ticker::new(None).tick("x"), None);
    }

    #[test]
    fn the_first_report_may_be_zero() {
        let mut ticker = Ticker::new(Some("1".to_owned()));
        assert!(String::from_utf8_lossy(&ticker.report("0", None, None).unwrap()).contains("\"progress\":0}"));
    }

    proptest! {
        #[test]
        fn values_grow_whatever_the_server_sends(reports in proptest::collection::vec(proptest::option::of(prop_oneof![-5.0_f64..100.0, 1e13_f64..1e18]), 1..20)) {
            let mut ticker = Ticker::new(Some("1".to_owned()));
            let mut last = f64::NEG_INFINITY;
            for report in reports {
                let notification = match report {
                    Some(value) => ticker.report(&value.to_string(), None, None),
                    None => ticker.tick("still running"),
                };
                // From its text: `serde_json` may be one off in the last place.
                let notification = String::from_utf8(notification.unwrap().to_vec()).unwrap();
                let value = notification.split("\"progress\":").nth(1).unwrap().split([',', '}']).next().unwrap();
                let value: f64 = value.parse().unwrap();
                prop_assert!(value > last, "{} after {}", value, last);
                last = value;
            }
        }
    }
}
