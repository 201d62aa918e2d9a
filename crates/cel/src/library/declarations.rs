//! Which functions exist, with their overloads, cost rules and the Kubernetes version that introduced them.
//!
//! Signatures are written in a small notation, one letter per simple type: `b` bool, `i` int, `u` uint,
//! `d` double, `s` string, `y` bytes, `t` timestamp, `D` duration, `q` Quantity, `v` Semver, `U` URL,
//! `F` named format, `I` IP, `C` CIDR, `*` dyn, `A` `B` type variables, and `Lx`, `Mxy`, `Ox`, `Tx` for list,
//! map, optional and type of type. `.` before the arguments marks a member function.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::named_format::NamedFormat;
use crate::types::{Shape, Type, Types};

use super::table;

/// An implementation; each handles all its overloads by the types of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    // Planned as control flow, never called.
    And,
    Or,
    Conditional,
    Index,
    OptionalIndex,
    OptionalSelect,
    OptionalOr,
    OptionalOrValue,
    // Operators.
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Not,
    Negate,
    NotStrictlyFalse,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    In,
    // Standard functions.
    Size,
    TypeOf,
    Bool,
    Bytes,
    Double,
    Duration,
    Dyn,
    Int,
    String,
    Timestamp,
    Uint,
    Contains,
    EndsWith,
    StartsWith,
    Matches,
    FullYear,
    Month,
    DayOfYear,
    DayOfMonth,
    Date,
    DayOfWeek,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
    // Optionals.
    OptionalOf,
    OptionalOfNonZero,
    OptionalNone,
    OptionalValue,
    OptionalHasValue,
    OptionalUnwrap,
    First,
    Last,
    // Strings.
    CharAt,
    IndexOf,
    LastIndexOf,
    LowerAscii,
    UpperAscii,
    Replace,
    Split,
    Substring,
    Trim,
    Join,
    Format,
    Quote,
    // Regular expressions.
    Find,
    FindAll,
    // Lists.
    IsSorted,
    Sum,
    SumUint,
    SumDouble,
    SumDuration,
    Min,
    Max,
    Distinct,
    Flatten,
    Reverse,
    Slice,
    Sort,
    SortByKeys,
    Range,
    MapInsert,
    // Sets.
    SetsContains,
    SetsEquivalent,
    SetsIntersects,
    // Quantities and versions.
    Quantity,
    IsQuantity,
    Sign,
    IsGreaterThan,
    IsLessThan,
    CompareTo,
    IsInteger,
    AsInteger,
    AsApproximateFloat,
    QuantityAdd,
    QuantitySub,
    Semver,
    IsSemver,
    Major,
    Minor,
    Patch,
    // Addresses.
    Ip,
    IsIp,
    IpIsCanonical,
    Family,
    IsUnspecified,
    IsLoopback,
    IsLinkLocalMulticast,
    IsLinkLocalUnicast,
    IsGlobalUnicast,
    Cidr,
    IsCidr,
    ContainsIp,
    ContainsCidr,
    CidrIp,
    PrefixLength,
    Masked,
    // URLs.
    Url,
    IsUrl,
    UrlScheme,
    UrlHost,
    UrlHostname,
    UrlPort,
    UrlEscapedPath,
    UrlQuery,
    NamedFormat(NamedFormat),
    FormatNamed,
    Validate,
    // Device attributes.
    Includes,
    // Numbers.
    Greatest,
    Least,
    Ceil,
    Floor,
    Round,
    Trunc,
    Abs,
    SignOf,
    IsNan,
    IsInf,
    IsFinite,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    BitShiftLeft,
    BitShiftRight,
    Sqrt,
}

impl Op {
    /// Whether a call with constant operands is made while compiling: parsers, tests and conversions.
    pub(crate) fn folds(self) -> bool {
        matches!(
            self,
            Op::Bool
                | Op::Bytes
                | Op::Double
                | Op::Duration
                | Op::Dyn
                | Op::Int
                | Op::String
                | Op::Timestamp
                | Op::TypeOf
                | Op::Uint
                | Op::Quantity
                | Op::IsQuantity
                | Op::Semver
                | Op::IsSemver
                | Op::Ip
                | Op::IsIp
                | Op::IpIsCanonical
                | Op::Cidr
                | Op::IsCidr
                | Op::Url
                | Op::IsUrl
        )
    }
}

/// How a call is metered and estimated. Names follow what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// One unit.
    One,
    /// The estimator's name for `a && b` and `a || b`.
    Logic,
    Conditional,
    /// The shorter of two operands is traversed.
    Comparison,
    /// `==`: as a comparison, but one unit for Kubernetes' own types.
    Equality,
    InList,
    IndexList,
    IndexMap,
    AddText,
    AddList,
    /// `startsWith`, `endsWith`: the receiver is traversed (estimated by the argument).
    Affix,
    Contains,
    Matches,
    StringToBytes,
    BytesToString,
    Quote,
    FormatText,
    Dyn,
    /// The elements of a list, or the bytes of a string, are traversed once.
    Traverse,
    /// The text is traversed once and the result has its size.
    SameText,
    Replace,
    Split,
    Join,
    Find,
    /// A global function parses its first argument.
    Parse,
    /// As `Parse`, with the result's size: `url`.
    ParseSized,
    ParseTwice,
    ContainsIp,
    ContainsIpText,
    ContainsCidr,
    ContainsCidrText,
    Validate,
    Slice,
    Flatten,
    Range,
    Reverse,
    Distinct,
    Sort {
        text: bool,
    },
    SortByKeys {
        text: bool,
    },
    /// `sets.*`: the product of both sizes, times the factor.
    Sets(u8),
    Includes,
}

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) member: bool,
    pub(crate) arguments: Vec<Type>,
    pub(crate) result: Type,
    /// How many type variables the signature has.
    pub(crate) variables: u32,
    pub(crate) op: Op,
    pub(crate) cost: Cost,
}

