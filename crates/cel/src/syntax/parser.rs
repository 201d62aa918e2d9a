//! Tokens to the syntax tree: a recursive-descent parser of the CEL grammar.
//!
//! cel-go bounds the depth of each left-recursive grammar rule and of the walk over the parse tree, both at
//! 250. The same counters are kept here, so a chain like `a + a + …` is refused at the same length.

use super::lexer::{Lexeme, Lexer, Token};
use super::tree::{Child, Kind, NodeId, Slice, Tree, TreeLimit};
use crate::error::CompileError;

/// The depth at which cel-go gives up, per grammar rule and for the walk over the parse tree.
const MAXIMUM_DEPTH: u16 = 250;

/// Words that name nothing, kept for future use by the language.
const RESERVED: [&str; 17] = [
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

/// The switchable parts of the grammar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParseOptions {
    /// `.?f`, `[?k]`, `[?e]`, `{?k: v}`, `optMap`, `optFlatMap`.
    pub(crate) optionals: bool,
    /// `all(k, v, …)`, `transformMap` and the like.
    pub(crate) two_variables: bool,
    /// `cel.bind`.
    pub(crate) bindings: bool,
    /// `sortBy`.
    pub(crate) sort_by: bool,
}

/// An operand and how deep cel-go's walk over it would go.
#[derive(Clone, Copy)]
pub(super) struct Parsed {
    pub(super) node: NodeId,
    pub(super) height: u16,
}

pub(super) type Result<T> = std::result::Result<T, Box<CompileError>>;

/// Parses one expression.
pub(crate) fn parse<'s>(source: &'s str, options: &ParseOptions) -> Result<(Tree<'s>, NodeId)> {
    let mut parser = Parser {
        source,
        lexer: Lexer::new(source),
        current: Lexeme { token: Token::End, start: 0, end: 0 },
        next: Lexeme { token: Token::End, start: 0, end: 0 },
        tree: Tree::with_source_length(source.len()),
        pending: Vec::with_capacity(16),
        options: *options,
        open: Open::default(),
    };
    parser.next = parser.lex()?;
    parser.advance()?;
    let root = parser.expression()?;
    parser.expect(Token::End, "end of the expression")?;
    Ok((parser.tree, root.node))
}

/// How many contexts of each left-recursive rule are open.
#[derive(Default)]
struct Open {
    expression: u16,
    relation: u16,
    sum: u16,
    member: u16,
}

pub(super) struct Parser<'s> {
    pub(super) source: &'s str,
    lexer: Lexer<'s>,
    pub(super) current: Lexeme,
    pub(super) next: Lexeme,
    pub(super) tree: Tree<'s>,
    /// Children of the literals and calls that are being read, the innermost last.
    pub(super) pending: Vec<Child>,
    pub(super) options: ParseOptions,
    open: Open,
}

impl<'s> Parser<'s> {
    pub(super) fn error<T>(&self, offset: u32, message: impl Into<String>) -> Result<T> {
        Err(Box::new(CompileError::at(self.source, offset as usize, message.into(), None)))
    }

    fn too_deep<T>(&self) -> Result<T> {
        self.error(self.current.start, format!("the expression is nested deeper than {MAXIMUM_DEPTH} levels"))
    }

    pub(super) fn add(&mut self, offset: u32, kind: Kind<'s>) -> Result<NodeId> {
        let added = self.tree.add(offset, kind);
        self.limited(offset, added)
    }

    pub(super) fn limited(
        &self,
        offset: u32,
        added: std::result::Result<NodeId, TreeLimit>,
    ) -> Result<NodeId> {
        added.or_else(|limit| match limit {
            TreeLimit::Nodes => self.error(
                offset,
                format!(
                    "the expression has more than {} nodes once macros are expanded",
                    Tree::MAXIMUM_NODES
                ),
            ),
            TreeLimit::Depth => self.error(
                offset,
                format!("the expression is nested deeper than {} levels", Tree::MAXIMUM_DEPTH),
            ),
        })
    }

    /// Adds a call of a global function or operator.
    pub(super) fn call(&mut self, offset: u32, function: &'s str, arguments: &[NodeId]) -> Result<NodeId> {
        let arguments = self.tree.add_children(arguments.iter().map(|&node| Child::from(node)));
        self.add(offset, Kind::Call { function, target: None, arguments })
    }

    fn lex(&mut self) -> Result<Lexeme> {
        self.lexer.next().or_else(|error| self.error(error.offset, error.message))
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        self.current = self.next;
        self.next = if self.current.token == Token::End { self.current } else { self.lex()? };
        Ok(())
    }

