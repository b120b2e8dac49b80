//! Fixed headers from options, variables and files.

use std::{collections::HashMap, path::Path};

use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};

use super::failure::Failure;

/// Options that give headers.
#[derive(Debug, Default, Args)]
pub(crate) struct Headers {
    /// Fixed header; other users of this machine can see a value given here: prefer the next two for secrets
    #[arg(long = "header", value_name = "NAME: VALUE")]
    plain: Vec<SecretString>,
    /// Fixed header whose value is in an environment variable
    #[arg(long = "header-env", value_name = "NAME=VARIABLE")]
    variables: Vec<String>,
    /// Fixed header whose value is in a file; a line feed at its end is not part of it
    #[arg(long = "header-file", value_name = "NAME=FILE")]
    files: Vec<String>,
}

impl Headers {
    /// The headers, read from where they are. A failure never shows a value.
    pub(crate) fn read(&self) -> Result<HashMap<String, String>, Failure> {
        let mut headers = HashMap::new();
        for text in &self.plain {
            let (name, value) = split(text.expose_secret(), ':', "--header takes `NAME: VALUE`")?;
            add(&mut headers, name, value.trim())?;
        }
        for text in &self.variables {
            let (name, variable) = split(text, '=', "--header-env takes `NAME=VARIABLE`")?;
            let value = std::env::var(variable)
                .map_err(|_| Failure::usage(&format!("the variable {variable} of header `{name}` is not set")))?;
            add(&mut headers, name, value.trim())?;
        }
        for text in &self.files {
            let (name, file) = split(text, '=', "--header-file takes `NAME=FILE`")?;
            let file = Path::new(file);
            let value = std::fs::read_to_string(file).map_err(|error| Failure::file("read", file, &error))?;
            add(&mut headers, name, value.trim())?;
        }
        Ok(headers)
    }
}

fn split<'a>(text: &'a str, at: char, help: &str) -> Result<(&'a str, &'a str), Failure> {
    let parts = text.split_once(at).map(|(name, value)| (name.trim(), value.trim()));
    parts.filter(|(name, value)| !name.is_empty() && !value.is_empty()).ok_or_else(|| Failure::usage(help))
}

fn add(headers: &mut HashMap<String, String>, name: &str, value: &str) -> Result<(), Failure> {
    if headers.keys().any(|other| other.eq_ignore_ascii_case(name)) {
        return Err(Failure::usage(&format!("header `{name}` is given twice")));
    }
    headers.insert(name.to_owned(), value.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(headers: &[&str]) -> Headers {
        Headers { plain: headers.iter().map(|header| SecretString::from(*header)).collect(), ..Headers::default() }
    }

    #[test]
    fn a_header_is_a_name_and_a_value_and_is_given_once() {
        let headers = plain(&["Authorization: Bearer a:b"]).read().unwrap();
        assert_eq!(headers["Authorization"], "Bearer a:b");
        assert!(plain(&["X: hidden", "x: hidden"]).read().unwrap_err().message.contains("`x` is given twice"));
        for wrong in ["hidden", ": hidden", "hidden:"] {
            assert!(!plain(&[wrong]).read().unwrap_err().text(false).contains("hidden"));
        }
    }
}
