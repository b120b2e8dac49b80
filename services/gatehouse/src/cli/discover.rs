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

/// The server and the key to use.
pub(crate) fn find(globals: &Globals, surroundings: &Surroundings) -> Result<Target, Failure> {
    let folder = globals.data.clone().unwrap_or_else(|| surroundings.data_folder());
    let local = local_endpoint(&folder)?;
    let given = globals.endpoint.as_deref().map(str::trim).filter(|given| !given.is_empty());
    let endpoint = match (given, &local) {
        (Some(given), _) => with_scheme(given)?,
        (None, Some(local)) => local.clone(),
        (None, None) => return Err(not_running(&folder)),
    };
    let mut warnings = Vec::new();
    // The folder's key is for the folder's server: it is not sent anywhere else unless the user names the folder.
    let may_use_folder = given.is_none() || globals.data.is_some() || local.as_ref() == Some(&endpoint);
    let (key, looked) = find_key(globals, surroundings, &folder, may_use_folder, &mut warnings)?;
    if key.is_some() && endpoint.starts_with("http://") && !is_loopback(&endpoint) {
        warnings.push("the API key crosses the network unencrypted; use an https endpoint".to_owned());
    }
    Ok(Target { endpoint, key, looked, warnings })
}

/// The message when nothing tells where the server is, or nothing listens there.
pub(crate) fn not_running(folder: &Path) -> Failure {
    let file = folder.join("endpoints.json");
    Failure::new(Code::Unavailable, format!("the server is not running: there is no {}", file.display()))
        .next("start it with `gatehouse up`, or give --endpoint (GATEHOUSE_ENDPOINT)")
        .next("give --data (GATEHOUSE_DATA) when its data folder is another one")
}

fn local_endpoint(folder: &Path) -> Result<Option<String>, Failure> {
    let file = folder.join("endpoints.json");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::file("read", &file, &error)),
    };
    let endpoints: Endpoints = serde_json::from_str(&text).map_err(|error| {
        Failure::new(Code::FailedPrecondition, format!("{} is damaged: {error}", file.display()))
            .next("restart `gatehouse up`, which writes it anew, or give --endpoint")
    })?;
    with_scheme(&endpoints.grpc).map(Some)
}

fn with_scheme(endpoint: &str) -> Result<String, Failure> {
    let endpoint = endpoint.trim_end_matches('/');
    let full = if endpoint.contains("://") { endpoint.to_owned() } else { format!("http://{endpoint}") };
    let is_good = url::Url::parse(&full)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some() && url.username().is_empty());
    if is_good {
        return Ok(full);
    }
    Err(Failure::usage("--endpoint takes the URL of the gateway's gRPC, such as `http://127.0.0.1:7301`"))
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
mod tests {
    use super::*;

