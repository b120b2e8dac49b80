//! What becomes a file, and what the model is told of it.

use super::*;

fn one(block: &Value, cx: &Context<'_>) -> (Plan, Vec<Saved>) {
    let plan = planned(&json!({"content": [block]}), cx);
    let saved = saved(&plan);
    (plan, saved)
}

fn said(block: &Value, locale: Locale) -> String {
    let (plan, saved) = one(block, &Context { locale, limits: Limits { media_bytes: 2, ..LIMITS }, ..CONTEXT });
    texts(&joined(&plan.finish(&saved))).concat()
}

#[test]
fn an_embedded_resource_is_always_a_file() {
    for (resource, media_type, content) in [
        (json!({"uri": "file:///a/b.md", "mimeType": "text/markdown", "text": "# é"}), "text/markdown", "# é"),
        (json!({"uri": "file:///a/b.md", "text": ""}), "text/plain", ""),
        (json!({"uri": "file:///a/b.md", "mimeType": "image/png", "blob": "aGk="}), "image/png", "hi"),
        (json!({"uri": "file:///a/b.md", "blob": "aG\nk"}), "application/octet-stream", "hi"),
    ] {
        let (plan, _) = one(&json!({"type": "resource", "resource": resource}), &CONTEXT);
        let save = FileToSave {
            place: 0,
            kind: Kind::Resource,
            uri: "file:///a/b.md".to_owned(),
            media_type: media_type.to_owned(),
            content: Bytes::from(content),
        };
        assert_eq!(plan.saves, [save], "{resource}");
    }
    let (nameless, _) = one(&json!({"type": "resource", "resource": {"text": "x"}}), &CONTEXT);
    assert_eq!(nameless.saves[0].uri, "");
}

