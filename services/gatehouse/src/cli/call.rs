//! `gatehouse call`: calls a tool as an engine of a session would.

use std::path::PathBuf;

use clap::Args;
use gatehouse_proto::gateway::v1::{self as pb, call_tool_response::Event};
use serde_json::{Value, json, value::RawValue};

use super::{
    Context,
    content::{self, Block},
    failure::{Code, Failure, OK, TOOL_ERROR},
    nearest::{Noun, named},
    output::{Answer, read_all_input},
    safe, when,
};

/// Arguments of `call`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gatehouse call SESSION orders__get_order '{\"id\":\"A-1\"}'\n  \
                        gatehouse call SESSION orders__list_orders @arguments.json --json\n  \
                        echo '{}' | gatehouse call SESSION charts__draw - --out ./images\n\n\
                        Progress goes to standard error. The exit code is 4 when the tool answered with an error.\n\
                        Ctrl-C cancels the call.")]
pub(crate) struct Call {
    /// Id or external id of the session
    session: String,
    /// Name of the tool as offered: `server__tool`
    tool: String,
    /// Arguments: a JSON object, `@file`, or `-` for standard input; else none
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Call as this actor of the session
    #[arg(long, default_value = "", hide_default_value = true)]
    actor: String,
    /// Save images, audio and binary resources into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Call {
    /// Whether arguments that stand on the command line can be sent; before anything else is done.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.arguments {
            Some(text) if text != "-" && !text.starts_with('@') => object(text, "the arguments"),
            _ => Ok(()),
        }
    }

    async fn arguments(&self) -> Result<String, Failure> {
        let Some(arguments) = &self.arguments else { return Ok(String::new()) };
        if arguments == "-" {
            let text = read_all_input().await?;
            return object(&text, "standard input").map(|()| text);
        }
        let Some(file) = arguments.strip_prefix('@') else { return Ok(arguments.clone()) };
        let text = std::fs::read_to_string(file).map_err(|error| Failure::file("read", file.as_ref(), &error))?;
        object(&text, file).map(|()| text)
    }

    /// Calls, shows progress, and answers with the result.
    pub(crate) async fn run(self, context: &Context) -> Result<Answer, Failure> {
        let arguments_json = self.arguments().await?;
        let request = pb::CallToolRequest {
            session: self.session.clone(),
            actor: self.actor.clone(),
            tool: self.tool.clone(),
            arguments_json,
        };
        let client = context.client.endless();
        let used = [(Noun::Session, self.session.as_str()), (Noun::Offered(&self.session), self.tool.as_str())];
        let mut calls = client.calls();
        let mut stream = named(context, client.answer(calls.call_tool(request)), &used).await?;
        loop {
            let message = named(context, client.next(&mut stream), &used).await;
            let message = message.inspect_err(|_| context.out.progress_done())?;
            match message.map(|message| message.event) {
                Some(Some(Event::Progress(progress))) => context.out.progress(&words(&progress)),
                Some(Some(Event::Result(result))) => {
                    context.out.progress_done();
                    return answer(&result, self.out.as_deref());
                }
                // An event of a newer version.
                Some(None) => {}
                None => {
                    context.out.progress_done();
                    let next = "`gatehouse audit list` shows what became of the call";
                    return Err(Failure::new(Code::Internal, "the server ended the call without a result").next(next));
                }
            }
        }
    }
}

fn object(text: &str, what: &str) -> Result<(), Failure> {
    let example = "a call takes a JSON object, such as '{\"id\":\"A-1\"}'";
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => Err(Failure::usage(&format!("{what}: this is JSON, but not an object")).next(example)),
        Err(error) => {
            let place = format!("line {}, column {}", error.line(), error.column());
            Err(Failure::usage(&format!("{what}: this is not JSON ({place})")).next(example))
        }
    }
}

fn words(progress: &pb::Progress) -> String {
    let how_far = match progress.total {
        Some(total) if total > 0.0 => {
            format!("{}/{} ({:.0} %)", progress.progress, total, progress.progress / total * 100.0)
        }
        _ => progress.progress.to_string(),
    };
    format!("{how_far} {}", progress.message).trim_end().to_owned()
}

