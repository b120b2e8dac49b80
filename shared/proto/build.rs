//! Compiles `proto/` with protox, so that no protoc has to be installed.
use std::path::{Path, PathBuf};

/// Messages that hold secrets: `src/debug.rs` has a `Debug` for each that prints none.
const SECRET_MESSAGES: [&str; 7] = [
    "CreateServerRequest",
    "UpdateServerRequest",
    "TestServerRequest",
    "CreateSessionResponse",
    "IssueTokenResponse",
    "RotateTokenResponse",
    "CreateApiKeyResponse",
];

fn protos(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            protos(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    protos(root, &mut files)?;
    files.sort();
    let descriptors = protox::compile(&files, [root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    let mut builder = tonic_prost_build::configure().build_transport(true);
    for message in SECRET_MESSAGES {
        builder = builder.skip_debug([format!("gatehouse.gateway.v1.{message}")]);
    }
    builder.compile_fds(descriptors)?;
    Ok(())
}
