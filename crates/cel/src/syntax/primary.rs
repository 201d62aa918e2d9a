//! Literals: numbers and texts, lists, maps and messages.

use super::lexer::{Lexeme, Lexer, Token};
use super::literal;
use super::parser::{Parsed, Parser, Result};
use super::tree::{Child, Kind};

impl Parser<'_> {
    /// Whether `.b.C{` or `{` follows, which makes the name a message type.
    pub(super) fn starts_message(&self) -> bool {
        if self.current.token == Token::LeftBrace {
            return true;
        }
        if self.current.token != Token::Dot || self.next.token != Token::Identifier {
            return false;
        }
        let mut ahead = Lexer::new(&self.source[self.next.end as usize..]);
        let mut token = || ahead.next().map_or(Token::End, |lexeme| lexeme.token);
        loop {
            match token() {
                Token::LeftBrace => return true,
                Token::Dot if token() == Token::Identifier => {}
                _ => return false,
            }
        }
    }

    pub(super) fn message(&mut self, first: Lexeme) -> Result<Parsed> {
        let mut end = first.end;
        while self.accept(Token::Dot)? {
            end = self.current.end;
            self.expect(Token::Identifier, "a name")?;
        }
        self.expect(Token::LeftBrace, "'{'")?;
        let mut height = 0;
        while !matches!(self.current.token, Token::RightBrace | Token::Comma) {
            self.accept(Token::Question)?;
            self.expect(Token::Identifier, "a field name")?;
            self.expect(Token::Colon, "':'")?;
            height = height.max(self.expression()?.height);
            if self.current.token == Token::Comma && self.next.token != Token::RightBrace {
                self.advance()?;
            }
        }
        self.accept(Token::Comma)?;
        self.expect(Token::RightBrace, "'}'")?;
        let name = &self.source[first.start as usize..end as usize];
        Ok(Parsed { node: self.add(first.start, Kind::Message(name))?, height })
    }

    fn optional_mark(&mut self) -> Result<bool> {
        let offset = self.current.start;
        let optional = self.accept(Token::Question)?;
        if optional && !self.options.optionals {
            return self.error(offset, "optional elements are not available");
        }
        Ok(optional)
    }

    pub(super) fn list(&mut self) -> Result<Parsed> {
        let offset = self.current.start;
        self.advance()?;
        let mark = self.pending.len();
        let mut height = 0;
        while !matches!(self.current.token, Token::RightBracket | Token::Comma) {
            let optional = self.optional_mark()?;
            let element = self.expression()?;
            height = height.max(element.height);
            self.pending.push(Child { node: element.node, optional });
            if self.current.token == Token::Comma && self.next.token != Token::RightBracket {
                self.advance()?;
                if self.current.token == Token::Comma {
                    return self.unexpected("a list element");
                }
            } else {
                break;
            }
        }
        self.accept(Token::Comma)?;
        self.expect(Token::RightBracket, "',' or ']'")?;
        let elements = self.tree.add_children(self.pending.drain(mark..));
        Ok(Parsed { node: self.add(offset, Kind::List(elements))?, height })
    }

    pub(super) fn map(&mut self) -> Result<Parsed> {
        let offset = self.current.start;
        self.advance()?;
        let mark = self.pending.len();
        let mut height = 0;
        while !matches!(self.current.token, Token::RightBrace | Token::Comma) {
            let optional = self.optional_mark()?;
            let key = self.expression()?;
            self.expect(Token::Colon, "':'")?;
            let value = self.expression()?;
            height = height.max(key.height).max(value.height);
            self.pending.push(key.node.into());
            self.pending.push(Child { node: value.node, optional });
            if self.current.token == Token::Comma && self.next.token != Token::RightBrace {
                self.advance()?;
                if self.current.token == Token::Comma {
                    return self.unexpected("a map entry");
                }
            } else {
                break;
            }
        }
        self.accept(Token::Comma)?;
        self.expect(Token::RightBrace, "',' or '}'")?;
        let entries = self.tree.add_children(self.pending.drain(mark..));
        Ok(Parsed { node: self.add(offset, Kind::Map(entries))?, height })
    }

    pub(super) fn literal(&mut self) -> Result<Parsed> {
        let offset = self.current.start;
        let negative = self.current.token == Token::Minus
            && matches!(self.next.token, Token::Int | Token::Double)
            && self.accept(Token::Minus)?;
        let lexeme = self.current;
        let text = self.text(lexeme);
        let kind = match lexeme.token {
            Token::True => Kind::Bool(true),
            Token::False => Kind::Bool(false),
            Token::Null => Kind::Null,
            Token::Int => match integer(text, negative) {
                Some(value) => Kind::Int(value),
                None => return self.error(offset, "the integer does not fit in 64 bits"),
            },
            Token::Uint => match unsigned(&text[..text.len() - 1]) {
                Some(value) => Kind::Uint(value),
                None => return self.error(offset, "the unsigned integer does not fit in 64 bits"),
            },
            Token::Double => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => Kind::Double(if negative { -value } else { value }),
                _ => return self.error(offset, "the number is too large for a double"),
            },
            Token::String => match literal::string(text) {
                Ok(value) => Kind::String(value),
                Err(message) => return self.error(offset, message),
            },
            Token::Bytes => match literal::bytes(&text[1..]) {
                Ok(value) => Kind::Bytes(value),
                Err(message) => return self.error(offset, message),
            },
            _ => return self.unexpected("an expression"),
        };
        self.advance()?;
        Ok(Parsed { node: self.add(offset, kind)?, height: 0 })
    }
}

fn unsigned(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn integer(text: &str, negative: bool) -> Option<i64> {
    let magnitude = unsigned(text)?;
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}
