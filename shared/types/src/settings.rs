//! Settings that an admin can change at run time: one typed value, one table of keys, bounds and words.

use serde_json::Value;

/// Every setting with its default.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `tools.maxNameChars`: longest tool name that engines see.
    pub tool_name_chars: u32,
    /// `tools.maxDescriptionChars`: longest tool description that engines see, in Unicode characters.
    pub tool_description_chars: u32,
    /// `calls.foregroundMaxSec`: longest wait for an answer; each progress notification starts it anew.
    pub foreground_max_sec: u32,
    /// `calls.maxArgumentsBytes`: largest arguments of a call.
    pub max_arguments_bytes: u32,
    /// `calls.maxResultBytes`: largest answer taken from a server.
    pub max_result_bytes: u32,
    /// `tools.maxListBytes`: largest tool list taken from a server, all pages together.
    pub max_list_bytes: u32,
    /// `tools.maxPerServer`: most tools taken from one server.
    pub max_tools_per_server: u32,
    /// `tools.staleAfterSec`: age at which a tool list is read again when an engine asks for it.
    pub tools_stale_after_sec: u32,
    /// `upstream.idleCloseSec`: an upstream connection without calls is closed after this.
    pub upstream_idle_close_sec: u32,
    /// `edge.sessionMaxAgeSec`: age at which an engine's MCP session ends.
    pub edge_session_max_age_sec: u32,
    /// `audit.payloadBytes`: how much of arguments and structured result the audit keeps.
    pub audit_payload_bytes: u32,
    /// `audit.retentionDays`: days after which a call's row leaves the audit.
    pub audit_retention_days: u32,
    /// `events.retentionDays`: days after which an event leaves its stream.
    pub events_retention_days: u32,
    /// `files.maxBytesPerSession`: most bytes that the results of one session may save as files.
    pub files_session_quota_bytes: u32,
    /// `interactionTimeoutSec`: a card that nobody answers for so long counts as not answered.
    pub interaction_timeout_sec: u32,
    /// `results.maxMediaBytes`: largest image or audio that is shown in a result, decoded.
    pub result_media_bytes: u32,
    /// `results.maxTextChars`: longest text of a result, all blocks together, in Unicode characters.
    pub result_text_chars: u32,
    /// `tools.listChangedMergeSec`: how long notices of changed tool lists are gathered before the list is read.
    pub tools_list_changed_merge_sec: u32,
    /// `tools.maxStructureChars`: longest summary of a result's structure in a description, in Unicode characters.
    pub tool_structure_chars: u32,
}

/// One row of the table: how a setting is called, read, written and bounded.
pub struct Field {
    /// Name, such as `tools.maxDescriptionChars`.
    pub key: &'static str,
    /// What it does, with its unit, for people.
    pub description: &'static str,
    /// Smallest value.
    pub min: u32,
    /// Largest value.
    pub max: u32,
    get: fn(&Settings) -> u32,
    set: fn(&mut Settings, u32),
}

/// A value that a setting cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No setting has this key.
    #[error("there is no setting `{0}`; `gatehouse settings list` shows them all")]
    Unknown(String),
    /// The value is not a whole number within the bounds.
    #[error("`{key}` takes a whole number from {min} to {max}")]
    OutOfBounds {
        /// The key.
        key: &'static str,
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tool_name_chars: 64,
            tool_description_chars: 2_000,
            foreground_max_sec: 600,
            max_arguments_bytes: 4 << 20,
            max_result_bytes: 32 << 20,
            max_list_bytes: 8 << 20,
            max_tools_per_server: 2_000,
            tools_stale_after_sec: 300,
            upstream_idle_close_sec: 600,
            edge_session_max_age_sec: 7 * 86_400,
            audit_payload_bytes: 20_000,
            audit_retention_days: 90,
            events_retention_days: 30,
            files_session_quota_bytes: 1 << 30,
            interaction_timeout_sec: 600,
            result_media_bytes: 5_000_000,
            result_text_chars: 100_000,
            tools_list_changed_merge_sec: 2,
            tool_structure_chars: 1_500,
        }
    }
}

impl Settings {
    /// Sets one value, or says why not.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<(), SettingError> {
        let field = Field::named(key).ok_or_else(|| SettingError::Unknown(key.to_owned()))?;
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| (field.min..=field.max).contains(number));
        let number = number.ok_or(SettingError::OutOfBounds { key: field.key, min: field.min, max: field.max })?;
        (field.set)(self, number);
        Ok(())
    }
}

impl Field {
    /// The field of this name.
    pub fn named(key: &str) -> Option<&'static Self> {
        FIELDS.iter().find(|field| field.key == key)
    }

    /// The value in `settings`.
    pub fn get(&self, settings: &Settings) -> Value {
        Value::from((self.get)(settings))
    }
}

