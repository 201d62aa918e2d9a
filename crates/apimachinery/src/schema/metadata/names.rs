//! The syntax of names, labels and keys, with the messages of an API server.

/// What a rule has to say: its sentence, its pattern and examples.
struct Syntax {
    sentence: &'static str,
    pattern: &'static str,
    examples: &'static [&'static str],
}

const LABEL: Syntax = Syntax {
    sentence: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
    pattern: "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    examples: &["my-name", "123-abc"],
};
const SUBDOMAIN: Syntax = Syntax {
    sentence: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
    pattern: "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    examples: &["example.com"],
};
const LABEL_1035: Syntax = Syntax {
    sentence: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
    pattern: "[a-z]([-a-z0-9]*[a-z0-9])?",
    examples: &["my-name", "abc-123"],
};
const KEY: Syntax = Syntax {
    sentence: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    pattern: "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    examples: &["MyName", "my.name", "123-abc"],
};
const LABEL_VALUE: Syntax = Syntax {
    sentence: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    pattern: "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    examples: &["MyValue", "my_value", "12345"],
};

/// Longest label, label value and name part of a key, in bytes.
const LONGEST_LABEL: usize = 63;
/// Longest subdomain in bytes.
const LONGEST_SUBDOMAIN: usize = 253;

impl Syntax {
    fn error(&self) -> String {
        let examples: Vec<String> = self.examples.iter().map(|example| format!("'{example}', ")).collect();
        let examples = examples.join(" or ");
        format!("{} (e.g. {examples}regex used for validation is '{}')", self.sentence, self.pattern)
    }
}

fn too_long(text: &str, limit: usize) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} bytes"))
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let outer = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.first().is_some_and(outer)
        && bytes.last().is_some_and(outer)
        && bytes.iter().all(|byte| outer(byte) || *byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// What is wrong with a DNS label (RFC 1123), such as the name of a namespace.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, LONGEST_LABEL).into_iter().collect();
    if !is_label(text) {
        errors.push(if is_subdomain(text) { "must not contain dots".to_owned() } else { LABEL.error() });
    }
    errors
}

/// What is wrong with a DNS subdomain (RFC 1123), such as most names.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, LONGEST_SUBDOMAIN).into_iter().collect();
    if !is_subdomain(text) {
        errors.push(SUBDOMAIN.error());
    }
    errors
}

/// What is wrong with a DNS label that starts with a letter (RFC 1035), such as the name of a service.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, LONGEST_LABEL).into_iter().collect();
    if !is_label(text) || text.starts_with(|first: char| first.is_ascii_digit()) {
        errors.push(LABEL_1035.error());
    }
    errors
}

/// What is wrong with a label key, annotation key or finalizer: a name, or a subdomain, a slash and a name.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                KEY.error()
            )];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(dns1123_subdomain(prefix).into_iter().map(|error| format!("prefix part {error}")));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if let Some(error) = too_long(name, LONGEST_LABEL) {
        errors.push(format!("name part {error}"));
    }
    if !is_key_name(name) {
        errors.push(format!("name part {}", KEY.error()));
    }
    errors
}

/// What is wrong with the value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, LONGEST_LABEL).into_iter().collect();
    if !text.is_empty() && !is_key_name(text) {
        errors.push(LABEL_VALUE.error());
    }
    errors
}

/// What is wrong with a name that has to stand in a URL path.
pub fn path_segment(text: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    let contained = ["/", "%"].into_iter().filter(|part| text.contains(part));
    contained.map(|part| format!("may not contain '{part}'")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_with_the_known_sentences() {
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            dns1123_subdomain("A"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(qualified_name("/").len(), 3);
        assert_eq!(qualified_name("a/b/c").len(), 1);
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
        assert_eq!(path_segment("a/%", false), ["may not contain '/'", "may not contain '%'"]);
        for name in ["a", "a-b.c", "1"] {
            assert_eq!(dns1123_subdomain(name), [""; 0], "{name}");
        }
        for key in ["a", "example.com/A_b.c-d", "A"] {
            assert_eq!(qualified_name(key), [""; 0], "{key}");
        }
    }
}
