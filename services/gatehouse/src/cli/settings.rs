//! `gatehouse settings`: what can be changed at run time.

use std::collections::HashMap;

use clap::{Args, Subcommand};
use gatehouse_proto::gateway::v1 as pb;
use serde_json::Value;

use super::{
    Context, convert,
    failure::{Code, Failure},
    nearest::near,
    output::{Answer, Out},
    server_view::time,
    table::{Cell, Style, Table},
};

/// Subcommands of `settings`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List every setting with its value
    List,
    /// Change settings, all or none
    #[command(after_help = "Examples:\n  gatehouse settings set calls.foregroundMaxSec 900\n  \
                            gatehouse settings set tools.maxNameChars=60 tools.staleAfterSec=60")]
    Set(Set),
    /// Put settings back to their defaults
    Reset {
        /// Names of the settings
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
}

/// Arguments of `settings set`.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Names and values: `KEY VALUE` or `KEY=VALUE`, one or more
    #[arg(required = true, value_name = "KEY VALUE", allow_negative_numbers = true)]
    pairs: Vec<String>,
}

/// Runs one of them.
pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer, Failure> {
    let settings = match command {
        Command::List => {
            let mut settings = context.client.settings();
            context.client.answer(settings.list_settings(pb::ListSettingsRequest {})).await?.settings
        }
        Command::Set(set) => change(pairs(&set.pairs)?, Vec::new(), context).await?,
        Command::Reset { keys } => change(HashMap::new(), keys, context).await?,
    };
    Ok(Answer::new(table(&settings, &context.out), &convert::json_list("settings", "Setting", &settings)?))
}

async fn change(
    set: HashMap<String, String>,
    reset: Vec<String>,
    context: &Context,
) -> Result<Vec<pb::Setting>, Failure> {
    let keys: Vec<String> = set.keys().chain(&reset).cloned().collect();
    let mut settings = context.client.settings();
    let answer = context.client.answer(settings.update_settings(pb::UpdateSettingsRequest { set, reset }));
    match answer.await {
        Ok(response) => Ok(response.settings.into_iter().filter(|setting| keys.contains(&setting.key)).collect()),
        Err(failure) if matches!(failure.code, Code::InvalidArgument | Code::NotFound) => {
            Err(suggest(failure, &keys, context).await)
        }
        Err(failure) => Err(failure),
    }
}

async fn suggest(mut failure: Failure, keys: &[String], context: &Context) -> Failure {
    let mut settings = context.client.settings();
    let answer = context.client.answer(settings.list_settings(pb::ListSettingsRequest {}));
    // The failure is told anyway; without a list there is only less to suggest.
    let known = answer.await.map(|response| response.settings).unwrap_or_default();
    let known: Vec<String> = known.into_iter().map(|setting| setting.key).collect();
    for key in keys.iter().filter(|key| !known.contains(key)) {
        if let Some(near) = near(key, &known).first() {
            failure = failure.next(format!("there is no setting `{key}`; did you mean `{near}`?"));
        }
    }
    failure.next("`gatehouse settings list` shows every setting with its bounds")
}

/// Reads `KEY VALUE` and `KEY=VALUE`. A value that is not JSON is text.
fn pairs(words: &[String]) -> Result<HashMap<String, String>, Failure> {
    let mut pairs = HashMap::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (key, value) = match word.split_once('=') {
            Some(pair) => pair,
            None => (word.as_str(), words.next().map(String::as_str).unwrap_or_default()),
        };
        if key.is_empty() || value.is_empty() {
            return Err(Failure::usage(&format!("`{word}` needs a value")).next("write `KEY VALUE` or `KEY=VALUE`"));
        }
        let is_json = serde_json::from_str::<Value>(value).is_ok();
        let value = if is_json { value.to_owned() } else { Value::from(value).to_string() };
        if pairs.insert(key.to_owned(), value).is_some() {
            return Err(Failure::usage(&format!("`{key}` is given twice")));
        }
    }
    Ok(pairs)
}

fn table(settings: &[pb::Setting], out: &Out) -> String {
    let mut table = Table::new(&["KEY", "VALUE", "DEFAULT", "CHANGED", "DESCRIPTION"]);
    for setting in settings {
        let is_default = setting.value_json == setting.default_json;
        let changed = [time(setting.updated_at.as_ref(), out), setting.updated_by.clone()].join(" ");
        table.row([
            setting.key.as_str().into(),
            Cell::new(&setting.value_json, if is_default { Style::Plain } else { Style::Bold }),
            Cell::new(&setting.default_json, Style::Dim),
            changed.trim().into(),
            setting.description.as_str().into(),
        ]);
    }
    table.render(out.colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_given_as_pairs_or_with_an_equals_sign() {
        let words = |words: &[&str]| pairs(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let read = words(&["a.b", "900", "c.d=x y", "e", "{\"f\":1}"]).unwrap();
        assert_eq!((&*read["a.b"], &*read["c.d"], &*read["e"]), ("900", "\"x y\"", "{\"f\":1}"));
        assert!(words(&["a.b"]).unwrap_err().message.contains("needs a value"));
        assert!(words(&["a=1", "a", "2"]).unwrap_err().message.contains("twice"));
    }
}
