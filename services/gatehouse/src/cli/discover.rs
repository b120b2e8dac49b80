//! Finds the server and the key: options and their variables first, then the data folder of `gatehouse up`.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{
    failure::{Code, Failure},
    globals::Globals,
};

/// What to talk to, and as whom.
#[derive(Debug)]
pub(crate) struct Target {
    /// Which service it is.
    pub(crate) service: Service,
    /// Whether it is that of the data folder.
    pub(crate) is_local: bool,
    /// The endpoint: an absolute `http` or `https` URL.
    pub(crate) endpoint: String,
    /// The API key; none when none was found.
    pub(crate) key: Option<SecretString>,
    /// Where the key was looked for, for people.
    pub(crate) looked: String,
    /// What the user should know, for standard error.
    pub(crate) warnings: Vec<String>,
}

/// What `gatehouse up` writes when it is ready.
#[derive(Debug, Deserialize)]
struct Endpoints {
    grpc: String,
    #[serde(default)]
    interaction: String,
}

/// A service, as people name it here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// The gateway: everything but cards.
    Gateway,
    /// Interaction: cards.
    Interaction,
}

impl Service {
    /// The option that says where it is.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::Gateway => "--endpoint (GATEHOUSE_ENDPOINT)",
            Self::Interaction => "--interaction-endpoint (GATEHOUSE_INTERACTION_ENDPOINT)",
        }
    }
}

/// The variables that matter here; tests bring their own.
#[derive(Debug, Default, Clone)]
pub(crate) struct Surroundings {
    /// The current folder.
    pub(crate) current: PathBuf,
    /// `XDG_DATA_HOME`.
    pub(crate) data_home: Option<PathBuf>,
    /// `HOME`.
    pub(crate) home: Option<PathBuf>,
    /// `GATEHOUSE_API_KEY`.
    pub(crate) api_key: Option<String>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn here() -> Self {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Self {
            current: std::env::current_dir().unwrap_or_default(),
            data_home: folder("XDG_DATA_HOME"),
            home: folder("HOME"),
            api_key: std::env::var("GATEHOUSE_API_KEY").ok(),
        }
    }

    /// The data folder when none was given.
    pub(crate) fn data_folder(&self) -> PathBuf {
        let near = self.current.join(".gatehouse");
        if near.is_dir() {
            return near;
        }
        let share = self.home.as_ref().map(|home| home.join(".local/share"));
        self.data_home.clone().or(share).unwrap_or_else(|| self.current.clone()).join("gatehouse")
    }
}

/// The gateway and the key to use.
pub(crate) fn find(globals: &Globals, surroundings: &Surroundings) -> Result<Target, Failure> {
    let folder = globals.data.clone().unwrap_or_else(|| surroundings.data_folder());
    let local = local_endpoints(&folder)?.map(|local| with_scheme(&local.grpc, Service::Gateway)).transpose()?;
    let given = text(globals.endpoint.as_ref()).map(|given| with_scheme(given, Service::Gateway)).transpose()?;
    let endpoint = given.clone().or_else(|| local.clone()).ok_or_else(|| not_running(&folder))?;
    let is_local = given.is_none() || local.as_ref() == Some(&endpoint);
    target(Service::Gateway, endpoint, is_local, globals, surroundings, &folder)
}

/// Interaction and the key to use. A gateway that was given by its endpoint alone does not say where its interaction is: the
/// data folder's is another one's, unless the endpoint is the folder's.
pub(crate) fn find_interaction(globals: &Globals, surroundings: &Surroundings) -> Result<Target, Failure> {
    let service = Service::Interaction;
    let folder = globals.data.clone().unwrap_or_else(|| surroundings.data_folder());
    let local = local_endpoints(&folder)?;
    let own = local.as_ref().map(|local| local.interaction.as_str()).filter(|own| !own.is_empty());
    let own = own.map(|own| with_scheme(own, service)).transpose()?;
    if let Some(given) = text(globals.interaction_endpoint.as_ref()) {
        let endpoint = with_scheme(given, service)?;
        let is_local = own.as_ref() == Some(&endpoint);
        return target(service, endpoint, is_local, globals, surroundings, &folder);
    }
    if let Some(given) = text(globals.endpoint.as_ref()) {
        let given = with_scheme(given, Service::Gateway)?;
        let grpc = local.as_ref().map(|local| with_scheme(&local.grpc, Service::Gateway)).transpose()?;
        if grpc.as_ref() != Some(&given) {
            let message = "--endpoint (GATEHOUSE_ENDPOINT) is the gateway's; cards are kept by interaction, at an endpoint of its own";
            let next =
                "give --interaction-endpoint (GATEHOUSE_INTERACTION_ENDPOINT) too, such as `http://127.0.0.1:7303`";
            return Err(Failure::usage(message).next(next));
        }
    }
    match (own, local) {
        (Some(endpoint), _) => target(service, endpoint, true, globals, surroundings, &folder),
        (None, None) => Err(not_running(&folder)),
        (None, Some(_)) => {
            let message = format!("{} does not name interaction", folder.join("endpoints.json").display());
            Err(Failure::new(Code::FailedPrecondition, message).next("restart `gatehouse up` with this version"))
        }
    }
}

