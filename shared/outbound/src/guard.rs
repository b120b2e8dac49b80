//! Pure
//!
//! Which addresses may be called. Everything that is not public is refused unless the operator's list opens it; addresses of
//! cloud metadata services are refused always, because one answer of theirs gives the machine's identity away.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Decides about addresses. Cheap to ask; made once from the operator's list.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    networks: Vec<IpNet>,
    /// Lower case, without a trailing dot.
    hosts: Vec<HostRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostRule {
    Exactly(String),
    /// Any name below this one; kept with its leading dot.
    Below(String),
}

/// Why an address is not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A metadata service of a cloud. No list opens it.
    Metadata,
    /// The machine itself.
    Loopback,
    /// RFC 1918, a unique local or a site-local address.
    Private,
    /// 100.64.0.0/10, between a provider and its customers.
    CarrierGrade,
    /// 169.254.0.0/16 or `fe80::/10`.
    LinkLocal,
    /// `0.0.0.0/8` or `::`.
    Unspecified,
    /// More than one receiver.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
    /// Meant for examples or for measurements.
    Documentation,
    /// Not assigned to anything that can be called.
    Reserved,
}

impl Reason {
    /// The reason in words that fit after "it is".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Metadata => "a cloud metadata address, which is never called",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::CarrierGrade => "a carrier-grade NAT address",
            Self::LinkLocal => "a link-local address",
            Self::Unspecified => "an unspecified address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Documentation => "a documentation or benchmark address",
            Self::Reserved => "a reserved address",
        }
    }

    /// Whether the operator's list can open such an address.
    pub const fn can_be_opened(self) -> bool {
        !matches!(self, Self::Metadata)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// A host or an address that is not called, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// The host as the URL names it.
    pub host: String,
    /// What the host resolved to; absent when the name alone is refused.
    pub address: Option<IpAddr>,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "the host {} is at {address}: it is {}", self.host, self.reason)?,
            None => write!(f, "the host {}: it is {}", self.host, self.reason)?,
        }
        if self.reason.can_be_opened() {
            f.write_str(" that the operator has not opened")?;
        }
        Ok(())
    }
}

/// An entry of the operator's list that is neither a network, an address nor a host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is neither a network (10.0.0.0/8), an address nor a host name (name or *.name)")]
pub struct BadEntry {
    /// The entry as it was given.
    pub entry: String,
}

impl Guard {
    /// A guard that opens the entries of the operator's list: networks (`10.0.0.0/8`), single addresses, host names, and
    /// `*.name` for every host below a name. Empty entries are skipped.
    pub fn new<'a>(allowed: impl IntoIterator<Item = &'a str>) -> Result<Self, BadEntry> {
        let mut guard = Self::default();
        for entry in allowed.into_iter().map(str::trim).filter(|entry| !entry.is_empty()) {
            if let Ok(network) = entry.parse::<IpNet>() {
                guard.networks.push(network.trunc());
            } else if let Ok(address) = entry.parse::<IpAddr>() {
                guard.networks.push(IpNet::from(address));
            } else {
                guard.hosts.push(host_rule(entry).ok_or_else(|| BadEntry { entry: entry.to_owned() })?);
            }
        }
        Ok(guard)
    }

    /// Decides about a host before it is resolved: a literal address is judged as that address, a name that stands for a
    /// metadata service is refused. A name that passes is judged again by each address it resolves to.
    pub fn check_host(&self, host: &str) -> Result<(), Refused> {
        match literal(host) {
            Some(address) => self.check(host, address),
            None if is_metadata_name(host) => {
                Err(Refused { host: host.to_owned(), address: None, reason: Reason::Metadata })
            }
            None => Ok(()),
        }
    }

    /// Decides about one address that `host` resolved to (or is).
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let Some(reason) = reason_against(address) else { return Ok(()) };
        if reason.can_be_opened() && (self.opens_address(address) || self.opens_host(host)) {
            return Ok(());
        }
        Err(Refused { host: host.to_owned(), address: Some(address), reason })
    }

    fn opens_address(&self, address: IpAddr) -> bool {
        // An IPv4-mapped address is the IPv4 address: the packets go there.
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }

    fn opens_host(&self, host: &str) -> bool {
        if self.hosts.is_empty() {
            return false;
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.hosts.iter().any(|rule| match rule {
            HostRule::Exactly(name) => *name == host,
            HostRule::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
        })
    }
}

/// The address that a URL's host spells out, with or without brackets.
pub fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

fn host_rule(entry: &str) -> Option<HostRule> {
    let (below, name) = match entry.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, entry),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // A name whose last label is a number would be read as an address.
    let numeric_end = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    if name.len() > 253 || numeric_end || !name.split('.').all(label) {
        return None;
    }
    Some(if below { HostRule::Below(format!(".{name}")) } else { HostRule::Exactly(name) })
}