    /// A folder of its own, removed when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(endpoints: Option<&str>, key: Option<&str>) -> Self {
            let id: gatehouse_types::SessionId = gatehouse_types::Id::new();
            let path = std::env::temp_dir().join(format!("gatehouse-discover-{id}"));
            std::fs::create_dir(&path).unwrap();
            for (name, text) in [("endpoints.json", endpoints), ("admin.key", key)] {
                if let Some(text) = text {
                    std::fs::write(path.join(name), text).unwrap();
                }
            }
            Self(path)
        }

        fn here(&self) -> Surroundings {
            std::fs::create_dir(self.0.join("data")).unwrap();
            std::fs::rename(self.0.join("endpoints.json"), self.0.join("data/endpoints.json")).unwrap();
            std::fs::rename(self.0.join("admin.key"), self.0.join("data/admin.key")).unwrap();
            std::fs::rename(self.0.join("data"), self.0.join(".gatehouse")).unwrap();
            Surroundings { current: self.0.clone(), ..Surroundings::default() }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const ENDPOINTS: &str =
        r#"{"mcp":"http://127.0.0.1:1/mcp","grpc":"http://127.0.0.1:2","ops":"http://127.0.0.1:3","pid":4}"#;

    fn key(target: &Target) -> Option<&str> {
        target.key.as_ref().map(ExposeSecret::expose_secret)
    }

    #[test]
    fn the_data_folder_tells_endpoint_and_key() {
        let folder = Folder::new(Some(ENDPOINTS), Some("ghk_local\n"));
        let target = find(&Globals::default(), &folder.here()).unwrap();
        assert_eq!((target.endpoint.as_str(), key(&target)), ("http://127.0.0.1:2", Some("ghk_local")));
        assert!(target.warnings.is_empty());
    }

    #[test]
    fn the_folders_key_is_not_sent_to_another_endpoint_unless_the_folder_is_named() {
        let folder = Folder::new(Some(ENDPOINTS), Some("ghk_local"));
        let here = folder.here();
        let endpoint = Some("https://gatehouse.example".to_owned());
        let globals = Globals { endpoint, ..Globals::default() };
        let target = find(&globals, &here).unwrap();
        assert_eq!(key(&target), None);
        assert!(target.looked.contains("only used for the server of that folder"));
        let named = Globals { data: Some(folder.0.join(".gatehouse")), ..globals };
        assert_eq!(key(&find(&named, &here).unwrap()), Some("ghk_local"));
        let same = Globals { endpoint: Some("127.0.0.1:2/".to_owned()), ..Globals::default() };
        assert_eq!(key(&find(&same, &here).unwrap()), Some("ghk_local"));
    }

    #[test]
    fn a_key_on_the_command_line_and_a_key_in_clear_are_warned_of() {
        let folder = Folder::new(None, None);
        let endpoint = Some("http://gatehouse.example:7301".to_owned());
        let globals = Globals { endpoint, key: Some("ghk_x".into()), ..Globals::default() };
        let mut here = Surroundings { current: folder.0.clone(), ..Surroundings::default() };
        assert_eq!(find(&globals, &here).unwrap().warnings.len(), 2);
        here.api_key = Some("ghk_x".to_owned());
        assert_eq!(find(&globals, &here).unwrap().warnings.len(), 1);
    }

    #[test]
    fn a_key_file_goes_before_the_variable_and_an_empty_variable_is_none() {
        let folder = Folder::new(Some(ENDPOINTS), Some("ghk_local"));
        let mut here = folder.here();
        let file = folder.0.join("other.key");
        std::fs::write(&file, "ghk_file").unwrap();
        here.api_key = Some("ghk_variable".to_owned());
        let variable = Globals { key: Some("ghk_variable".into()), ..Globals::default() };
        assert_eq!(key(&find(&variable, &here).unwrap()), Some("ghk_variable"));
        let both = Globals { key_file: Some(file), ..variable };
        assert_eq!(key(&find(&both, &here).unwrap()), Some("ghk_file"));
        here.api_key = Some(String::new());
        let empty = Globals { key: Some("".into()), ..Globals::default() };
        assert_eq!(key(&find(&empty, &here).unwrap()), Some("ghk_local"));
    }

    #[test]
    fn without_a_server_the_message_says_how_to_start_one() {
        let folder = Folder::new(None, None);
        let here = Surroundings { current: folder.0.clone(), ..Surroundings::default() };
        let failure = find(&Globals::default(), &here).unwrap_err();
        assert!(failure.text(false).contains("start it with `gatehouse up`"), "{}", failure.text(false));
        let damaged = Folder::new(Some("{"), Some("ghk_x"));
        assert!(find(&Globals::default(), &damaged.here()).unwrap_err().text(false).contains("is damaged"));
    }

    #[test]
    fn a_key_that_cannot_be_one_is_refused_without_showing_it() {
        let folder = Folder::new(None, Some("two words"));
        let globals = Globals {
            endpoint: Some("http://127.0.0.1:2".to_owned()),
            data: Some(folder.0.clone()),
            ..Globals::default()
        };
        let text = find(&globals, &Surroundings::default()).unwrap_err().text(false);
        assert!(text.contains("admin.key") && !text.contains("two words"), "{text}");
    }
}
