//! Label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.

use std::fmt;

use serde_json::{Map, Value};

use super::SelectorError;

/// Selects objects by their labels: all requirements hold. Without requirements everything is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    /// What must hold, in the order of the text.
    pub requirements: Vec<Requirement>,
}

/// What must hold of one label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// What must hold.
    pub operator: Operator,
    /// The values it is about, sorted.
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// It has one of the values (`=`, `==`, `in`).
    In,
    /// It is absent or has none of the values (`!=`, `notin`).
    NotIn,
    /// It is there.
    Exists,
    /// It is absent (`!`).
    DoesNotExist,
    /// It is an integer above the value.
    GreaterThan,
    /// It is an integer below the value.
    LessThan,
}

impl LabelSelector {
    /// Reads a selector as it stands in a query.
    ///
    /// # Errors
    ///
    /// If the text is not a selector, or names a label that cannot exist.
    pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
        let mut parser = Parser { text, tokens: tokens(text), next: 0 };
        let mut requirements = Vec::new();
        if parser.peek().is_none() {
            return Ok(LabelSelector::default());
        }
        loop {
            requirements.push(parser.requirement()?);
            match parser.take() {
                None => break,
                Some(Token::Comma) if parser.peek().is_some() => {}
                Some(Token::Comma) => {
                    return Err(parser.error("a label is expected after the last comma".to_owned()));
                }
                Some(token) => {
                    return Err(parser.error(format!("found {token}, expected a comma or the end")));
                }
            }
        }
        Ok(LabelSelector { requirements })
    }

    /// Reads a LabelSelector object (`matchLabels`, `matchExpressions`); an empty one selects everything.
    ///
    /// # Errors
    ///
    /// If an operator is unknown, has the wrong number of values, or a label cannot exist.
    pub fn from_object(object: &Value) -> Result<LabelSelector, SelectorError> {
        let mut requirements = Vec::new();
        let labels = object.get("matchLabels").and_then(Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::In, vec![value])?);
        }
        let expressions = object.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
            let (key, operator) = (text("key"), text("operator"));
            let operator = match operator {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let message = format!("{other:?} is not a valid label selector operator");
                    return Err(SelectorError::Operator { key: key.to_owned(), message });
                }
            };
            let values = expression.get("values").and_then(Value::as_array);
            let values = values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(Requirement::new(key, operator, values)?);
        }
        Ok(LabelSelector { requirements })
    }

    /// Whether the selector selects an object with these labels.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str);
            requirement.matches(value)
        })
    }

    /// Whether the selector selects an object, by its `metadata.labels`.
    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = || object.get("metadata")?.get("labels")?.as_object();
        self.requirements.is_empty() || self.matches(labels())
    }
}

impl Requirement {
    /// A requirement on a label that can exist, with as many values as its operator takes.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Requirement, SelectorError> {
        let fail =
            |message: &str| Err(SelectorError::Operator { key: key.to_owned(), message: message.to_owned() });
        check_key(key)?;
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                return fail("for 'in' and 'notin' operators, values set can't be empty");
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                return fail("values set must be empty for exists and does not exist");
            }
            Operator::GreaterThan | Operator::LessThan => {
                let is_integer = values.len() == 1 && values[0].parse::<i64>().is_ok();
                if !is_integer {
                    return fail("for 'Gt' and 'Lt' operators, exactly one integer is required");
                }
            }
            _ => {}
        }
        values.iter().try_for_each(|value| check_value(key, value))?;
        values.sort_unstable();
        values.dedup();
        Ok(Requirement { key: key.to_owned(), operator, values })
    }

    /// Whether a label with this value, or without one, is as required.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.binary_search_by(|known| known.as_str().cmp(value)).is_ok();
        let number = |text: &str| text.parse::<i64>().ok();
        let limit = || self.values.first().and_then(|limit| number(limit));
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => {
                value.and_then(number).zip(limit()).is_some_and(|(value, limit)| value > limit)
            }
            Operator::LessThan => {
                value.and_then(number).zip(limit()).is_some_and(|(value, limit)| value < limit)
            }
        }
    }
}

/// Checks that a label may have this key: an optional DNS prefix and a name (API conventions, "labels").
fn check_key(key: &str) -> Result<(), SelectorError> {
    let fail = |message| Err(SelectorError::Key { key: key.to_owned(), message });
    let (prefix, name) = match key.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix {
        let label = |label: &str| {
            let edge = |byte: Option<&u8>| {
                byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            };
            let bytes = label.as_bytes();
            let inner =
                bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-');
            inner && edge(bytes.first()) && edge(bytes.last())
        };
        if prefix.len() > 253 || !prefix.split('.').all(label) {
            return fail(
                "the part before the slash must be a DNS name in lower case, of at most 253 characters",
            );
        }
    }
    if name.is_empty() || !is_label_text(name) {
        return fail(
            "the name must be 1 to 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit",
        );
    }
    Ok(())
}

