//! Pure: variables in configuration files.

use super::Environment;

/// Why a value could not be completed. Names variables, never values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missing {
    /// An environment variable that is not set and has no default.
    Variable(String),
    /// A value that the editor would ask the user for.
    Input(String),
}

impl Missing {
    pub(super) fn words(&self) -> String {
        match self {
            Self::Variable(name) => {
                format!("needs the environment variable {name}, which is not set; set it and import again")
            }
            Self::Input(name) => {
                format!("needs the input `{name}`, which the editor asks for; use `server add`")
            }
        }
    }
}

/// Replaces `${VAR}`, `${VAR:-default}` (Claude Code), `${env:VAR}` (VS Code, Cursor) and says what is missing.
///
/// Text that only looks similar (`$VAR`, `${`, `${not a name}`) stays as it is.
pub(super) fn expand(text: &str, environment: Environment<'_>) -> Result<String, Missing> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inner, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        if let Some(value) = value(inner, environment)? {
            out.push_str(&value);
        } else {
            out.push_str("${");
            out.push_str(inner);
            out.push('}');
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn value(inner: &str, environment: Environment<'_>) -> Result<Option<String>, Missing> {
    if let Some(input) = inner.strip_prefix("input:") {
        return Err(Missing::Input(input.to_owned()));
    }
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !is_name {
        return Ok(None);
    }
    let found = environment(name).or_else(|| default.map(str::to_owned));
    found.map(Some).ok_or_else(|| Missing::Variable(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, Missing> {
        expand(text, &|name| (name == "TOKEN").then(|| "t0p".to_owned()))
    }

    #[test]
    fn variables_and_defaults_are_filled_in_and_what_only_looks_similar_stays() {
        assert_eq!(expanded("Bearer ${TOKEN}").unwrap(), "Bearer t0p");
        assert_eq!(expanded("${env:TOKEN}${NO:-x y}${NO:-}").unwrap(), "t0px y");
        assert_eq!(expanded("$TOKEN ${ ${a b} ${").unwrap(), "$TOKEN ${ ${a b} ${");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        assert_eq!(expanded("${NO}"), Err(Missing::Variable("NO".to_owned())));
        assert_eq!(expanded("${input:key}"), Err(Missing::Input("key".to_owned())));
    }
}
