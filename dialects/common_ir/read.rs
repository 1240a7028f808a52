//! Helpers to build and read attributes that several parts of the dialect share.
pub(super) use crate::attributes::integer;
use crate::attributes::integers;
use irc_common_format::model::{Entries, Opset};
use irc_mlir::{
    Attribute, Context, OperationRef, attr,
    melior::ir::{Identifier, attribute::DictionaryAttribute},
    read, string_value,
};

/// A builder of a dictionary.
pub(super) struct Dictionary<'c> {
    context: &'c Context,
    entries: Vec<(Identifier<'c>, Attribute<'c>)>,
}

impl<'c> Dictionary<'c> {
    pub fn new(context: &'c Context) -> Self {
        Self { context, entries: vec![] }
    }

    pub fn set(&mut self, name: &str, value: Attribute<'c>) {
        self.entries.push((Identifier::new(self.context, name), value));
    }

    pub fn maybe(&mut self, name: &str, value: Option<Attribute<'c>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    pub fn text(&mut self, name: &str, value: Option<&String>) {
        self.maybe(name, value.map(|text| attr::string(self.context, text)));
    }

    pub fn finish(self) -> Attribute<'c> {
        DictionaryAttribute::new(self.context, &self.entries).into()
    }
}

/// A reader of a dictionary.
#[derive(Clone, Copy)]
pub(super) struct Fields<'c>(DictionaryAttribute<'c>);

impl<'c> Fields<'c> {
    /// # Errors
    /// The attribute is not a dictionary, or has an entry of another name.
    pub fn of(attribute: Attribute<'c>, what: &str, known: &[&str]) -> Result<Self, String> {
        let dictionary = DictionaryAttribute::try_from(attribute)
            .map_err(|_| format!("expected a dictionary for {what}, found {attribute}"))?;
        for index in 0..dictionary.len() {
            let (name, _) = dictionary.element(index).map_err(|error| error.to_string())?;
            let name = name.as_string_ref().as_str().unwrap_or_default().to_owned();
            if !known.contains(&name.as_str()) {
                let known = known.join(", ");
                return Err(format!("{what} has no entry '{name}'; it has {known}"));
            }
        }
        Ok(Self(dictionary))
    }

    pub fn get(self, name: &str) -> Option<Attribute<'c>> {
        self.0.element_by_name(name)
    }

    /// A text, if it is present.
    ///
    /// # Errors
    /// Another attribute.
    pub fn text(self, name: &str) -> Result<Option<String>, String> {
        self.get(name).map(|attribute| text(attribute, name)).transpose()
    }

    /// A list; empty if it is absent.
    ///
    /// # Errors
    /// Another attribute.
    pub fn list(self, name: &str) -> Result<Vec<Attribute<'c>>, String> {
        self.get(name).map_or(Ok(vec![]), |attribute| list(attribute, name))
    }

    /// Entries of keys and values; empty if they are absent.
    ///
    /// # Errors
    /// Another attribute.
    pub fn entries(self, name: &str) -> Result<Entries, String> {
        self.get(name).map_or(Ok(vec![]), |attribute| entries_of(attribute, name))
    }
}

/// # Errors
/// The attribute is not a string.
pub(super) fn text(attribute: Attribute<'_>, name: &str) -> Result<String, String> {
    string_value(attribute)
        .ok_or_else(|| format!("expected a string for '{name}', found {attribute}"))
}

/// # Errors
/// The attribute is not an array.
pub(super) fn list<'c>(attribute: Attribute<'c>, name: &str) -> Result<Vec<Attribute<'c>>, String> {
    read::array_elements(attribute)
        .ok_or_else(|| format!("expected an array for '{name}', found {attribute}"))
}

/// # Errors
/// The attribute is not an integer.
pub(super) fn number(attribute: Attribute<'_>, name: &str) -> Result<i64, String> {
    integer(attribute).ok_or_else(|| format!("expected an integer for '{name}', found {attribute}"))
}

/// # Errors
/// The attribute is not `array<i64: ...>`.
pub(super) fn numbers(attribute: Attribute<'_>, name: &str) -> Result<Vec<i64>, String> {
    integers(attribute)
        .ok_or_else(|| format!("expected array<i64> for '{name}', found {attribute}"))
}