/// The gateway that goes with this interaction. One that was given by its endpoint alone does not say where its gateway is.
pub(crate) fn find_beside(
    interaction: &Target,
    globals: &Globals,
    surroundings: &Surroundings,
) -> Result<Target, Failure> {
    if !interaction.is_local && text(globals.endpoint.as_ref()).is_none() {
        let message =
            "a session is looked up at the gateway, and --interaction-endpoint alone does not say where that is";
        return Err(Failure::usage(message).next("give --endpoint (GATEHOUSE_ENDPOINT) too, or the session's id"));
    }
    find(globals, surroundings)
}

fn text(given: Option<&String>) -> Option<&str> {
    given.map(|given| given.trim()).filter(|given| !given.is_empty())
}

/// The folder's key is for the folder's server: it is not sent anywhere else unless the user names the folder.
fn target(
    service: Service,
    endpoint: String,
    is_local: bool,
    globals: &Globals,
    surroundings: &Surroundings,
    folder: &Path,
) -> Result<Target, Failure> {
    let mut warnings = Vec::new();
    let may_use_folder = is_local || globals.data.is_some();
    let (key, looked) = find_key(globals, surroundings, folder, may_use_folder, &mut warnings)?;
    if key.is_some() && endpoint.starts_with("http://") && !is_loopback(&endpoint) {
        warnings.push("the API key crosses the network unencrypted; use an https endpoint".to_owned());
    }
    Ok(Target { service, is_local, endpoint, key, looked, warnings })
}

/// The message when nothing tells where the server is, or nothing listens there.
pub(crate) fn not_running(folder: &Path) -> Failure {
    let file = folder.join("endpoints.json");
    Failure::new(Code::Unavailable, format!("the server is not running: there is no {}", file.display()))
        .next("start it with `gatehouse up`, or give --endpoint (GATEHOUSE_ENDPOINT)")
        .next("give --data (GATEHOUSE_DATA) when its data folder is another one")
}

fn local_endpoints(folder: &Path) -> Result<Option<Endpoints>, Failure> {
    let file = folder.join("endpoints.json");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::file("read", &file, &error)),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        Failure::new(Code::FailedPrecondition, format!("{} is damaged: {error}", file.display()))
            .next("restart `gatehouse up`, which writes it anew, or give --endpoint")
    })
}

fn with_scheme(endpoint: &str, service: Service) -> Result<String, Failure> {
    let endpoint = endpoint.trim_end_matches('/');
    let full = if endpoint.contains("://") { endpoint.to_owned() } else { format!("http://{endpoint}") };
    let is_good = url::Url::parse(&full)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some() && url.username().is_empty());
    if is_good {
        return Ok(full);
    }
    Err(no_url(service))
}

/// What an endpoint takes.
pub(crate) fn no_url(service: Service) -> Failure {
    let (whose, example) = match service {
        Service::Gateway => ("the gateway's", "http://127.0.0.1:7301"),
        Service::Interaction => ("interaction's", "http://127.0.0.1:7303"),
    };
    Failure::usage(&format!("{} takes the URL of {whose} gRPC, such as `{example}`", service.option()))
}

fn is_loopback(endpoint: &str) -> bool {
    match url::Url::parse(endpoint).ok().as_ref().and_then(url::Url::host) {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn find_key(
    globals: &Globals,
    surroundings: &Surroundings,
    folder: &Path,
    may_use_folder: bool,
    warnings: &mut Vec<String>,
) -> Result<(Option<SecretString>, String), Failure> {
    let variable = surroundings.api_key.as_deref();
    let key = globals.key.as_ref().map(ExposeSecret::expose_secret).filter(|key| !key.trim().is_empty());
    if let Some(key) = key.filter(|key| Some(*key) != variable) {
        let warning =
            "other users of this machine can see a key on the command line; use GATEHOUSE_API_KEY or --key-file";
        warnings.push(warning.to_owned());
        return Ok((usable(key, "--key")?, "--key".to_owned()));
    }
    if let Some(file) = &globals.key_file {
        let text = std::fs::read_to_string(file).map_err(|error| Failure::file("read", file, &error))?;
        let place = file.display().to_string();
        return Ok((usable(&text, &place)?, place));
    }
    if let Some(key) = key {
        return Ok((usable(key, "GATEHOUSE_API_KEY")?, "GATEHOUSE_API_KEY".to_owned()));
    }
    let file = folder.join("admin.key");
    if !may_use_folder {
        let looked = format!(
            "--key-file, GATEHOUSE_API_KEY (the key in {} is only used for the server of that folder, or with --data)",
            file.display()
        );
        return Ok((None, looked));
    }
    let looked = format!("--key-file, GATEHOUSE_API_KEY, {}", file.display());
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok((usable(&text, &file.display().to_string())?, file.display().to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((None, looked)),
        Err(error) => Err(Failure::file("read", &file, &error)),
    }
}

/// The key without blanks around it. Says where it was found when it cannot be one; never what it is.
fn usable(text: &str, place: &str) -> Result<Option<SecretString>, Failure> {
    let key = text.trim();
    if key.is_empty() {
        return Ok(None);
    }
    if key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(SecretString::from(key)));
    }
    Err(Failure::usage(&format!(
        "the API key in {place} has blanks or characters that no key has: it begins with `ghk_`"
    )))
}

#[cfg(test)]
mod tests;
