//! What is started, and what is not, in words.

use gatehouse_stdio::{Config, Opened, Sandboxes, Spec, StartError, Tier};

use crate::world::World;

#[tokio::test]
async fn this_machine_has_both_sandboxes() {
    let world = World::new(Tier::Strong);
    let tiers = world.sandboxes.tiers().await;
    assert_eq!(tiers.strong, Ok(()), "{tiers}");
    assert!(tiers.weak.as_ref().is_ok_and(|version| *version >= 6), "{tiers}");
}

#[tokio::test]
async fn without_bubblewrap_nothing_starts_unless_the_weaker_one_is_allowed_or_the_server_is_trusted() {
    let world = World::new(Tier::Strong);
    let mut config = Config::new(world.root.join("stdio"));
    config.helper = vec![world.root.join("programs/gatehouse-stdio-helper")];
    config.bubblewrap = "no-such-bwrap".into();
    let error = Sandboxes::new(config.clone()).start(world.spec(&["echo"])).await.expect_err("it does not start");
    let words = error.to_string();
    assert!(matches!(error, StartError::NoSandbox(_)), "{words}");
    assert!(
        words.contains("install the package `bubblewrap`") && words.contains("not allowed by the operator"),
        "{words}"
    );
    config.allowed = gatehouse_stdio::Allowed::WeakToo;
    let sandboxes = Sandboxes::new(config.clone());
    let weak = sandboxes.start(world.spec(&["echo"])).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(weak.tier(), Tier::Weak);
    config.allowed = gatehouse_stdio::Allowed::Strong;
    let trusted = Spec { trusted: true, ..world.spec(&["echo"]) };
    let trusted = Sandboxes::new(config).start(trusted).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(trusted.tier(), Tier::Trusted);
    for process in [weak, trusted] {
        process.stop(std::time::Duration::from_secs(10)).await;
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_in_words() {
    for tier in [Tier::Strong, Tier::Weak, Tier::Trusted] {
        let world = World::new(tier);
        let spec = Spec { program: "no-such-program".into(), ..world.spec(&[]) };
        let error = world.start_spec(spec).await.expect_err("it does not start").to_string();
        assert!(error.contains("the program no-such-program was not found"), "{tier:?}: {error}");
    }
}

#[tokio::test]
async fn what_cannot_be_opened_is_refused_before_anything_starts() {
    let world = World::new(Tier::Strong);
    std::fs::create_dir(world.root.join("closed")).expect("a folder");
    std::os::unix::fs::symlink(world.root.join("outside"), world.root.join("link")).expect("a link");
    let cases = [
        ("/", "cannot be opened as a whole"),
        ("/proc", "cannot be opened as a whole"),
        ("relative", "must be absolute"),
        ("/usr/../etc/shadow", "must be absolute, without"),
        (&world.path("missing"), "make it, or close it"),
        (&world.path("link"), "is or passes a link"),
        (&world.path("link/secret"), "is or passes a link"),
        (&world.path("closed"), "Gatehouse's own files are there"),
        (&world.path("stdio/homes/other"), "make it, or close it"),
        (&world.path(""), "must be absolute"),
    ];
    for (path, words) in cases {
        let mut spec = world.spec(&["echo"]);
        spec.open.push(Opened { path: path.into(), write: false });
        let error = world.start_spec(spec).await.err();
        let error = error.unwrap_or_else(|| panic!("{path} was opened")).to_string();
        assert!(error.contains(words) || path.ends_with('/'), "{path}: {error}");
    }
    for name in ["", "a/b", "..", ".gatehouse"] {
        let error =
            world.start_spec(Spec { name: name.into(), ..world.spec(&["echo"]) }).await.expect_err("it does not start");
        assert!(error.to_string().contains("cannot be the name of a home"), "{error}");
    }
}

#[tokio::test]
async fn as_root_each_home_has_a_user_of_its_own_and_keeps_it() {
    use std::os::unix::fs::MetadataExt as _;
    let world = World::new(Tier::Strong);
    let uid = |name: &str| std::fs::metadata(world.root.join("stdio/homes").join(name)).expect("a home").uid();
    let mut seen = Vec::new();
    for name in ["a", "b", "a"] {
        let spec = Spec { name: name.into(), ..world.spec(&["status"]) };
        let said = world.attempt_spec(spec).await;
        assert!(said.contains(&format!("Uid:\t{0}\t{0}\t{0}\t{0}", uid(name))), "{said}");
        seen.push(uid(name));
    }
    let root = std::fs::metadata(&world.root).expect("the folder").uid() == 0;
    assert_eq!((seen[0] != seen[1], seen[0] == seen[2]), (root, true), "{seen:?}");
}