/// A text attribute of an op, if it is present.
///
/// # Errors
/// Another attribute.
pub(super) fn op_text(op: OperationRef<'_, '_>, name: &str) -> Result<Option<String>, String> {
    read::attribute(&op, name).map(|attribute| text(attribute, name)).transpose()
}

/// An integer attribute of an op, if it is present.
///
/// # Errors
/// Another attribute.
pub(super) fn op_number(op: OperationRef<'_, '_>, name: &str) -> Result<Option<i64>, String> {
    read::attribute(&op, name).map(|attribute| number(attribute, name)).transpose()
}

/// The elements of an array attribute of an op; empty if it is absent.
///
/// # Errors
/// Another attribute.
pub(super) fn op_list<'c>(
    op: OperationRef<'c, '_>,
    name: &str,
) -> Result<Vec<Attribute<'c>>, String> {
    read::attribute(&op, name).map_or(Ok(vec![]), |attribute| list(attribute, name))
}

/// The texts of an array attribute of an op; empty if it is absent.
///
/// # Errors
/// Another attribute.
pub(super) fn op_texts(op: OperationRef<'_, '_>, name: &str) -> Result<Vec<String>, String> {
    op_list(op, name)?.into_iter().map(|attribute| text(attribute, name)).collect()
}

/// The entries of keys and values in an attribute of an op.
///
/// # Errors
/// Another attribute.
pub(super) fn op_entries(op: OperationRef<'_, '_>, name: &str) -> Result<Entries, String> {
    read::attribute(&op, name).map_or(Ok(vec![]), |attribute| entries_of(attribute, name))
}

/// The operator sets in an attribute of an op.
///
/// # Errors
/// Another attribute.
pub(super) fn op_opsets(op: OperationRef<'_, '_>) -> Result<Vec<Opset>, String> {
    let opset = |attribute| {
        let fields = Fields::of(attribute, "an operator set", &["domain", "version"])?;
        let version = fields.get("version").and_then(integer);
        let version = version.ok_or("expected a version of an operator set")?;
        Ok(Opset { domain: fields.text("domain")?, version })
    };
    op_list(op, "opsets")?.into_iter().map(opset).collect()
}

/// `[["key", "value"], ...]`; `None` for no entries.
pub(super) fn entries<'c>(context: &'c Context, entries: &Entries) -> Option<Attribute<'c>> {
    let pair = |(key, value): &(String, String)| {
        attr::array(context, &[attr::string(context, key), attr::string(context, value)])
    };
    some_array(context, entries.iter().map(pair).collect())
}

fn entries_of(attribute: Attribute<'_>, name: &str) -> Result<Entries, String> {
    let pair = |attribute| {
        let texts: Vec<_> = list(attribute, name)?
            .into_iter()
            .map(|part| text(part, name))
            .collect::<Result<_, _>>()?;
        let [key, value] = texts
            .try_into()
            .map_err(|_| format!("expected a key and a value in '{name}', found {attribute}"))?;
        Ok((key, value))
    };
    list(attribute, name)?.into_iter().map(pair).collect()
}

/// Operator sets; `None` if there are none.
pub(super) fn opsets<'c>(context: &'c Context, opsets: &[Opset]) -> Option<Attribute<'c>> {
    let one = |opset: &Opset| {
        let mut fields = Dictionary::new(context);
        fields.text("domain", opset.domain.as_ref());
        fields.set("version", attr::i64(context, opset.version));
        fields.finish()
    };
    some_array(context, opsets.iter().map(one).collect())
}

/// An array of texts; `None` if there are none.
pub(super) fn texts<'c>(context: &'c Context, texts: &[String]) -> Option<Attribute<'c>> {
    some_array(context, texts.iter().map(|text| attr::string(context, text)).collect())
}

/// An array; `None` for an empty one.
pub(super) fn some_array<'c>(
    context: &'c Context,
    elements: Vec<Attribute<'c>>,
) -> Option<Attribute<'c>> {
    (!elements.is_empty()).then(|| attr::array(context, &elements))
}
