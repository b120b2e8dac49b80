//! Content blocks of a result (MCP 2025-11-25, schema `ContentBlock`), read for people and saved.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::failure::Failure;

/// A block as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Text.
    Text(String),
    /// Something that can be saved.
    Data {
        /// `image`, `audio` or `resource`.
        what: &'static str,
        /// Its media type.
        media_type: String,
        /// The thing itself.
        bytes: Vec<u8>,
        /// Its URI; empty for none.
        uri: String,
    },
    /// Everything else, in a line.
    Described(String),
}

/// Reads one block. One that is damaged or unknown is described.
pub(crate) fn read(block: &Value) -> Block {
    let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => Block::Text(text("text")),
        Some("image") => data("image", text("mimeType"), &block["data"], String::new()),
        Some("audio") => data("audio", text("mimeType"), &block["data"], String::new()),
        Some("resource") => {
            let resource = &block["resource"];
            let part = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
            match resource["text"].as_str() {
                Some(words) => Block::Text(format!("[resource: {}]\n{words}", part("uri"))),
                None => data("resource", part("mimeType"), &resource["blob"], part("uri")),
            }
        }
        Some("resource_link") => Block::Described(format!("[resource link: {} {}]", text("name"), text("uri"))),
        Some(other) => Block::Described(format!("[a block of type `{other}`; --json shows it]")),
        None => Block::Described("[a block without a type; --json shows it]".to_owned()),
    }
}

fn data(what: &'static str, media_type: String, data: &Value, uri: String) -> Block {
    match data.as_str().map(|text| STANDARD.decode(text)) {
        Some(Ok(bytes)) => Block::Data { what, media_type, bytes, uri },
        _ => Block::Described(format!("[{what}: its data is damaged; --json shows it]")),
    }
}

/// Saves data as `<call>-<place>.<extension>`, and returns where. Never writes over another file.
pub(crate) fn save(
    folder: &Path,
    call: &str,
    place: usize,
    media_type: &str,
    bytes: &[u8],
) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
    // The id comes from the server: only what cannot leave the folder is used.
    let call: String =
        call.chars().filter(|character| character.is_ascii_alphanumeric() || *character == '-').collect();
    let call = if call.is_empty() { "call" } else { &call };
    for number in 0_u32..1_000 {
        let again = if number == 0 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{call}-{place}{again}.{}", extension(media_type)));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        match file.and_then(|mut file| file.write_all(bytes)) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Failure::file("write", &path, &error)),
        }
    }
    Err(Failure::usage(&format!("{} is full of results of this call", folder.display())).next("give another --out"))
}

fn extension(media_type: &str) -> &'static str {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/mp4" => "m4a",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/json" => "json",
        "text/csv" => "csv",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_are_text_or_data_and_damage_is_described() {
        let text = json!({ "type": "resource", "resource": { "uri": "a://b", "text": "words" } });
        assert_eq!(read(&text), Block::Text("[resource: a://b]\nwords".to_owned()));
        let blob =
            json!({ "type": "resource", "resource": { "uri": "a://b", "mimeType": "text/csv", "blob": "YQ==" } });
        assert!(matches!(read(&blob), Block::Data { what: "resource", bytes, .. } if bytes == b"a"));
        let damaged = json!({ "type": "image", "mimeType": "image/png", "data": "%" });
        assert_eq!(read(&damaged), Block::Described("[image: its data is damaged; --json shows it]".to_owned()));
    }

    #[test]
    fn a_saved_file_stays_in_the_folder_and_overwrites_nothing() {
        let id: gatehouse_types::CallId = gatehouse_types::Id::new();
        let folder = std::env::temp_dir().join(format!("gatehouse-content-{id}"));
        let first = save(&folder, "../../x", 1, "image/png; a=b", b"one").unwrap();
        let second = save(&folder, "../../x", 1, "image/png", b"two").unwrap();
        assert_eq!((first, second), (folder.join("x-1.png"), folder.join("x-1-1.png")));
        assert_eq!(std::fs::read(folder.join("x-1.png")).unwrap(), b"one");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
