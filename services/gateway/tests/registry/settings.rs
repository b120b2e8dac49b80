//! `SettingsService`.

use std::collections::HashMap;

use gatehouse_proto::gateway::v1;
use gatehouse_types::settings::FIELDS;

use crate::harness::{Gateway, wrong_fields};

fn set(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

async fn update(
    gateway: &Gateway,
    pairs: &[(&str, &str)],
    reset: &[&str],
) -> Result<tonic::Response<v1::UpdateSettingsResponse>, tonic::Status> {
    let reset = reset.iter().map(|key| (*key).to_owned()).collect();
    gateway.settings().update_settings(v1::UpdateSettingsRequest { set: set(pairs), reset }).await
}

async fn list(gateway: &Gateway) -> Vec<v1::Setting> {
    gateway.settings().list_settings(v1::ListSettingsRequest {}).await.unwrap().into_inner().settings
}

#[tokio::test]
async fn every_setting_is_listed_with_default_and_bounds() {
    let gateway = Gateway::start().await;
    let listed = list(&gateway).await;
    assert_eq!(listed.len(), FIELDS.len());
    for (setting, field) in listed.iter().zip(FIELDS) {
        assert_eq!(setting.key, field.key);
        assert_eq!(setting.value_json, setting.default_json);
        assert!(setting.description.contains(&field.max.to_string()), "{}", setting.description);
        assert_eq!((setting.updated_at, setting.updated_by.as_str()), (None, ""));
    }
}

#[tokio::test]
async fn settings_change_all_or_none() {
    let gateway = Gateway::start().await;
    let epoch = gateway.epoch().await.catalog;
    let mixed =
        [("tools.maxNameChars", "48"), ("tools.maxPerServer", "0"), ("no.such", "1"), ("audit.payloadBytes", "x")];
    let mut named = wrong_fields(update(&gateway, &mixed, &["neither"]).await);
    named.sort();
    let expected = ["reset[0]", "set[\"audit.payloadBytes\"]", "set[\"no.such\"]", "set[\"tools.maxPerServer\"]"];
    assert_eq!(named, expected);
    let unchanged = list(&gateway).await;
    assert!(unchanged.iter().all(|setting| setting.updated_at.is_none()));
    assert_eq!(gateway.epoch().await.catalog, epoch);

    let good = [("tools.maxNameChars", "48"), ("tools.maxPerServer", "9")];
    let after = update(&gateway, &good, &[]).await.unwrap().into_inner().settings;
    assert_eq!(after, list(&gateway).await);
    let changed: Vec<_> = after.iter().filter(|setting| setting.updated_at.is_some()).collect();
    assert_eq!(changed.iter().map(|setting| setting.value_json.as_str()).collect::<Vec<_>>(), ["48", "9"]);
    assert!(changed.iter().all(|setting| setting.updated_by == "key-admin"));
    assert_eq!(gateway.epoch().await.catalog, epoch + 1);

    let after = update(&gateway, &[], &["tools.maxNameChars"]).await.unwrap().into_inner().settings;
    let name = after.iter().find(|setting| setting.key == "tools.maxNameChars").unwrap();
    assert_eq!((name.value_json.as_str(), name.updated_at), ("64", None));
    assert_eq!(gateway.epoch().await.catalog, epoch + 2);
    update(&gateway, &good[1..], &[]).await.unwrap();
    assert_eq!(gateway.epoch().await.catalog, epoch + 2, "the same value again changes nothing");
}

#[tokio::test]
async fn a_setting_cannot_be_set_and_reset_at_once() {
    let gateway = Gateway::start().await;
    let answer = update(&gateway, &[("tools.maxNameChars", "48")], &["tools.maxNameChars"]).await;
    assert_eq!(wrong_fields(answer), ["set[\"tools.maxNameChars\"]"]);
}
