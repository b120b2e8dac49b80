//! Which methods there are, from the descriptors: names for labels, and which of them stream.

use std::collections::HashMap;

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// Label of a method that is not served.
pub(super) const UNKNOWN: &str = "unknown";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Method {
    /// Path of its requests, such as `/gatehouse.gateway.v1.SessionService/GetSession`.
    pub(super) path: String,
    /// Whether its answer is a stream: no deadline, and it ends when shutdown begins.
    pub(super) streams: bool,
}

/// The methods of these descriptors, by path.
pub(super) fn all(descriptors: &[&[u8]]) -> Result<HashMap<String, Method>, prost::DecodeError> {
    let mut methods = HashMap::new();
    for encoded in descriptors {
        for file in FileDescriptorSet::decode(*encoded)?.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    let streams = method.server_streaming();
                    methods.insert(path.clone(), Method { path, streams });
                }
            }
        }
    }
    Ok(methods)
}