fn answer(result: &pb::CallResult, out: Option<&std::path::Path>) -> Result<Answer, Failure> {
    let damaged = |_| Failure::new(Code::Internal, "the server sent a result that is not a JSON array");
    let raw: &RawValue = serde_json::from_str(&result.content_json).map_err(damaged)?;
    let blocks: Vec<Value> = serde_json::from_str(&result.content_json).map_err(damaged)?;
    let mut text = String::new();
    let mut files = Vec::new();
    for (place, block) in blocks.iter().enumerate() {
        match content::read(block) {
            Block::Text(words) => text.push_str(&safe::block(&words)),
            Block::Data { what, media_type, bytes, uri } => {
                let described = format!("{what}: {media_type}, {}", when::size(bytes.len() as u64));
                let described = if uri.is_empty() { described } else { format!("{described}, {uri}") };
                let end = match out {
                    Some(folder) => {
                        let file = content::save(folder, &result.call_id, place + 1, &media_type, &bytes)?;
                        let shown = file.display().to_string();
                        files.push(json!({ "index": place, "path": shown }));
                        format!("saved as {shown}")
                    }
                    None => "--out FOLDER saves it".to_owned(),
                };
                text.push_str(&safe::line(&format!("[{described}; {end}]")));
            }
            Block::Described(words) => text.push_str(&safe::line(&words)),
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    let document = Document { call_id: &result.call_id, is_error: result.is_error, content: raw, files };
    let document = serde_json::to_string_pretty(&document)
        .map_err(|error| Failure::new(Code::Internal, format!("the result cannot be shown: {error}")))?;
    Ok(Answer { text, document, exit: if result.is_error { TOOL_ERROR } else { OK } })
}

/// What a script gets: the content as it came, with its own spelling of numbers.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    call_id: &'a str,
    is_error: bool,
    content: &'a RawValue,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(content: &str) -> pb::CallResult {
        pb::CallResult { call_id: "0190".to_owned(), content_json: content.to_owned(), is_error: false }
    }

    #[test]
    fn text_is_shown_without_control_characters_and_other_blocks_are_described() {
        let content = r#"[{"type":"text","text":"a\u001b[2J\nb"},{"type":"image","mimeType":"image/png","data":"AAAA"},
            {"type":"resource_link","uri":"ref://x","name":"Doc"},{"type":"hologram","n":1},7]"#;
        insta::assert_snapshot!(answer(&result(content), None).unwrap().text, @r"
        a\x1b[2J
        b
        [image: image/png, 3 B; --out FOLDER saves it]
        [resource link: Doc ref://x]
        [a block of type `hologram`; --json shows it]
        [a block without a type; --json shows it]
        ");
    }

    #[test]
    fn the_document_keeps_the_content_as_it_came() {
        let answer = answer(&result(r#"[{"type":"text","text":"x","n":1.00000000000000000001e3}]"#), None).unwrap();
        insta::assert_snapshot!(answer.document, @r#"
        {
          "callId": "0190",
          "isError": false,
          "content": [{"type":"text","text":"x","n":1.00000000000000000001e3}]
        }
        "#);
    }

    #[test]
    fn arguments_that_are_no_object_are_refused_before_sending_without_being_quoted() {
        assert!(object("[1]", "the arguments").unwrap_err().message.contains("not an object"));
        let wrong = object("{\"token\": hidden", "the arguments").unwrap_err().message;
        assert!(wrong.contains("column 11") && !wrong.contains("hidden"), "{wrong}");
        assert!(object("{}", "").is_ok());
    }

    #[test]
    fn progress_says_how_far_of_how_much() {
        let progress = |progress, total| pb::Progress { progress, total, message: "reading".to_owned() };
        assert_eq!(words(&progress(2.0, Some(8.0))), "2/8 (25 %) reading");
        assert_eq!(words(&progress(2.0, Some(0.0))), "2 reading");
    }
}
