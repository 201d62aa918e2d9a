//! Source text to tokens.

/// The kinds of tokens; the text of a token is its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    End,
    Identifier,
    /// Between backquotes, for fields only.
    EscapedIdentifier,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    True,
    False,
    Null,
    In,
    /// Operators and punctuation.
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Not,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Question,
    Colon,
    Comma,
    Dot,
    LeftParenthesis,
    RightParenthesis,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
}

/// A token and its byte range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What is wrong at a byte offset.
#[derive(Debug)]
pub(crate) struct LexicalError {
    pub(crate) offset: u32,
    pub(crate) message: String,
}

/// Produces tokens one after the other.
pub(crate) struct Lexer<'s> {
    source: &'s str,
    position: usize,
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Self { source, position: 0 }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.source.as_bytes().get(self.position + ahead).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0c => self.position += 1,
                b'/' if self.byte(1) == b'/' => {
                    let rest = &self.source.as_bytes()[self.position..];
                    self.position += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    pub(crate) fn next(&mut self) -> Result<Lexeme, LexicalError> {
        self.skip_blanks();
        let start = self.position;
        let token = self.scan()?;
        Ok(Lexeme { token, start: start as u32, end: self.position as u32 })
    }

    fn scan(&mut self) -> Result<Token, LexicalError> {
        if self.position >= self.source.len() {
            return Ok(Token::End);
        }
        let (token, length) = match (self.byte(0), self.byte(1)) {
            (b'=', b'=') => (Token::Equal, 2),
            (b'!', b'=') => (Token::NotEqual, 2),
            (b'<', b'=') => (Token::LessEqual, 2),
            (b'>', b'=') => (Token::GreaterEqual, 2),
            (b'&', b'&') => (Token::And, 2),
            (b'|', b'|') => (Token::Or, 2),
            (b'<', _) => (Token::Less, 1),
            (b'>', _) => (Token::Greater, 1),
            (b'!', _) => (Token::Not, 1),
            (b'+', _) => (Token::Plus, 1),
            (b'-', _) => (Token::Minus, 1),
            (b'*', _) => (Token::Star, 1),
            (b'/', _) => (Token::Slash, 1),
            (b'%', _) => (Token::Percent, 1),
            (b'?', _) => (Token::Question, 1),
            (b':', _) => (Token::Colon, 1),
            (b',', _) => (Token::Comma, 1),
            (b'(', _) => (Token::LeftParenthesis, 1),
            (b')', _) => (Token::RightParenthesis, 1),
            (b'[', _) => (Token::LeftBracket, 1),
            (b']', _) => (Token::RightBracket, 1),
            (b'{', _) => (Token::LeftBrace, 1),
            (b'}', _) => (Token::RightBrace, 1),
            (b'.', next) if !next.is_ascii_digit() => (Token::Dot, 1),
            (b'.' | b'0'..=b'9', _) => return Ok(self.number()),
            (b'"' | b'\'', _) => return self.quoted(0, false, Token::String),
            (b'`', _) => return self.escaped_identifier(),
            (b'r' | b'R', b'"' | b'\'') => return self.quoted(1, true, Token::String),
            (b'b' | b'B', b'"' | b'\'') => return self.quoted(1, false, Token::Bytes),
            (b'b' | b'B', b'r' | b'R') if matches!(self.byte(2), b'"' | b'\'') => {
                return self.quoted(2, true, Token::Bytes);
            }
            (b'a'..=b'z' | b'A'..=b'Z' | b'_', _) => return Ok(self.word()),
            _ => {
                let character = self.source[self.position..].chars().next().unwrap_or('\u{fffd}');
                return Err(self.error(format!("unexpected character {character:?}")));
            }
        };
        self.position += length;
        Ok(token)
    }

    fn error(&self, message: impl Into<String>) -> LexicalError {
        LexicalError { offset: self.position as u32, message: message.into() }
    }

    fn word(&mut self) -> Token {
        let rest = &self.source[self.position..];
        let length =
            rest.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(rest.len());
        self.position += length;
        match &rest[..length] {
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            "in" => Token::In,
            _ => Token::Identifier,
        }
    }

    fn escaped_identifier(&mut self) -> Result<Token, LexicalError> {
        let rest = &self.source[self.position + 1..];
        let allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b' ');
        let length = rest.bytes().position(|byte| !allowed(byte)).unwrap_or(rest.len());
        if length == 0 || rest.as_bytes().get(length) != Some(&b'`') {
            return Err(
                self.error("the backquoted field name is not closed or has characters it must not have")
            );
        }
        self.position += length + 2;
        Ok(Token::EscapedIdentifier)
    }

    fn digits(&mut self, accept: impl Fn(&u8) -> bool) {
        while accept(&self.byte(0)) {
            self.position += 1;
        }
    }

    /// The longest of the three number forms; what follows is the next token, however odd.
    fn number(&mut self) -> Token {
        if self.byte(0) == b'0' && self.byte(1) == b'x' && self.byte(2).is_ascii_hexdigit() {
            self.position += 2;
            self.digits(u8::is_ascii_hexdigit);
            return self.unsigned_suffix();
        }
        let mut double = false;
        self.digits(u8::is_ascii_digit);
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            double = true;
            self.position += 1;
            self.digits(u8::is_ascii_digit);
        }
        let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
        if matches!(self.byte(0), b'e' | b'E') && self.byte(1 + sign).is_ascii_digit() {
            double = true;
            self.position += 1 + sign;
            self.digits(u8::is_ascii_digit);
        }
        if double { Token::Double } else { self.unsigned_suffix() }
    }

    fn unsigned_suffix(&mut self) -> Token {
        if matches!(self.byte(0), b'u' | b'U') {
            self.position += 1;
            Token::Uint
        } else {
            Token::Int
        }
    }

    fn quoted(&mut self, prefix: usize, raw: bool, token: Token) -> Result<Token, LexicalError> {
        let bytes = self.source.as_bytes();
        let open = self.position + prefix;
        let quote = bytes[open];
        // `""` followed by no third quote is an empty string; three quotes open a long one.
        let long = bytes[open..].len() >= 3 && bytes[open + 1] == quote && bytes[open + 2] == quote;
        let width = if long { 3 } else { 1 };
        let mut at = open + width;
        while let Some(&byte) = bytes.get(at) {
            if byte == quote && (!long || bytes[at..].starts_with(&[quote; 3])) {
                self.position = at + width;
                return Ok(token);
            }
            if !long && matches!(byte, b'\n' | b'\r') {
                break;
            }
            at += if byte == b'\\' && !raw { 2 } else { 1 };
        }
        Err(self.error("the string is not closed"))
    }
}