#[test]
fn a_resources_text_is_shared_with_what_the_server_sent() {
    let text = "x".repeat(10_000);
    let body =
        Bytes::from(json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": text}}]}).to_string());
    let plan = plan(&body, &CONTEXT).unwrap();
    assert!(body.as_ptr_range().contains(&plan.saves[0].content.as_ptr()));
}

#[test]
fn an_image_or_audio_is_a_file_when_it_is_larger_than_allowed() {
    let small = Context { limits: Limits { media_bytes: 2, ..LIMITS }, ..CONTEXT };
    for (kind, named) in [("image", Kind::Image), ("audio", Kind::Audio)] {
        let block = json!({"type": kind, "data": "aGk=", "mimeType": "a/b"});
        let (plan, _) = one(&block, &small);
        assert!(plan.saves.is_empty());
        assert_eq!(joined(&plan.finish(&[]))["content"][0], block);
        let (plan, _) = one(&json!({"type": kind, "data": "aGkh", "mimeType": "a/b"}), &small);
        let (media_type, content) = ("a/b".to_owned(), Bytes::from("hi!"));
        let save = FileToSave { place: 0, kind: named, uri: String::new(), media_type, content };
        assert_eq!(plan.saves, [save]);
    }
}

#[test]
fn an_engine_that_does_not_know_audio_gets_it_as_a_file() {
    let audio = json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"});
    for (revision, files) in [("2024-11-05", 1), ("2025-03-26", 0), ("2025-11-25", 0)] {
        let (plan, _) = one(&audio, &Context { known: Known::at(revision), ..CONTEXT });
        assert_eq!(plan.saves.len(), files, "{revision}");
    }
}

#[test]
fn base64_that_only_some_can_read_is_put_right() {
    for data in ["aGk", "aG\r\nk=", "data:image/png;base64,aGk=", "aGl="] {
        let image = json!({"type": "image", "data": data, "mimeType": "image/png", "annotations": {"priority": 1}});
        let right = json!({"type": "image", "data": "aGk=", "mimeType": "image/png", "annotations": {"priority": 1}});
        assert_eq!(processed(&json!({"content": [image]}))["content"], json!([right]), "{data}");
    }
    let escaped = r#"{"content":[{"type":"image","data":"\/\/\/\/","mimeType":"image\/png"}]}"#;
    let plan = plan(&Bytes::from(escaped), &CONTEXT).unwrap();
    assert_eq!(String::from_utf8(plan.finish(&[]).pieces.concat()).unwrap(), escaped);
}

#[test]
fn broken_base64_is_told_to_the_model_and_to_the_audit() {
    let resource = json!({"type": "resource", "resource": {"uri": "a:b", "blob": "!"}});
    for (block, words, note) in [
        (json!({"type": "image", "data": "A", "mimeType": "image/png"}), "An image (image/png)", "an image"),
        (json!({"type": "image", "data": "", "mimeType": "image/png"}), "An image (image/png)", "an image"),
        (json!({"type": "audio", "data": "é", "mimeType": "audio/wav"}), "Audio (audio/wav)", "audio"),
        (resource, "Resource a:b (application/octet-stream)", "a resource"),
    ] {
        let plan = planned(&json!({"content": [block]}), &CONTEXT);
        assert!(plan.saves.is_empty() && plan.notes.len() == 1 && plan.notes[0].starts_with(note), "{:?}", plan.notes);
        let result = joined(&plan.finish(&[]));
        assert!(texts(&result)[0].contains(words) && texts(&result)[0].contains("not valid base64"), "{result}");
    }
    let many = json!({"type": "image", "data": "A", "mimeType": "image/png"});
    assert_eq!(planned(&json!({"content": vec![many; 100]}), &CONTEXT).notes.len(), 20);
}

#[test]
fn a_resource_link_is_told_with_name_uri_type_and_size() {
    for (link, en, zh) in [
        (
            json!({"uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 1_500, "description": "the A"}),
            "Resource link: a file:///a (text/plain, 1.5 KB): the A",
            "资源链接： a file:///a（text/plain，1.5 KB）：the A",
        ),
        (json!({"uri": "a:b", "name": "n", "title": "N"}), "Resource link: N a:b", "资源链接： N a:b"),
        (json!({"uri": "a:b", "size": -1, "name": 5}), "Resource link:  a:b", "资源链接：  a:b"),
        (
            json!({"name": "n", "size": 2}),
            "Resource link: n (the tool gave no address; it cannot be opened) (2 B)",
            "资源链接： n （工具没有给出地址，无法打开）（2 B）",
        ),
    ] {
        let mut block = link;
        block["type"] = json!("resource_link");
        assert_eq!((said(&block, Locale::En).as_str(), said(&block, Locale::Zh).as_str()), (en, zh));
    }
}

#[test]
fn the_model_is_told_of_each_kind_of_file_in_its_language() {
    let image = json!({"type": "image", "data": "aGkh", "mimeType": "image/png"});
    let audio = json!({"type": "audio", "data": "aGkh", "mimeType": "audio/wav"});
    let resource = json!({"type": "resource", "resource": {"uri": "file:///b.md", "text": "hi!"}});
    for (block, en, zh) in [
        (image, "An image that is not shown: image/png, 3 B.", "未显示的图片：image/png，3 B。"),
        (audio, "Audio that is not played: audio/wav, 3 B.", "未播放的音频：audio/wav，3 B。"),
        (resource, "Resource file:///b.md: text/plain, 3 B.", "资源 file:///b.md：text/plain，3 B。"),
    ] {
        assert_eq!(said(&block, Locale::En), format!("[{en} Saved in the workspace as .agent/mcp/call/0]"));
        assert_eq!(said(&block, Locale::Zh), format!("[{zh}已保存到工作区：.agent/mcp/call/0]"));
    }
}

#[test]
fn the_model_is_told_when_a_file_is_elsewhere_or_was_not_saved() {
    let resource = json!({"type": "resource", "resource": {"uri": "a:b", "text": "hi!"}});
    let told = |locale, change: &dyn Fn(&mut Saved)| {
        let (plan, mut saved) = one(&resource, &Context { locale, ..CONTEXT });
        change(&mut saved[0]);
        texts(&joined(&plan.finish(&saved))).concat()
    };
    let elsewhere = |saved: &mut Saved| saved.at = Place::Platform;
    assert!(told(Locale::En, &elsewhere).contains("not in this workspace: it cannot be opened from here"));
    assert!(told(Locale::Zh, &elsewhere).contains("不在此工作区中"));
    for (at, en, zh) in [
        (Place::Workspace, "as .agent/mcp/call/0. The disk is full.", "工作区：.agent/mcp/call/0。The disk"),
        (Place::Platform, "the user can get it. The disk is full.", "用户可以取得。The disk"),
        (Place::Nowhere, "3 B. The disk is full.", "3 B。The disk"),
    ] {
        let failed = |saved: &mut Saved| {
            saved.at = at;
            saved.problem = Some("The disk is full.\u{202e}\n".to_owned());
        };
        let told = [told(Locale::En, &failed), told(Locale::Zh, &failed)];
        assert!(told[0].contains(en) && told[0].ends_with("\u{fffd}\u{fffd}]"), "{told:?}");
        assert!(told[1].contains(zh), "{told:?}");
    }
    let (plan, _) = one(&resource, &CONTEXT);
    assert_eq!(texts(&joined(&plan.finish(&[]))), ["[Resource a:b: text/plain, 3 B. It could not be saved.]"]);
}

#[test]
fn an_error_that_is_only_a_file_says_that_it_is_an_error() {
    let resource = json!({"type": "resource", "resource": {"uri": "a:b", "text": "hi!"}});
    let result = processed(&json!({"content": [resource, {"type": "text", "text": "x"}], "isError": true}));
    assert!(texts(&result)[0].starts_with("Error: [Resource a:b"), "{result}");
    assert_eq!(texts(&result)[1], "x");
    let silent = planned(&json!({"content": [], "isError": true}), &Context { locale: Locale::Zh, ..CONTEXT });
    assert_eq!(texts(&joined(&silent.finish(&[]))), ["错误：工具执行失败，且没有给出任何说明。"]);
}

#[test]
fn half_characters_cost_nothing_but_themselves() {
    let body = r#"{"content":[{"type":"text","text":"a\ud83d","\ude00":1},{"type":"resource","resource":{"uri":"a:\ud83d","text":"b\ud83d"}}],"isError":true,"structuredContent":{"\ud83d":"\ude00"}}"#;
    let plan = plan(&Bytes::from(body), &CONTEXT).unwrap();
    assert_eq!(plan.saves[0].content, "b\u{fffd}");
    let result = joined(&plan.finish(&[]));
    assert_eq!(texts(&result)[0], "Error: a\u{fffd}");
    assert_eq!(texts(&result)[2], r#"{"\ufffd":"\ufffd"}"#);
}
