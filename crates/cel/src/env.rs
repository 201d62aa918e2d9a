//! What an expression may refer to: variables, object types, functions, and the declared sizes of values.

use crate::library::declarations::{DECLARATIONS, Function, Library};
use crate::syntax::ParseOptions;
use crate::types::{Shape, Type, Types};

/// A variable.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) kind: Type,
    /// Its declared size, for the estimator.
    pub(crate) size: Option<u32>,
}

/// An object type with its fields.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
}

/// A field of an object type.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Type,
}

/// The declared maximum size of a value and of what it contains.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeclaredSize {
    pub(crate) maximum: u64,
    pub(crate) fields: Vec<(String, u32)>,
    pub(crate) elements: Option<u32>,
    pub(crate) keys: Option<u32>,
    /// Whether any field is an element, as identifiers of device attributes are.
    pub(crate) open_fields: bool,
}

/// Which results an expression may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// `bool`, or `any` of which the evaluation decides.
    BoolOrAny,
    /// As before, or `dyn`.
    BoolOrDyn,
    Bool,
    String,
}

/// Everything the checker, the estimator and the planner ask about names.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    pub(crate) types: Types<'static>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) objects: Vec<Object>,
    pub(crate) sizes: Vec<DeclaredSize>,
    /// The size at which the estimator starts for computed values: a quirk of Kubernetes' validation rules.
    pub(crate) computed_root: Option<u32>,
    pub(crate) results: Results,
    /// The Kubernetes 1.x whose functions are available.
    pub(crate) version: u8,
    pub(crate) math: bool,
    pub(crate) list_attributes: bool,
    pub(crate) bindings: bool,
    pub(crate) maximum_length: usize,
}

/// The newest Kubernetes 1.x this crate follows.
pub(crate) const NEWEST: u8 = 36;

impl Environment {
    /// An environment without variables, with the functions of Kubernetes 1.`version`.
    pub(crate) fn new(version: u8, results: Results) -> Self {
        Self {
            types: Types::extending(&DECLARATIONS.types),
            variables: Vec::new(),
            objects: Vec::new(),
            sizes: Vec::new(),
            computed_root: None,
            results,
            version,
            math: false,
            list_attributes: false,
            bindings: true,
            maximum_length: 10 * 1024,
        }
    }

    pub(crate) fn parse_options(&self) -> ParseOptions {
        ParseOptions {
            optionals: self.version >= 28,
            two_variables: self.version >= 32,
            bindings: self.bindings,
            sort_by: self.version >= 34,
        }
    }

    pub(crate) fn add_type(&mut self, shape: Shape) -> Type {
        // A schema's types nest by object, each of which counts as one.
        self.types.add(shape).unwrap_or(Type::DYN)
    }

    pub(crate) fn add_size(&mut self, size: DeclaredSize) -> u32 {
        self.sizes.push(size);
        self.sizes.len() as u32 - 1
    }

    fn available(&self, function: &Function) -> bool {
        match function.library {
            Library::Standard => function.since <= self.version,
            Library::Math => self.math,
            Library::ListAttributes => self.list_attributes,
        }
    }

    pub(crate) fn function(&self, name: &str) -> Option<&'static Function> {
        let declarations: &'static _ = &*DECLARATIONS;
        declarations.function(name).filter(|function| self.available(function))
    }

    pub(crate) fn function_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        DECLARATIONS.function_names().filter(|name| self.function(name).is_some())
    }

    /// Whether an expression may have this type; otherwise what it must be.
    pub(crate) fn accepts(&self, kind: Type) -> Result<(), &'static str> {
        let (accepted, wanted): (&[Type], _) = match self.results {
            Results::BoolOrAny => (&[Type::BOOL, Type::ANY], "bool"),
            Results::BoolOrDyn => (&[Type::BOOL, Type::ANY, Type::DYN], "bool"),
            Results::Bool => (&[Type::BOOL], "bool"),
            Results::String => (&[Type::STRING], "string"),
        };
        if accepted.contains(&kind) { Ok(()) } else { Err(wanted) }
    }
}
