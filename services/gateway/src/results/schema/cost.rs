//! Pure: what checking a result against a schema costs at most, counted before it is done.
//!
//! A validator walks pairs of a part of the schema and a part of the result. With references that double (`a` refers twice to `b`, `b`
//! twice to `c`…) or recursion that branches, a small schema makes it walk for years. Each pair is visited once here, and the number
//! of walks that a validator would take through it is computed from the pairs below.

use std::collections::HashMap;

use serde_json::Value;

/// Most parts of a schema.
const MOST_PARTS: usize = 5_000;
/// How deep parts may follow from each other, references included: a validator is compiled by recursion.
const MOST_DEPTH: usize = 150;
/// Most parts that apply to one and the same value, with references followed.
const MOST_IN_PLACE: u64 = 1_000;
/// Most that checking one result may cost. A unit is about 20 ns.
const MOST_COST: u64 = 1_000_000;
/// Most pairs that are visited to count the cost.
const MOST_PAIRS: usize = 200_000;
/// How deep a validator may walk.
const MOST_WALK: u32 = 400;
/// What a byte costs that a pattern is matched with.
const PATTERN_BYTE: u64 = 8;
/// How often parts in place are walked again to know which members nobody looked at.
const UNEVALUATED: u64 = 4;

/// Why a schema is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it refers to `{0}`, which is not within it")]
    Reference(String),
    #[error("it holds a schema with an `$id` of its own")]
    Resource,
    #[error("its references go in a circle")]
    Circle,
    #[error("it is too large or too deep")]
    TooLarge,
}

/// A part of a schema.
#[derive(Debug, Default)]
struct Part {
    /// Parts that apply to the same value.
    in_place: Vec<usize>,
    /// Parts that apply to the member of this name.
    named: HashMap<String, usize>,
    /// Parts that may apply to each member or item.
    every: Vec<usize>,
    /// Size of what the part itself says.
    weight: u64,
    /// How many patterns a string or a member's name is matched with.
    patterns: u64,
    /// Parts that apply to the names of members.
    names: Vec<usize>,
    /// Whether it compares items with each other.
    unique: bool,
    /// Whether it depends on what other parts looked at.
    unevaluated: bool,
}

/// A schema as the costs of its parts; the first is its root.
#[derive(Debug)]
pub(super) struct Costs {
    parts: Vec<Part>,
    /// What each part costs with a value of one byte that holds no others.
    flat: Vec<u64>,
}

/// What the parts come to that apply to one and the same value.
#[derive(Debug, Clone, Copy)]
enum Flat {
    Unknown,
    /// It is being counted.
    Open,
    /// How many there are, how long the longest chain is, what they cost.
    Known {
        count: u64,
        longest: usize,
        cost: u64,
    },
}

impl Costs {
    pub(super) fn new(schema: &Value) -> Result<Self, Unusable> {
        let id = schema.get("$id").and_then(Value::as_str).unwrap_or_default();
        let mut build = Build {
            root: schema,
            id: id.split('#').next().unwrap_or_default(),
            anchors: HashMap::new(),
            places: HashMap::new(),
            parts: Vec::new(),
        };
        find_anchors(schema, true, &mut build.anchors)?;
        build.part(schema, 0)?;
        let mut costs = Self { parts: build.parts, flat: Vec::new() };
        let mut known = vec![Flat::Unknown; costs.parts.len()];
        for place in 0..costs.parts.len() {
            costs.in_place(place, 0, &mut known)?;
        }
        let flat = |flat: &Flat| if let Flat::Known { cost, .. } = flat { *cost } else { 0 };
        costs.flat = known.iter().map(flat).collect();
        Ok(costs)
    }

