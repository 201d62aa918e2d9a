//! Static types: small copyable handles into append-only tables.

/// A type. Simple types are constants; composite ones are entries of a [`Types`] table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Type(u32);

/// Composite handles start here.
const FIRST_COMPOSITE: u32 = 32;
/// Bounds the size of one type, as nested binds could otherwise double it at each level.
const MAXIMUM_SIZE: u32 = 256;

impl Type {
    pub(crate) const ERROR: Type = Type(0);
    pub(crate) const DYN: Type = Type(1);
    /// A value of which only the evaluation knows the type, like a device attribute's.
    pub(crate) const ANY: Type = Type(2);
    pub(crate) const NULL: Type = Type(3);
    pub(crate) const BOOL: Type = Type(4);
    pub(crate) const INT: Type = Type(5);
    pub(crate) const UINT: Type = Type(6);
    pub(crate) const DOUBLE: Type = Type(7);
    pub(crate) const STRING: Type = Type(8);
    pub(crate) const BYTES: Type = Type(9);
    pub(crate) const TIMESTAMP: Type = Type(10);
    pub(crate) const DURATION: Type = Type(11);
    pub(crate) const QUANTITY: Type = Type(12);
    pub(crate) const SEMVER: Type = Type(13);
    pub(crate) const URL: Type = Type(14);
    pub(crate) const FORMAT: Type = Type(15);
    pub(crate) const IP: Type = Type(16);
    pub(crate) const CIDR: Type = Type(17);

    fn composite(self) -> Option<usize> {
        self.0.checked_sub(FIRST_COMPOSITE).map(|index| index as usize)
    }

    pub(crate) fn is_dyn(self) -> bool {
        self == Type::DYN || self == Type::ANY
    }

    pub(crate) fn is_dyn_or_error(self) -> bool {
        self.is_dyn() || self == Type::ERROR
    }

    /// The name in messages and of `type(x)`, for simple types.
    fn simple_name(self) -> &'static str {
        const NAMES: [&str; 18] = [
            "!error!",
            "dyn",
            "any",
            "null_type",
            "bool",
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "timestamp",
            "duration",
            "kubernetes.Quantity",
            "kubernetes.Semver",
            "kubernetes.URL",
            "kubernetes.NamedFormat",
            "net.IP",
            "net.CIDR",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

/// What a composite type is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    List(Type),
    Map(Type, Type),
    Optional(Type),
    /// The type of a type.
    Meta(Type),
    /// A type variable: of a declaration below [`Shape::FIRST_FREE`], of one check from there on.
    Variable(u32),
    /// An object with declared fields; the number is the environment's.
    Object(u32),
}

impl Shape {
    pub(crate) const FIRST_FREE: u32 = 8;
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    shape: Shape,
    size: u32,
    /// Whether a type variable occurs in it.
    open: bool,
}

/// A table of composite types, extending a shared base.
#[derive(Debug, Clone, Default)]
pub(crate) struct Types<'b> {
    base: Option<&'b Types<'b>>,
    base_length: usize,
    entries: Vec<Entry>,
}

/// A type grew over its bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeTooLarge;

impl<'b> Types<'b> {
    pub(crate) fn extending(base: &'b Types<'b>) -> Self {
        Self { base: Some(base), base_length: base.base_length + base.entries.len(), entries: Vec::new() }
    }

    fn entry(&self, index: usize) -> &Entry {
        match (index.checked_sub(self.base_length), self.base) {
            (None, Some(base)) => base.entry(index),
            (own, _) => &self.entries[own.unwrap_or(0)],
        }
    }

    /// The composition of a type, or `None` for a simple one.
    pub(crate) fn shape(&self, kind: Type) -> Option<Shape> {
        kind.composite().map(|index| self.entry(index).shape)
    }

    fn size(&self, kind: Type) -> u32 {
        kind.composite().map_or(1, |index| self.entry(index).size)
    }

    /// Whether a type variable occurs in the type.
    pub(crate) fn is_open(&self, kind: Type) -> bool {
        kind.composite().is_some_and(|index| self.entry(index).open)
    }

    pub(crate) fn add(&mut self, shape: Shape) -> Result<Type, TypeTooLarge> {
        let (size, open) = match shape {
            Shape::List(inner) | Shape::Optional(inner) | Shape::Meta(inner) => {
                (self.size(inner) + 1, self.is_open(inner))
            }
            Shape::Map(key, value) => {
                (self.size(key) + self.size(value) + 1, self.is_open(key) || self.is_open(value))
            }
            Shape::Variable(_) => (1, true),
            Shape::Object(_) => (1, false),
        };
        if size > MAXIMUM_SIZE {
            return Err(TypeTooLarge);
        }
        self.entries.push(Entry { shape, size, open });
        Ok(Type((self.base_length + self.entries.len() - 1) as u32 + FIRST_COMPOSITE))
    }

    pub(crate) fn is_list(&self, kind: Type) -> bool {
        matches!(self.shape(kind), Some(Shape::List(_)))
    }

    /// The content of an optional, or the type itself, and whether it was one.
    pub(crate) fn unwrap_optional(&self, kind: Type) -> (Type, bool) {
        match self.shape(kind) {
            Some(Shape::Optional(inner)) => (inner, true),
            _ => (kind, false),
        }
    }

    /// Structural equality.
    pub(crate) fn same(&self, left: Type, right: Type) -> bool {
        if left == right {
            return true;
        }
        match (self.shape(left), self.shape(right)) {
            (Some(Shape::List(a)), Some(Shape::List(b)))
            | (Some(Shape::Optional(a)), Some(Shape::Optional(b)))
            | (Some(Shape::Meta(a)), Some(Shape::Meta(b))) => self.same(a, b),
            (Some(Shape::Map(ak, av)), Some(Shape::Map(bk, bv))) => self.same(ak, bk) && self.same(av, bv),
            (Some(a @ (Shape::Variable(_) | Shape::Object(_))), Some(b)) => a == b,
            _ => false,
        }
    }

    /// The type as written in messages.
    pub(crate) fn name(&self, kind: Type) -> String {
        match self.shape(kind) {
            None => kind.simple_name().to_owned(),
            Some(Shape::List(inner)) => format!("list({})", self.name(inner)),
            Some(Shape::Map(key, value)) => format!("map({}, {})", self.name(key), self.name(value)),
            Some(Shape::Optional(inner)) => format!("optional({})", self.name(inner)),
            Some(Shape::Meta(inner)) => format!("type({})", self.name(inner)),
            Some(Shape::Variable(_)) => "dyn".to_owned(),
            Some(Shape::Object(_)) => "object".to_owned(),
        }
    }
}
