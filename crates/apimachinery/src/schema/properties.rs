//! The named fields of a schema: a sorted list, since a process holds tens of thousands of them and changes none.

use std::ops::Index;

use super::node::Schema;

/// The fields of an object, by name and in the order of names.
#[derive(Debug, Clone, Default)]
pub struct Properties(Box<[(Box<str>, Schema)]>);

impl Properties {
    /// The schema of a field.
    pub fn get(&self, name: &str) -> Option<&Schema> {
        Some(&self.0[self.position(name)?].1)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Schema> {
        let position = self.position(name)?;
        Some(&mut self.0[position].1)
    }

    /// Whether there is a field of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and schemas.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.0.iter().map(|(name, schema)| (&**name, schema))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Schema)> {
        self.0.iter_mut().map(|(name, schema)| (&**name, schema))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Schema> {
        self.0.iter().map(|(_, schema)| schema)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name)).ok()
    }
}

impl<Name: Into<Box<str>>> FromIterator<(Name, Schema)> for Properties {
    /// Of two fields of one name the last counts.
    fn from_iter<Fields: IntoIterator<Item = (Name, Schema)>>(fields: Fields) -> Self {
        let mut fields: Vec<(Box<str>, Schema)> =
            fields.into_iter().map(|(name, schema)| (name.into(), schema)).collect();
        fields.reverse();
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        fields.dedup_by(|(later, _), (kept, _)| later == kept);
        Self(fields.into())
    }
}

impl Index<&str> for Properties {
    type Output = Schema;

    /// # Panics
    ///
    /// If there is no such field.
    fn index(&self, name: &str) -> &Schema {
        self.get(name).expect("a field that the schema has")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Kind;

    fn of(kind: Kind) -> Schema {
        Schema { kind: Some(kind), ..Schema::default() }
    }

    #[test]
    fn fields_are_found_by_name_and_listed_in_order() {
        let mut fields: Properties =
            [("b", of(Kind::String)), ("c", of(Kind::Array)), ("a", of(Kind::Object))].into_iter().collect();
        assert_eq!(fields.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(fields["c"].kind, Some(Kind::Array));
        assert!(fields.get("d").is_none() && !fields.contains_key(""));
        fields.get_mut("b").expect("a field").kind = Some(Kind::Number);
        assert_eq!(fields["b"].kind, Some(Kind::Number));
    }

    #[test]
    fn of_two_fields_of_one_name_the_last_counts() {
        let twice = [("a", of(Kind::String)), ("b", of(Kind::Object)), ("a", of(Kind::Integer))];
        let fields: Properties = twice.into_iter().collect();
        assert_eq!(fields.iter().count(), 2);
        assert_eq!(fields["a"].kind, Some(Kind::Integer));
    }
}