    /// What all parts come to that apply where this one does.
    fn in_place(&self, place: usize, depth: usize, known: &mut [Flat]) -> Result<Flat, Unusable> {
        match known[place] {
            Flat::Open => return Err(Unusable::Circle),
            Flat::Known { .. } => return Ok(known[place]),
            Flat::Unknown if depth > MOST_DEPTH => return Err(Unusable::TooLarge),
            Flat::Unknown => known[place] = Flat::Open,
        }
        let part = &self.parts[place];
        let (mut count, mut longest, mut cost) = (1_u64, 0, 1 + part.weight + part.patterns * PATTERN_BYTE);
        for next in &part.in_place {
            if let Flat::Known { count: more, longest: deeper, cost: dearer } =
                self.in_place(*next, depth + 1, known)?
            {
                count = count.saturating_add(more);
                longest = longest.max(deeper + 1);
                cost = cost.saturating_add(dearer);
            }
        }
        if count > MOST_IN_PLACE || longest > MOST_DEPTH {
            return Err(Unusable::TooLarge);
        }
        known[place] = Flat::Known { count, longest, cost };
        Ok(known[place])
    }

    /// The cost of finding all that is wrong with a result; `None` when already checking it would cost too much.
    pub(super) fn of(&self, result: &Value) -> Option<u64> {
        let mut pairs = HashMap::new();
        let (cost, depth) = self.pair(0, result, 0, &mut pairs)?;
        (cost <= MOST_COST).then(|| cost.saturating_mul(u64::from(depth) + 1))
    }

    /// The cost of a part with a value, and how deep the walk through them goes.
    fn pair(
        &self,
        place: usize,
        value: &Value,
        depth: u32,
        pairs: &mut HashMap<(usize, *const Value), (u64, u32)>,
    ) -> Option<(u64, u32)> {
        let key = (place, std::ptr::from_ref(value));
        if let Some(known) = pairs.get(&key) {
            return (depth + known.1 <= MOST_WALK).then_some(*known);
        }
        if depth > MOST_WALK || pairs.len() >= MOST_PAIRS {
            return None;
        }
        let part = &self.parts[place];
        let mut cost = part.own(value);
        let mut below = 0;
        let mut add = |(more, deeper): (u64, u32), times: u64| {
            cost = cost.saturating_add(more.saturating_mul(times));
            below = below.max(deeper + 1);
            cost <= MOST_COST
        };
        for next in &part.in_place {
            let times = if part.unevaluated { UNEVALUATED } else { 1 };
            add(self.pair(*next, value, depth + 1, pairs)?, times).then_some(())?;
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            for names in &part.names {
                add((self.flat[*names].saturating_mul(name.len() as u64 + 1), 0), 1).then_some(())?;
            }
            for next in part.named.get(name).into_iter().chain(&part.every) {
                add(self.pair(*next, member, depth + 1, pairs)?, 1).then_some(())?;
            }
        }
        for item in value.as_array().map(Vec::as_slice).unwrap_or_default() {
            for next in &part.every {
                add(self.pair(*next, item, depth + 1, pairs)?, 1).then_some(())?;
            }
        }
        pairs.insert(key, (cost, below));
        Some((cost, below))
    }
}

impl Part {
    /// What the part itself costs with a value.
    fn own(&self, value: &Value) -> u64 {
        let bytes = |text: &str| text.len() as u64;
        1 + self.weight
            + match value {
                Value::String(text) => bytes(text) / 64 + bytes(text) * self.patterns * PATTERN_BYTE,
                Value::Object(members) if self.patterns > 0 => {
                    members.keys().map(|name| (bytes(name) + 1) * self.patterns * PATTERN_BYTE).sum()
                }
                Value::Array(_) if self.unique => 4 * size(value),
                _ => 0,
            }
    }
}

/// How many values a value is made of.
fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / 64,
        _ => 1,
    }
}

