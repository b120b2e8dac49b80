use super::*;

fn reason(address: &str) -> Option<Reason> {
    reason_against(address.parse().unwrap())
}

#[test]
fn public_addresses_pass() {
    for address in
        ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
    {
        assert_eq!(reason(address), None, "{address}");
    }
}

#[test]
fn what_is_not_public_is_refused_with_its_reason() {
    let table = [
        ("127.0.0.1", Reason::Loopback),
        ("127.255.255.254", Reason::Loopback),
        ("::1", Reason::Loopback),
        ("10.0.0.1", Reason::Private),
        ("172.16.0.1", Reason::Private),
        ("172.31.255.255", Reason::Private),
        ("192.168.1.1", Reason::Private),
        ("fc00::1", Reason::Private),
        ("fd12:3456::1", Reason::Private),
        ("fec0::1", Reason::Private),
        ("100.64.0.1", Reason::CarrierGrade),
        ("100.127.255.255", Reason::CarrierGrade),
        ("169.254.1.1", Reason::LinkLocal),
        ("fe80::1", Reason::LinkLocal),
        ("0.0.0.0", Reason::Unspecified),
        ("0.1.2.3", Reason::Unspecified),
        ("::", Reason::Unspecified),
        ("224.0.0.1", Reason::Multicast),
        ("ff02::1", Reason::Multicast),
        ("255.255.255.255", Reason::Broadcast),
        ("192.0.2.1", Reason::Documentation),
        ("198.51.100.7", Reason::Documentation),
        ("203.0.113.9", Reason::Documentation),
        ("198.18.0.1", Reason::Documentation),
        ("2001:db8::1", Reason::Documentation),
        ("3fff::1", Reason::Documentation),
        ("192.0.0.8", Reason::Reserved),
        ("240.0.0.1", Reason::Reserved),
        ("2001:2::1", Reason::Reserved),
        ("100::1", Reason::Reserved),
        ("4000::1", Reason::Reserved),
        ("64:ff9b:1::1", Reason::Reserved),
    ];
    for (address, expected) in table {
        assert_eq!(reason(address), Some(expected), "{address}");
    }
}

#[test]
fn an_ipv4_address_inside_an_ipv6_address_is_judged_too() {
    for address in [
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "2002:7f00:1::",
        // Teredo: client 127.0.0.1 with its bits turned over, then server 127.0.0.1.
        "2001:0:808:808:0:0:80ff:fffe",
        "2001:0:7f00:1:0:0:f7f7:f7f7",
        "2606:4700::5efe:7f00:1",
    ] {
        assert_eq!(reason(address), Some(Reason::Loopback), "{address}");
    }
}

#[test]
fn metadata_addresses_are_never_called_whatever_the_list_opens() {
    let guard = Guard::new(["0.0.0.0/0", "::/0", "metadata.google.internal", "*.internal", "rebound.example"]).unwrap();
    for address in [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "::ffff:0:a9fe:a9fe",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
    ] {
        let refused = guard.check("rebound.example", address.parse().unwrap()).unwrap_err();
        assert_eq!(refused.reason, Reason::Metadata, "{address}");
        assert!(guard.check_host(address).is_err(), "{address}");
    }
    for name in ["metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data"] {
        assert_eq!(guard.check_host(name).unwrap_err().reason, Reason::Metadata, "{name}");
    }
}

#[test]
fn the_list_opens_networks_addresses_and_hosts_and_nothing_else() {
    let guard = Guard::new(["127.0.0.0/8", " 10.1.2.3", "", "mcp.svc.local", "*.tools.local"]).unwrap();
    let passes = |host: &str, address: &str| guard.check(host, address.parse().unwrap()).is_ok();
    assert!(passes("a", "127.0.0.1"));
    assert!(passes("a", "::ffff:127.0.0.1"));
    assert!(!passes("a", "64:ff9b::127.0.0.1"), "a translator is another way than the one that was opened");
    assert!(passes("a", "10.1.2.3"));
    assert!(!passes("a", "10.1.2.4"));
    assert!(passes("mcp.svc.local", "10.9.9.9"));
    assert!(passes("MCP.svc.local.", "10.9.9.9"));
    assert!(!passes("xmcp.svc.local", "10.9.9.9"));
    assert!(passes("a.tools.local", "fd00::1"));
    assert!(!passes("tools.local", "fd00::1"));
    assert!(!passes("a", "::1"));
}

#[test]
fn an_entry_that_could_be_an_address_in_disguise_is_no_host_name() {
    for entry in ["10.0.0.0/33", "10.0.0", "2130706433", "a b", "*", "*.", "-/-", "http://a"] {
        assert_eq!(Guard::new([entry]).unwrap_err().entry, entry);
    }
}

#[test]
fn a_refusal_says_what_was_refused_and_why() {
    let refused = Guard::default().check("mcp.example", "10.0.0.1".parse().unwrap()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the host mcp.example is at 10.0.0.1: it is a private address that the operator has not opened"
    );
}