/// A function with all its overloads.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
    /// The implementation that picks the overload by the arguments.
    pub(crate) op: Op,
    /// The cost where the checker left several overloads open.
    pub(crate) open_cost: Cost,
    /// Whether such an open call stops evaluating arguments at the first error.
    pub(crate) dispatched: bool,
    /// The Kubernetes 1.x that introduced it.
    pub(crate) since: u8,
    pub(crate) library: Library,
}

/// A group of functions that is switched as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Standard,
    Math,
    /// `includes`, with the feature gate `DRAListTypeAttributes`.
    ListAttributes,
}

/// Every function, and the types their signatures use.
#[derive(Debug)]
pub(crate) struct Declarations {
    pub(crate) types: Types<'static>,
    functions: HashMap<&'static str, Function>,
    /// The type names an expression can use as values, with the type of that value.
    type_names: HashMap<&'static str, Type>,
}

/// The table shared by all environments.
pub(crate) static DECLARATIONS: LazyLock<Declarations> = LazyLock::new(Declarations::build);

impl Declarations {
    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    pub(crate) fn function_names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.keys().copied()
    }

    pub(crate) fn type_name(&self, name: &str) -> Option<(&'static str, Type)> {
        self.type_names.get_key_value(name).map(|(name, kind)| (*name, *kind))
    }

    fn build() -> Self {
        let mut notation = Notation::default();
        let mut functions: HashMap<&'static str, Function> = HashMap::new();
        for row in table::rows() {
            let function = functions.entry(row.name).or_insert_with(|| Function {
                name: row.name,
                overloads: Vec::new(),
                op: row.op,
                open_cost: row.open_cost,
                dispatched: row.dispatched,
                since: row.since,
                library: row.library,
            });
            function.overloads.push(notation.overload(&row));
        }
        let type_names = [
            ("bool", "b"),
            ("bytes", "y"),
            ("double", "d"),
            ("google.protobuf.Duration", "D"),
            ("int", "i"),
            ("list", "LA"),
            ("map", "MAB"),
            ("null_type", "n"),
            ("string", "s"),
            ("google.protobuf.Timestamp", "t"),
            ("uint", "u"),
            ("optional_type", "OA"),
            ("net.IP", "I"),
            ("net.CIDR", "C"),
            ("type", "TA"),
        ]
        .into_iter()
        .map(|(name, signature)| {
            let inner = notation.read(signature.as_bytes(), &mut 0);
            (name, notation.add(Shape::Meta(inner)))
        })
        .collect();
        Self { types: notation.types, functions, type_names }
    }
}

/// A line of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) signature: &'static str,
    pub(super) op: Op,
    pub(super) cost: Cost,
    pub(super) open_cost: Cost,
    pub(super) dispatched: bool,
    pub(super) since: u8,
    pub(super) library: Library,
}

/// Reads the notation of signatures.
#[derive(Default)]
struct Notation {
    types: Types<'static>,
}

impl Notation {
    fn add(&mut self, shape: Shape) -> Type {
        self.types.add(shape).expect("declared types are small")
    }

    fn overload(&mut self, row: &Row) -> Overload {
        let (arguments, result) = row.signature.split_once(" -> ").expect("a signature has a result");
        let member = arguments.starts_with('.');
        let arguments = arguments.trim_start_matches('.').as_bytes();
        let mut at = 0;
        let mut read = Vec::new();
        while at < arguments.len() {
            read.push(self.read(arguments, &mut at));
        }
        let variables = if row.signature.contains('B') { 2 } else { u32::from(row.signature.contains('A')) };
        Overload {
            member,
            arguments: read,
            result: self.read(result.as_bytes(), &mut 0),
            variables,
            op: row.op,
            cost: row.cost,
        }
    }

    fn read(&mut self, text: &[u8], at: &mut usize) -> Type {
        let letter = text[*at];
        *at += 1;
        match letter {
            b'b' => Type::BOOL,
            b'i' => Type::INT,
            b'u' => Type::UINT,
            b'd' => Type::DOUBLE,
            b's' => Type::STRING,
            b'y' => Type::BYTES,
            b't' => Type::TIMESTAMP,
            b'D' => Type::DURATION,
            b'q' => Type::QUANTITY,
            b'v' => Type::SEMVER,
            b'U' => Type::URL,
            b'F' => Type::FORMAT,
            b'I' => Type::IP,
            b'C' => Type::CIDR,
            b'n' => Type::NULL,
            b'*' => Type::DYN,
            b'A' => self.add(Shape::Variable(0)),
            b'B' => self.add(Shape::Variable(1)),
            b'L' => {
                let inner = self.read(text, at);
                self.add(Shape::List(inner))
            }
            b'O' => {
                let inner = self.read(text, at);
                self.add(Shape::Optional(inner))
            }
            b'T' => {
                let inner = self.read(text, at);
                self.add(Shape::Meta(inner))
            }
            b'M' => {
                let key = self.read(text, at);
                let value = self.read(text, at);
                self.add(Shape::Map(key, value))
            }
            other => unreachable!("signature letter {other:?} is not in the table of letters"),
        }
    }
}