/// Names that references use (`$anchor`, and `$id` in draft-07). A schema with an `$id` of its own within another is another document.
fn find_anchors<'a>(schema: &'a Value, root: bool, anchors: &mut HashMap<&'a str, &'a Value>) -> Result<(), Unusable> {
    match schema {
        Value::Array(items) => items.iter().try_for_each(|item| find_anchors(item, false, anchors)),
        Value::Object(members) => {
            let text = |name: &str| members.get(name).and_then(Value::as_str);
            let id = text("$id").unwrap_or("#");
            let own = id.strip_prefix('#');
            if own.is_none() && !root {
                return Err(Unusable::Resource);
            }
            for name in [text("$anchor"), text("$dynamicAnchor"), own].into_iter().flatten() {
                if !name.is_empty() {
                    anchors.insert(name, schema);
                }
            }
            // What these hold is data.
            let others =
                members.iter().filter(|(key, _)| !matches!(key.as_str(), "const" | "enum" | "default" | "examples"));
            others.into_iter().try_for_each(|(_, value)| find_anchors(value, false, anchors))
        }
        _ => Ok(()),
    }
}

struct Build<'a> {
    root: &'a Value,
    /// The root's own address.
    id: &'a str,
    anchors: HashMap<&'a str, &'a Value>,
    places: HashMap<*const Value, usize>,
    parts: Vec<Part>,
}

impl<'a> Build<'a> {
    /// The place of a part, with all that it leads to.
    fn part(&mut self, schema: &'a Value, depth: usize) -> Result<usize, Unusable> {
        if let Some(place) = self.places.get(&std::ptr::from_ref(schema)) {
            return Ok(*place);
        }
        if self.parts.len() >= MOST_PARTS || depth > MOST_DEPTH {
            return Err(Unusable::TooLarge);
        }
        let place = self.parts.len();
        self.places.insert(std::ptr::from_ref(schema), place);
        self.parts.push(Part::default());
        let mut part = Part { weight: 1, ..Part::default() };
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            self.keyword(&mut part, keyword, value, depth + 1)?;
        }
        self.parts[place] = part;
        Ok(place)
    }

    fn keyword(&mut self, part: &mut Part, keyword: &str, value: &'a Value, depth: usize) -> Result<(), Unusable> {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let target = value.as_str().unwrap_or_default();
                let target = self
                    .resolve(target)
                    .ok_or_else(|| Unusable::Reference(gatehouse_types::shown::line(target, 100)))?;
                part.in_place.push(self.part(target, depth)?);
            }
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => {
                self.each(&mut part.in_place, value, depth, matches!(keyword, "dependentSchemas" | "dependencies"))?;
            }
            "properties" => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    part.named.insert(name.clone(), self.part(schema, depth)?);
                }
            }
            "patternProperties" => {
                part.patterns += value.as_object().map_or(0, |patterns| patterns.len() as u64);
                self.each(&mut part.every, value, depth, true)?;
            }
            "items"
            | "prefixItems"
            | "additionalItems"
            | "contains"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties" => {
                part.unevaluated |= keyword.starts_with("unevaluated");
                self.each(&mut part.every, value, depth, false)?;
            }
            "propertyNames" => part.names.push(self.part(value, depth)?),
            "$defs" | "definitions" => {}
            "pattern" => part.patterns += 1,
            "uniqueItems" => part.unique = true,
            _ => part.weight += size(value),
        }
        Ok(())
    }

    /// The schemas in a list, in the members of an object when `map` says so, or the one that the value itself is.
    fn each(&mut self, into: &mut Vec<usize>, value: &'a Value, depth: usize, map: bool) -> Result<(), Unusable> {
        match value {
            Value::Array(items) => {
                for item in items {
                    into.push(self.part(item, depth)?);
                }
            }
            Value::Object(members) if map => {
                // A list among `dependencies` is one of names.
                for member in members.values().filter(|member| !member.is_array()) {
                    into.push(self.part(member, depth)?);
                }
            }
            _ => into.push(self.part(value, depth)?),
        }
        Ok(())
    }

    /// What a reference within the schema refers to.
    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if !document.is_empty() && document != self.id {
            return None;
        }
        match super::within(self.root, fragment) {
            None => self.anchors.get(super::decoded(fragment)?.as_str()).copied(),
            found => found,
        }
    }
}
