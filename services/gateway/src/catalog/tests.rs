use serde_json::{Value, json};

use super::*;

fn server(name: &str) -> Server {
    Server {
        id: ServerId::new(),
        name: name.to_owned(),
        enabled: true,
        url: "https://example.com/mcp".to_owned(),
        stdio: None,
        headers: Vec::new(),
        connect_timeout: Duration::from_secs(20),
        request_timeout: Duration::from_mins(10),
        max_concurrency: 16,
        listed_at: None,
        problem: String::new(),
        mask_rules: MaskRules::default(),
        hash: OnceLock::new(),
    }
}

fn tool(server: &Server, name: &str, rest: &Value) -> ToolRow {
    let mut definition = json!({"name": name, "inputSchema": {"type": "object"}});
    definition.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    ToolRow {
        server: server.id,
        name: name.to_owned(),
        definition: definition.to_string().into(),
        fingerprint: String::new(),
        overrides: DeclaredHints::default(),
        policy: None,
    }
}

fn profile(servers: &[(&Server, Option<&[&str]>)]) -> Profile {
    let servers = servers
        .iter()
        .map(|(server, tools)| (server.id, tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect())));
    Profile { id: ProfileId::new(), servers: servers.collect() }
}

fn names(offer: &Offer) -> Vec<&str> {
    offer.tools.iter().map(|tool| tool.exposed.as_str()).collect()
}

#[test]
fn a_profile_offers_its_servers_tools_or_the_chosen_ones_and_nothing_else() {
    let (a, b, c) = (server("a"), server("b"), server("c"));
    let rows =
        [tool(&a, "x", &json!({})), tool(&a, "y", &json!({})), tool(&b, "x", &json!({})), tool(&c, "z", &json!({}))];
    let profile = profile(&[(&a, None), (&b, Some(&["x", "gone"]))]);
    let id = profile.id;
    let catalog = Catalog::new(1, Settings::default(), vec![a, b, c], rows.to_vec(), vec![profile]);
    let offer = catalog.offer(id, PermissionMode::Ask).unwrap();
    assert_eq!(names(offer), ["a__x", "a__y", "b__x"]);
    assert_eq!(offer.find("b__x").unwrap().server.name, "b");
    assert!(offer.find("c__z").is_none() && offer.find("x").is_none());
    assert!(catalog.offer(ProfileId::new(), PermissionMode::Ask).is_none());
}

#[test]
fn read_only_mode_offers_effective_read_only_tools_alone() {
    let a = server("a");
    let declared = tool(&a, "declared", &json!({"annotations": {"readOnlyHint": true}}));
    let mut revoked = tool(&a, "revoked", &json!({"annotations": {"readOnlyHint": true}}));
    revoked.overrides.read_only = Some(false);
    let mut granted = tool(&a, "granted", &json!({}));
    granted.overrides.read_only = Some(true);
    let profile = profile(&[(&a, None)]);
    let id = profile.id;
    let catalog = Catalog::new(1, Settings::default(), vec![a], vec![declared, revoked, granted], vec![profile]);
    let offer = catalog.offer(id, PermissionMode::ReadOnly).unwrap();
    assert_eq!(names(offer), ["a__declared", "a__granted"]);
    assert!(offer.find("a__revoked").is_none());
}

#[test]
fn one_bad_definition_is_left_out_alone_and_keeps_its_reason() {
    let a = server("a");
    let id = a.id;
    let rows = vec![tool(&a, "good", &json!({})), tool(&a, "bad", &json!({"inputSchema": null}))];
    let profile = profile(&[(&a, None)]);
    let profile_id = profile.id;
    let catalog = Catalog::new(1, Settings::default(), vec![a], rows, vec![profile]);
    assert_eq!(names(catalog.offer(profile_id, PermissionMode::Ask).unwrap()), ["a__good"]);
    assert!(catalog.tool(id, "bad").unwrap().definition.is_err());
}

#[test]
fn a_server_that_is_off_or_failing_is_named_with_its_reason_and_the_others_are_offered() {
    let (mut off, mut failing, good) = (server("off"), server("failing"), server("good"));
    off.enabled = false;
    failing.problem = "connection refused".to_owned();
    let rows = vec![tool(&off, "x", &json!({})), tool(&good, "x", &json!({}))];
    let profile = profile(&[(&off, None), (&failing, None), (&good, None)]);
    let id = profile.id;
    let catalog = Catalog::new(1, Settings::default(), vec![off, failing, good], rows, vec![profile]);
    let offer = catalog.offer(id, PermissionMode::Ask).unwrap();
    assert_eq!(names(offer), ["good__x"]);
    let unavailable: Vec<_> = offer.unavailable.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
    assert_eq!(unavailable, [("off", "it is switched off"), ("failing", "connection refused")]);
}

#[test]
fn the_tools_version_moves_with_what_is_offered_and_with_nothing_else() {
    let a = server("a");
    let profile = profile(&[(&a, None)]);
    let version = |rows: Vec<ToolRow>, epoch| {
        let catalog = Catalog::new(epoch, Settings::default(), vec![a.clone()], rows, vec![profile.clone()]);
        catalog.offer(profile.id, PermissionMode::Ask).unwrap().version.clone()
    };
    let one = version(vec![tool(&a, "x", &json!({}))], 1);
    assert_eq!(version(vec![tool(&a, "x", &json!({"outputSchema": {"type": "object"}}))], 2), one);
    assert_ne!(version(vec![tool(&a, "x", &json!({"description": "new"}))], 1), one);
    assert_ne!(version(vec![tool(&a, "x", &json!({})), tool(&a, "y", &json!({}))], 1), one);
}

#[test]
fn the_list_is_one_json_array_of_definitions() {
    let a = server("a");
    let rows = vec![tool(&a, "x", &json!({})), tool(&a, "y", &json!({}))];
    let profile = profile(&[(&a, None)]);
    let id = profile.id;
    let catalog = Catalog::new(1, Settings::default(), vec![a], rows, vec![profile]);
    let list =
        format!("{{{}}}", String::from_utf8(catalog.offer(id, PermissionMode::Ask).unwrap().list.to_vec()).unwrap());
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["tools"][1]["name"], "a__y");
}

#[test]
fn a_changed_url_or_header_changes_the_configuration_hash_and_no_header_can_stand_for_two() {
    let header = |name: &str, value: &str| (name.to_owned(), SecretString::from(value));
    let mut hashes = HashSet::new();
    let mut with = |url: &str, headers: Vec<(String, SecretString)>| {
        let mut server = server("a");
        url.clone_into(&mut server.url);
        server.headers = headers;
        assert!(hashes.insert(server.config_hash()));
    };
    with("https://a/", Vec::new());
    with("https://b/", Vec::new());
    with("https://a/", vec![header("a", "b")]);
    with("https://a/", vec![header("a", "c")]);
    with("https://a/", vec![header("ab", "")]);
    assert!(!format!("{:?}", server("a")).contains("example.com"));
}
