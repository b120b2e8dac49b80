//! Pure. Extensions of files by their media type.

use super::Kind;

/// Extensions of the media types that servers send.
const EXTENSIONS: [(&str, &str); 44] = [
    ("application/gzip", "gz"),
    ("application/javascript", "js"),
    ("application/json", "json"),
    ("application/msword", "doc"),
    ("application/pdf", "pdf"),
    ("application/rtf", "rtf"),
    ("application/sql", "sql"),
    ("application/toml", "toml"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/x-ndjson", "ndjson"),
    ("application/x-tar", "tar"),
    ("application/x-yaml", "yaml"),
    ("application/xml", "xml"),
    ("application/yaml", "yaml"),
    ("application/zip", "zip"),
    ("audio/aac", "aac"),
    ("audio/flac", "flac"),
    ("audio/mp3", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/webm", "webm"),
    ("audio/x-wav", "wav"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpg"),
    ("image/jpg", "jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg"),
    ("image/tiff", "tiff"),
    ("image/webp", "webp"),
    ("text/css", "css"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/javascript", "js"),
    ("text/markdown", "md"),
    ("text/xml", "xml"),
    ("video/mp4", "mp4"),
];

/// The extension for a media type, its parameters aside; for one that is not known that of its family, else of the kind.
pub(super) fn extension(kind: Kind, media_type: &str) -> &'static str {
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = EXTENSIONS.iter().find(|(known, _)| *known == media_type).map(|(_, extension)| *extension);
    known.unwrap_or_else(|| match &media_type {
        family if family.ends_with("+json") => "json",
        family if family.ends_with("+xml") => "xml",
        family if family.starts_with("text/") => "txt",
        _ if kind == Kind::Text => "txt",
        _ => "bin",
    })
}