    pub(super) fn text(&self, lexeme: Lexeme) -> &'s str {
        &self.source[lexeme.start as usize..lexeme.end as usize]
    }

    pub(super) fn accept(&mut self, token: Token) -> Result<bool> {
        let found = self.current.token == token;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, token: Token, wanted: &str) -> Result<()> {
        if self.accept(token)? { Ok(()) } else { self.unexpected(wanted) }
    }

    pub(super) fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        let found = match self.current.token {
            Token::End => "the end".to_owned(),
            _ => format!("{:?}", self.text(self.current)),
        };
        self.error(self.current.start, format!("expected {wanted}, found {found}"))
    }

    fn raised(&self, height: u16) -> Result<u16> {
        if height >= MAXIMUM_DEPTH { self.too_deep() } else { Ok(height + 1) }
    }

    pub(super) fn expression(&mut self) -> Result<Parsed> {
        self.open.expression += 1;
        if self.open.expression > MAXIMUM_DEPTH {
            return self.too_deep();
        }
        let condition = self.disjunction()?;
        let offset = self.current.start;
        let parsed = if self.accept(Token::Question)? {
            let truthy = self.disjunction()?;
            self.expect(Token::Colon, "':'")?;
            let falsy = self.expression()?;
            let height = self.raised(condition.height.max(truthy.height).max(falsy.height))?;
            let node = self.call(offset, "_?_:_", &[condition.node, truthy.node, falsy.node])?;
            Parsed { node, height }
        } else {
            condition
        };
        self.open.expression -= 1;
        Ok(parsed)
    }

    fn disjunction(&mut self) -> Result<Parsed> {
        self.chain(Token::Or, "_||_", |parser| parser.chain(Token::And, "_&&_", |parser| parser.relation()))
    }

    /// One call with all operands of a chain of `&&` or `||`; evaluating left to right, it means the same.
    fn chain(
        &mut self,
        operator: Token,
        function: &'static str,
        operand: impl Fn(&mut Self) -> Result<Parsed>,
    ) -> Result<Parsed> {
        let first = operand(self)?;
        if self.current.token != operator {
            return Ok(first);
        }
        let offset = self.current.start;
        let mark = self.pending.len();
        let mut height = first.height;
        self.pending.push(first.node.into());
        while self.accept(operator)? {
            let next = operand(self)?;
            height = height.max(next.height);
            self.pending.push(next.node.into());
        }
        let arguments = self.tree.add_children(self.pending.drain(mark..));
        let node = self.add(offset, Kind::Call { function, target: None, arguments })?;
        Ok(Parsed { node, height })
    }

    fn relation(&mut self) -> Result<Parsed> {
        let open = self.open.relation;
        self.open.relation += 1;
        let mut left = self.sum(0)?;
        loop {
            let function = match self.current.token {
                Token::Less => "_<_",
                Token::LessEqual => "_<=_",
                Token::Greater => "_>_",
                Token::GreaterEqual => "_>=_",
                Token::Equal => "_==_",
                Token::NotEqual => "_!=_",
                Token::In => "@in",
                _ => break,
            };
            self.open.relation += 1;
            if self.open.relation >= MAXIMUM_DEPTH {
                return self.too_deep();
            }
            let offset = self.current.start;
            self.advance()?;
            self.open.relation += 1;
            let right = self.sum(0)?;
            self.open.relation -= 1;
            left = self.binary(offset, function, left, right)?;
        }
        self.open.relation = open;
        Ok(left)
    }

    fn binary(&mut self, offset: u32, function: &'static str, left: Parsed, right: Parsed) -> Result<Parsed> {
        let height = self.raised(left.height.max(right.height))?;
        let node = self.call(offset, function, &[left.node, right.node])?;
        Ok(Parsed { node, height })
    }

    /// Sums (level 0) and products (level 1).
    fn sum(&mut self, level: u8) -> Result<Parsed> {
        let open = self.open.sum;
        self.open.sum += 1;
        if self.open.sum > MAXIMUM_DEPTH {
            return self.too_deep();
        }
        let mut left = self.unary()?;
        loop {
            let (function, precedence) = match self.current.token {
                Token::Plus => ("_+_", 0),
                Token::Minus => ("_-_", 0),
                Token::Star => ("_*_", 1),
                Token::Slash => ("_/_", 1),
                Token::Percent => ("_%_", 1),
                _ => break,
            };
            if precedence < level {
                break;
            }
            self.open.sum += 1;
            if self.open.sum > MAXIMUM_DEPTH {
                return self.too_deep();
            }
            let offset = self.current.start;
            self.advance()?;
            let right = self.sum(precedence + 1)?;
            left = self.binary(offset, function, left, right)?;
        }
        self.open.sum = open;
        Ok(left)
    }

    fn unary(&mut self) -> Result<Parsed> {
        let operator = self.current.token;
        let offset = self.current.start;
        let literal = operator == Token::Minus && matches!(self.next.token, Token::Int | Token::Double);
        let function = match operator {
            Token::Not => "!_",
            Token::Minus if !literal => "-_",
            _ => return self.member(),
        };
        // Pairs of signs cancel out in the grammar already.
        let mut odd = false;
        while self.accept(operator)? {
            odd = !odd;
        }
        let operand = self.member()?;
        if !odd {
            return Ok(operand);
        }
        Ok(Parsed { node: self.call(offset, function, &[operand.node])?, height: operand.height })
    }

    fn member(&mut self) -> Result<Parsed> {
        let open = self.open.member;
        self.open.member += 1;
        let mut operand = self.primary()?;
        loop {
            let offset = self.current.start;
            let token = self.current.token;
            if !matches!(token, Token::Dot | Token::LeftBracket) {
                break;
            }
            self.open.member += 1;
            if self.open.member > MAXIMUM_DEPTH {
                return self.too_deep();
            }
            self.advance()?;
            operand = if token == Token::Dot {
                self.selection(operand, offset)?
            } else {
                self.index(operand, offset)?
            };
        }
        self.open.member = open;
        Ok(operand)
    }

    fn selection(&mut self, operand: Parsed, offset: u32) -> Result<Parsed> {
        let question = self.current.start;
        let optional = self.accept(Token::Question)?;
        if optional && !self.options.optionals {
            return self.error(question, "optional field selection is not available");
        }
        let name = self.current;
        let field = match name.token {
            Token::Identifier => self.text(name),
            Token::EscapedIdentifier => {
                return self.error(name.start, "backquoted field names are not available");
            }
            _ => return self.unexpected("a field name"),
        };
        self.advance()?;
        if optional {
            let height = self.raised(operand.height)?;
            let name = self.add(name.start, Kind::String(field.into()))?;
            return Ok(Parsed { node: self.call(offset, "_?._", &[operand.node, name])?, height });
        }
        if self.current.token == Token::LeftParenthesis {
            return self.member_call(operand, field, name.start);
        }
        let height = self.raised(operand.height)?;
        let node = self.add(name.start, Kind::Select { operand: operand.node, field, test: false })?;
        Ok(Parsed { node, height })
    }

    fn member_call(&mut self, target: Parsed, function: &'s str, offset: u32) -> Result<Parsed> {
        self.advance()?;
        let (arguments, height) = self.arguments()?;
        let height = self.raised(height.max(target.height))?;
        let node = match self.expand_macro(offset, function, Some(target.node), arguments)? {
            Some(node) => node,
            None => self.add(offset, Kind::Call { function, target: Some(target.node), arguments })?,
        };
        Ok(Parsed { node, height })
    }

    fn index(&mut self, operand: Parsed, offset: u32) -> Result<Parsed> {
        let question = self.current.start;
        let optional = self.accept(Token::Question)?;
        if optional && !self.options.optionals {
            return self.error(question, "optional indexing is not available");
        }
        let index = self.expression()?;
        self.expect(Token::RightBracket, "']'")?;
        let height = self.raised(operand.height.max(index.height))?;
        let function = if optional { "_[?_]" } else { "_[_]" };
        Ok(Parsed { node: self.call(offset, function, &[operand.node, index.node])?, height })
    }

    /// The arguments of a call whose opening parenthesis is read.
    fn arguments(&mut self) -> Result<(Slice, u16)> {
        let mark = self.pending.len();
        let mut height = 0;
        if self.current.token != Token::RightParenthesis {
            loop {
                let argument = self.expression()?;
                height = height.max(argument.height);
                self.pending.push(argument.node.into());
                if !self.accept(Token::Comma)? {
                    break;
                }
            }
        }
        self.expect(Token::RightParenthesis, "',' or ')'")?;
        Ok((self.tree.add_children(self.pending.drain(mark..)), height))
    }

    fn primary(&mut self) -> Result<Parsed> {
        let lexeme = self.current;
        match lexeme.token {
            Token::LeftParenthesis => {
                self.advance()?;
                let inner = self.expression()?;
                self.expect(Token::RightParenthesis, "')'")?;
                Ok(inner)
            }
            Token::LeftBracket => self.list(),
            Token::LeftBrace => self.map(),
            Token::Dot => {
                self.advance()?;
                self.name()
            }
            Token::Identifier => self.name(),
            _ => self.literal(),
        }
    }

    /// An identifier, a global call or a message literal.
    fn name(&mut self) -> Result<Parsed> {
        let lexeme = self.current;
        if lexeme.token != Token::Identifier {
            return self.unexpected("a name");
        }
        let name = self.text(lexeme);
        self.advance()?;
        if self.starts_message() {
            return self.message(lexeme);
        }
        if RESERVED.contains(&name) {
            return self.error(lexeme.start, format!("{name} is a reserved word"));
        }
        if self.accept(Token::LeftParenthesis)? {
            let (arguments, height) = self.arguments()?;
            let node = match self.expand_macro(lexeme.start, name, None, arguments)? {
                Some(node) => node,
                None => self.add(lexeme.start, Kind::Call { function: name, target: None, arguments })?,
            };
            return Ok(Parsed { node, height });
        }
        Ok(Parsed { node: self.add(lexeme.start, Kind::Identifier(name))?, height: 0 })
    }
}