const METADATA_NAMES: [&str; 6] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
];

fn is_metadata_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    METADATA_NAMES.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// What speaks against an address; `None` for a public one.
pub fn reason_against(address: IpAddr) -> Option<Reason> {
    match address {
        IpAddr::V4(address) => against_v4(address),
        IpAddr::V6(address) => against_v6(address),
    }
}

const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    // Containers and pods of AWS.
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    // Alibaba, Oracle, Azure.
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

const NETWORKS_V4: [(Ipv4Net, Reason); 11] = [
    (v4([0, 0, 0, 0], 8), Reason::Unspecified),
    (v4([10, 0, 0, 0], 8), Reason::Private),
    (v4([172, 16, 0, 0], 12), Reason::Private),
    (v4([192, 168, 0, 0], 16), Reason::Private),
    (v4([100, 64, 0, 0], 10), Reason::CarrierGrade),
    (v4([127, 0, 0, 0], 8), Reason::Loopback),
    (v4([169, 254, 0, 0], 16), Reason::LinkLocal),
    (v4([192, 0, 0, 0], 24), Reason::Reserved),
    (v4([192, 88, 99, 0], 24), Reason::Reserved),
    (v4([198, 18, 0, 0], 15), Reason::Documentation),
    (v4([240, 0, 0, 0], 4), Reason::Reserved),
];

const NETWORKS_V6: [(Ipv6Net, Reason); 8] = [
    (v6([0xfc00, 0], 7), Reason::Private),
    (v6([0xfec0, 0], 10), Reason::Private),
    (v6([0xfe80, 0], 10), Reason::LinkLocal),
    (v6([0xff00, 0], 8), Reason::Multicast),
    (v6([0x2001, 0xdb8], 32), Reason::Documentation),
    (v6([0x3fff, 0], 20), Reason::Documentation),
    // Benchmarks (2001:2::/48) and ORCHIDs lie in 2001::/23, which is not for hosts; Teredo,
    // also in there, is judged by its embedded address before this table is read.
    (v6([0x2001, 0], 23), Reason::Reserved),
    (v6([0x64, 0xff9b], 32), Reason::Reserved),
];

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]), prefix)
}

const fn v6(start: [u16; 2], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(start[0], start[1], 0, 0, 0, 0, 0, 0), prefix)
}

fn against_v4(address: Ipv4Addr) -> Option<Reason> {
    if METADATA_V4.contains(&address) {
        return Some(Reason::Metadata);
    }
    if address.is_broadcast() {
        return Some(Reason::Broadcast);
    }
    if address.is_multicast() {
        return Some(Reason::Multicast);
    }
    if address.is_documentation() {
        return Some(Reason::Documentation);
    }
    NETWORKS_V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, reason)| *reason)
}

fn against_v6(address: Ipv6Addr) -> Option<Reason> {
    if METADATA_V6.contains(&address) {
        return Some(Reason::Metadata);
    }
    if address.is_unspecified() {
        return Some(Reason::Unspecified);
    }
    if address.is_loopback() {
        return Some(Reason::Loopback);
    }
    let embedded = embedded_v4(address);
    if let Some(reason) = embedded.iter().flatten().find_map(|inner| against_v4(*inner)) {
        return Some(reason);
    }
    if embedded.iter().any(Option::is_some) {
        return None;
    }
    if let Some((_, reason)) = NETWORKS_V6.iter().find(|(network, _)| network.contains(&address)) {
        return Some(*reason);
    }
    // Only 2000::/3 is given out to hosts.
    (address.segments()[0] >> 13 != 1).then_some(Reason::Reserved)
}

/// The IPv4 addresses that an IPv6 address carries: each of them may be where the packets end up.
fn embedded_v4(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let segments = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let last = join(segments[6], segments[7]);
    match segments {
        // ::ffff:a.b.c.d (mapped), ::a.b.c.d (compatible), ::ffff:0:a.b.c.d (translated), 64:ff9b::a.b.c.d (NAT64)
        [0, 0, 0, 0, 0, 0xffff | 0, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            [Some(last), None]
        }
        // Teredo: the server, and the client with its bits turned over.
        [0x2001, 0, high, low, ..] => [Some(join(high, low)), Some(join(!segments[6], !segments[7]))],
        // 6to4
        [0x2002, high, low, ..] => [Some(join(high, low)), None],
        // ISATAP
        [_, _, _, _, 0 | 0x200, 0x5efe, _, _] => [Some(last), None],
        _ => [None, None],
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