/// Every setting, in the order of the keys.
pub const FIELDS: &[Field] = &[
    Field {
        key: "audit.payloadBytes",
        description: "How many bytes of arguments and of a structured result the audit keeps, each",
        min: 0,
        max: 1_000_000,
        get: |settings| settings.audit_payload_bytes,
        set: |settings, value| settings.audit_payload_bytes = value,
    },
    Field {
        key: "audit.retentionDays",
        description: "Days after which a call's row leaves the audit",
        min: 1,
        max: 3_650,
        get: |settings| settings.audit_retention_days,
        set: |settings, value| settings.audit_retention_days = value,
    },
    Field {
        key: "calls.foregroundMaxSec",
        description: "Longest wait for a tool's answer in seconds; each progress notification starts it anew",
        min: 1,
        max: 86_400,
        get: |settings| settings.foreground_max_sec,
        set: |settings, value| settings.foreground_max_sec = value,
    },
    Field {
        key: "calls.maxArgumentsBytes",
        description: "Largest arguments of a call in bytes",
        min: 1_024,
        max: 64 << 20,
        get: |settings| settings.max_arguments_bytes,
        set: |settings, value| settings.max_arguments_bytes = value,
    },
    Field {
        key: "calls.maxResultBytes",
        description: "Largest answer taken from a server in bytes",
        min: 1_024,
        max: 256 << 20,
        get: |settings| settings.max_result_bytes,
        set: |settings, value| settings.max_result_bytes = value,
    },
    Field {
        key: "edge.sessionMaxAgeSec",
        description: "Age in seconds at which an engine's MCP session ends; the engine then makes a new one by itself",
        min: 60,
        max: 365 * 86_400,
        get: |settings| settings.edge_session_max_age_sec,
        set: |settings, value| settings.edge_session_max_age_sec = value,
    },
    Field {
        key: "events.retentionDays",
        description: "Days after which an event leaves its stream; who follows later than that has missed it",
        min: 1,
        max: 3_650,
        get: |settings| settings.events_retention_days,
        set: |settings, value| settings.events_retention_days = value,
    },
    Field {
        key: "files.maxBytesPerSession",
        description: "Most bytes that the results of one session may save as files",
        min: 1_048_576,
        max: 4_294_967_295,
        get: |settings| settings.files_session_quota_bytes,
        set: |settings, value| settings.files_session_quota_bytes = value,
    },
    Field {
        key: "interactionTimeoutSec",
        description: "Seconds after which a card that nobody answered counts as not answered",
        min: 1,
        max: 86_400,
        get: |settings| settings.interaction_timeout_sec,
        set: |settings, value| settings.interaction_timeout_sec = value,
    },
    Field {
        key: "results.maxMediaBytes",
        description: "Largest image or audio shown in a result, in decoded bytes; larger is saved as a file",
        min: 0,
        max: 67_108_864,
        get: |settings| settings.result_media_bytes,
        set: |settings, value| settings.result_media_bytes = value,
    },
    Field {
        key: "results.maxTextChars",
        description: "Longest text of a result in Unicode characters, all blocks together; of longer text the model gets the beginning and the path of the whole",
        min: 1_000,
        max: 10_000_000,
        get: |settings| settings.result_text_chars,
        set: |settings, value| settings.result_text_chars = value,
    },
    Field {
        key: "tools.listChangedMergeSec",
        description: "Seconds over which a server's notices of a changed tool list are merged into one reading",
        min: 1,
        max: 60,
        get: |settings| settings.tools_list_changed_merge_sec,
        set: |settings, value| settings.tools_list_changed_merge_sec = value,
    },
    Field {
        key: "tools.maxDescriptionChars",
        description: "Longest tool description that engines see, in Unicode characters; longer is cut",
        min: 100,
        max: 100_000,
        get: |settings| settings.tool_description_chars,
        set: |settings, value| settings.tool_description_chars = value,
    },
    Field {
        key: "tools.maxListBytes",
        description: "Largest tool list taken from one server in bytes, all pages together",
        min: 1_024,
        max: 256 << 20,
        get: |settings| settings.max_list_bytes,
        set: |settings, value| settings.max_list_bytes = value,
    },
    Field {
        key: "tools.maxNameChars",
        description: "Longest tool name that engines see; longer is cut and ends in a hash",
        min: 32,
        max: 128,
        get: |settings| settings.tool_name_chars,
        set: |settings, value| settings.tool_name_chars = value,
    },
    Field {
        key: "tools.maxPerServer",
        description: "Most tools taken from one server",
        min: 1,
        max: 100_000,
        get: |settings| settings.max_tools_per_server,
        set: |settings, value| settings.max_tools_per_server = value,
    },
    Field {
        key: "tools.maxStructureChars",
        description: "Longest summary of a result's structure that is added to a tool's description, in Unicode characters; longer is cut",
        min: 0,
        max: 20_000,
        get: |settings| settings.tool_structure_chars,
        set: |settings, value| settings.tool_structure_chars = value,
    },
    Field {
        key: "tools.staleAfterSec",
        description: "Age in seconds at which a tool list is read again, in the background, when an engine asks for it",
        min: 1,
        max: 86_400,
        get: |settings| settings.tools_stale_after_sec,
        set: |settings, value| settings.tools_stale_after_sec = value,
    },
    Field {
        key: "upstream.idleCloseSec",
        description: "An upstream connection without calls is closed after this many seconds",
        min: 5,
        max: 86_400,
        get: |settings| settings.upstream_idle_close_sec,
        set: |settings, value| settings.upstream_idle_close_sec = value,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_within_its_bounds_and_every_field_reads_back_what_was_set() {
        let defaults = Settings::default();
        for field in FIELDS {
            let value = (field.get)(&defaults);
            assert!((field.min..=field.max).contains(&value), "{}", field.key);
            let mut settings = Settings::default();
            settings.set(field.key, &Value::from(field.max)).unwrap();
            assert_eq!(field.get(&settings), Value::from(field.max), "{}", field.key);
        }
        assert!(FIELDS.is_sorted_by_key(|field| field.key));
    }

    #[test]
    fn a_wrong_value_names_the_key_and_its_bounds() {
        let mut settings = Settings::default();
        for value in [Value::from(0), Value::from(1.5), Value::from("64"), Value::Null, Value::from(u64::MAX)] {
            let error = settings.set("tools.maxNameChars", &value).unwrap_err();
            assert_eq!(error, SettingError::OutOfBounds { key: "tools.maxNameChars", min: 32, max: 128 });
        }
        assert_eq!(settings.set("tools.nope", &Value::Null), Err(SettingError::Unknown("tools.nope".to_owned())));
    }
}
