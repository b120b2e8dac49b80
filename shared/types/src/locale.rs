//! In which language a session's models and people are spoken to.

/// A language that Gatehouse has words in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Locale {
    /// English, and every language that there are no words in.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl Locale {
    /// The language for a BCP 47 tag (RFC 5646): its primary subtag decides.
    pub fn of(tag: &str) -> Self {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        if primary.eq_ignore_ascii_case("zh") { Self::Zh } else { Self::En }
    }

    /// The text in this language.
    pub const fn pick<T: Copy>(self, en: T, zh: T) -> T {
        match self {
            Self::En => en,
            Self::Zh => zh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_subtag_decides() {
        for (tag, locale) in [
            ("zh", Locale::Zh),
            ("zh-CN", Locale::Zh),
            ("ZH-Hant-TW", Locale::Zh),
            ("en", Locale::En),
            ("zha", Locale::En),
            ("de-CH", Locale::En),
            ("", Locale::En),
        ] {
            assert_eq!(Locale::of(tag), locale, "{tag}");
        }
    }
}
