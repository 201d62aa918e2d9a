//! Field selectors: `metadata.name=a,status.phase!=Running`.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::SelectorError;

/// Selects objects by their fields: all terms hold. Without terms everything is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    /// What must hold, in the order of the text.
    pub terms: Vec<FieldTerm>,
}

/// What must hold of one field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldTerm {
    /// The field, by name from the root: `metadata.name`.
    pub field: String,
    /// Whether the field must not have the value.
    pub negated: bool,
    /// The value; an absent field has the empty one.
    pub value: String,
}

impl FieldSelector {
    /// Reads a selector as it stands in a query.
    ///
    /// `supported` are the fields by which objects of the kind can be selected, beside their name and
    /// namespace; a leading dot, as the `selectableFields` of a definition have it, does not matter.
    ///
    /// # Errors
    ///
    /// If the text is not a selector, or names another field.
    pub fn parse(text: &str, supported: &[impl AsRef<str>]) -> Result<FieldSelector, SelectorError> {
        let selector = FieldSelector::parse_any(text)?;
        for FieldTerm { field, .. } in &selector.terms {
            let known = field == "metadata.name" || field == "metadata.namespace";
            let supported = || supported.iter().any(|other| other.as_ref().trim_start_matches('.') == field);
            if !known && !supported() {
                return Err(SelectorError::Field(field.clone()));
            }
        }
        Ok(selector)
    }

    /// Reads a selector by any fields, for whoever does not know the kind.
    ///
    /// # Errors
    ///
    /// If the text is not a selector.
    pub fn parse_any(text: &str) -> Result<FieldSelector, SelectorError> {
        let terms = split_unescaped(text).into_iter().filter(|term| !term.is_empty());
        Ok(FieldSelector { terms: terms.map(|term| parse_term(text, term)).collect::<Result<_, _>>()? })
    }

    /// Whether the selector selects an object.
    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| {
            let value = text_at(object, &term.field);
            (value == term.value.as_str()) != term.negated
        })
    }

    /// The value that a field must have, if the selector names one: lists by name become reads.
    pub fn required(&self, field: &str) -> Option<&str> {
        let term = self.terms.iter().find(|term| term.field == field && !term.negated)?;
        Some(&term.value)
    }
}

/// The value of a field as text; empty if it is absent.
fn text_at<'v>(object: &'v Value, field: &str) -> Cow<'v, str> {
    let value = field.split('.').try_fold(object, |value, name| value.get(name));
    match value {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(Value::Bool(flag)) => Cow::Borrowed(if *flag { "true" } else { "false" }),
        Some(Value::Number(number)) => Cow::Owned(number.to_string()),
        _ => Cow::Borrowed(""),
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (position, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn parse_term(selector: &str, term: &str) -> Result<FieldTerm, SelectorError> {
    let fail = |message: String| SelectorError::Syntax { selector: selector.to_owned(), message };
    let operators = ["!=", "==", "="];
    let found = term.char_indices().find_map(|(position, _)| {
        let rest = &term[position..];
        let operator = operators.into_iter().find(|operator| rest.starts_with(operator))?;
        Some((&term[..position], operator, &rest[operator.len()..]))
    });
    let Some((field, operator, value)) = found else {
        return Err(fail(format!("{term:?} has none of '=', '==' and '!='")));
    };
    let value = unescaped(value).map_err(|message| fail(format!("value {value:?}: {message}")))?;
    Ok(FieldTerm { field: field.to_owned(), negated: operator == "!=", value })
}

/// A value without its escapes (`\\`, `\,`, `\=`).
fn unescaped(text: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                _ => return Err("a backslash must be followed by a backslash, a comma or an equals sign"),
            },
            '=' => return Err("an equals sign must be escaped by a backslash"),
            other => out.push(other),
        }
    }
    Ok(out)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, term) in self.terms.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            let operator = if term.negated { "!=" } else { "=" };
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.field)?;
        }
        Ok(())
    }
}
