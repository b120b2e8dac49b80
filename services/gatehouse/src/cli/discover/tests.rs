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

const ENDPOINTS: &str = r#"{"mcp":"http://127.0.0.1:1/mcp","grpc":"http://127.0.0.1:2","interaction":"http://127.0.0.1:5","ops":"x","pid":4}"#;

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
fn interaction_is_the_one_that_was_given_or_that_of_the_folders_gateway() {
    let folder = Folder::new(Some(ENDPOINTS), Some("ghk_local"));
    let here = folder.here();
    let find = |endpoint: Option<&str>, interaction: Option<&str>| {
        let (endpoint, interaction_endpoint) = (endpoint.map(str::to_owned), interaction.map(str::to_owned));
        find_interaction(&Globals { endpoint, interaction_endpoint, ..Globals::default() }, &here)
    };
    for gateway in [None, Some("127.0.0.1:2"), Some(" ")] {
        let target = find(gateway, None).unwrap();
        assert_eq!((target.endpoint.as_str(), key(&target)), ("http://127.0.0.1:5", Some("ghk_local")));
    }
    let given = find(Some("https://other.example"), Some("https://cards.example")).unwrap();
    assert_eq!((given.endpoint.as_str(), key(&given)), ("https://cards.example", None));
    assert_eq!(key(&find(None, Some("127.0.0.1:5")).unwrap()), Some("ghk_local"));
}

#[test]
fn a_gateway_alone_does_not_tell_where_interaction_is_and_the_message_says_what_to_give() {
    let folder = Folder::new(Some(ENDPOINTS), Some("ghk_local"));
    let endpoint = Some("https://gatehouse.example".to_owned());
    let globals = Globals { endpoint, ..Globals::default() };
    let failure = find_interaction(&globals, &folder.here()).unwrap_err();
    assert_eq!(failure.code, Code::Usage);
    assert!(failure.text(false).contains("give --interaction-endpoint"), "{failure:?}");
    let old = Folder::new(Some(r#"{"grpc":"http://127.0.0.1:2"}"#), Some("ghk_local"));
    let failure = find_interaction(&Globals::default(), &old.here()).unwrap_err();
    assert!(failure.text(false).contains("restart `gatehouse up`"), "{failure:?}");
    let none = Surroundings { current: folder.0.join("none"), ..Surroundings::default() };
    assert!(find_interaction(&Globals::default(), &none).unwrap_err().message.contains("not running"));
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
    let globals =
        Globals { endpoint: Some("http://127.0.0.1:2".to_owned()), data: Some(folder.0.clone()), ..Globals::default() };
    let text = find(&globals, &Surroundings::default()).unwrap_err().text(false);
    assert!(text.contains("admin.key") && !text.contains("two words"), "{text}");
}