fn check_value(key: &str, value: &str) -> Result<(), SelectorError> {
    if value.is_empty() || is_label_text(value) {
        return Ok(());
    }
    let message = "it must be empty or at most 63 letters, digits, '-', '_' or '.', \
                   beginning and ending with a letter or digit";
    Err(SelectorError::Value { key: key.to_owned(), value: value.to_owned(), message })
}

fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.len() <= 63 && edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match (self.operator, self.values.len()) {
            (Operator::In, 1) => write!(f, "{key}={values}"),
            (Operator::NotIn, 1) => write!(f, "{key}!={values}"),
            (Operator::In, _) => write!(f, "{key} in ({values})"),
            (Operator::NotIn, _) => write!(f, "{key} notin ({values})"),
            (Operator::Exists, _) => write!(f, "{key}"),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            (Operator::GreaterThan, _) => write!(f, "{key}>{values}"),
            (Operator::LessThan, _) => write!(f, "{key}<{values}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Comma,
    Open,
    Close,
    Not,
    Equal,
    NotEqual,
    Greater,
    Less,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Token::Word(word) => word,
            Token::Comma => ",",
            Token::Open => "(",
            Token::Close => ")",
            Token::Not => "!",
            Token::Equal => "=",
            Token::NotEqual => "!=",
            Token::Greater => ">",
            Token::Less => "<",
        };
        write!(f, "{text:?}")
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let special = |character: char| "=!(),<>".contains(character) || character.is_ascii_whitespace();
    let mut tokens = Vec::new();
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let table = [
            ("==", Token::Equal),
            ("!=", Token::NotEqual),
            ("=", Token::Equal),
            ("!", Token::Not),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
            (">", Token::Greater),
            ("<", Token::Less),
        ];
        let (token, length) = match table.into_iter().find(|(prefix, _)| rest.starts_with(prefix)) {
            Some((prefix, token)) => (token, prefix.len()),
            None => {
                let end = rest.find(special).unwrap_or(rest.len());
                (Token::Word(&rest[..end]), end)
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_ascii_start();
    }
    tokens
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    next: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.next).copied()
    }

    fn take(&mut self) -> Option<Token<'t>> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn error(&self, message: String) -> SelectorError {
        SelectorError::Syntax { selector: self.text.to_owned(), message }
    }

    fn unexpected(&self, token: Option<Token<'_>>, expected: &str) -> SelectorError {
        self.error(match token {
            Some(token) => format!("found {token}, expected {expected}"),
            None => format!("expected {expected} at the end"),
        })
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.peek() == Some(Token::Not);
        if negated {
            self.take();
        }
        let key = match self.take() {
            Some(Token::Word(key)) => key,
            other => return Err(self.unexpected(other, "a label key")),
        };
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        let operator = match self.peek() {
            None | Some(Token::Comma) => return Requirement::new(key, Operator::Exists, Vec::new()),
            Some(Token::Equal) | Some(Token::Word("in")) => Operator::In,
            Some(Token::NotEqual) | Some(Token::Word("notin")) => Operator::NotIn,
            Some(Token::Greater) => Operator::GreaterThan,
            Some(Token::Less) => Operator::LessThan,
            other => return Err(self.unexpected(other, "'=', '!=', '==', 'in', 'notin', '>' or '<'")),
        };
        let is_list = matches!(self.take(), Some(Token::Word(_)));
        let values = if is_list { self.values()? } else { vec![self.value()?] };
        Requirement::new(key, operator, values)
    }

    /// One value, which may be empty.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Some(Token::Word(value)) => {
                self.take();
                Ok(value.to_owned())
            }
            None | Some(Token::Comma) => Ok(String::new()),
            other => Err(self.unexpected(other, "a value")),
        }
    }

    /// Values in parentheses; empty ones stand for the empty value.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.take() {
            Some(Token::Open) => {}
            other => return Err(self.unexpected(other, "'('")),
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Some(Token::Word(value)) => {
                    self.take();
                    value
                }
                _ => "",
            };
            values.push(value.to_owned());
            match self.take() {
                Some(Token::Comma) => {}
                Some(Token::Close) => return Ok(values),
                other => return Err(self.unexpected(other, "',' or ')'")),
            }
        }
    }
}
