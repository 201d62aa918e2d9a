//! Names of properties as expressions spell them: `a.b` is `a__dot__b`, `namespace` is `__namespace__`.

/// Words that CEL reserves and that are escaped as a whole.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name of a property in expressions; `None` if it cannot be selected.
pub(crate) fn escape(property: &str) -> Option<String> {
    if property.is_empty() || property.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&property) {
        return Some(format!("__{property}__"));
    }
    let mut name = String::with_capacity(property.len());
    let mut rest = property;
    while let Some(first) = rest.chars().next() {
        let (written, length) = match first {
            _ if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            letter if letter.is_ascii_alphanumeric() || letter == '_' => (&rest[..1], 1),
            _ => return None,
        };
        name.push_str(written);
        rest = &rest[length..];
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_escaped_as_kubernetes_does() {
        for (property, name) in [
            ("a", Some("a")),
            ("namespace", Some("__namespace__")),
            ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("a_b", Some("a_b")),
            ("1a", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(escape(property).as_deref(), name, "{property}");
        }
    }
}
