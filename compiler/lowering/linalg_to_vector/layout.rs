//! Where the arguments and results of a kernel lie in memory, as its attributes say.
//!
//! `irc.strides = array<i64: ...>` on an argument or a result gives its element strides; without it
//! the elements are row-major. `irc.overwrites` on a result says that its memory may hold values
//! that the kernel reads: it is written once all of them are read.
use super::kernel::{Kernel, Origin};
use irc_mlir::{Attribute, Context, OperationLike, OperationRef, Type};
use melior::ir::{
    attribute::{DenseI64ArrayAttribute, DictionaryAttribute, StridedLayoutAttribute},
    r#type::{IntegerType, MemRefType},
};

/// The layouts of one kernel's arguments and results.
#[derive(Debug, Default)]
pub struct Layouts {
    /// Element strides of each argument that has them.
    pub arguments: Vec<Option<Vec<i64>>>,
    /// Element strides of each result that has them.
    pub results: Vec<Option<Vec<i64>>>,
    /// Whether each result may lie where the kernel reads.
    pub overwrites: Vec<bool>,
    /// Whether the kernel is given memory for what it keeps.
    pub keeps: bool,
    /// Arguments whose elements may come in another order.
    pub constants: Vec<usize>,
}

impl Layouts {
    /// Reads the attributes of a function.
    pub fn of<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Self {
        let dictionaries = |name| -> Vec<Option<DictionaryAttribute<'c>>> {
            let list = irc_mlir::read::elements(&func, name).unwrap_or_default();
            list.into_iter().map(|each| DictionaryAttribute::try_from(each).ok()).collect()
        };
        let (arguments, results) = (dictionaries("arg_attrs"), dictionaries("res_attrs"));
        let overwrites = |dictionary: &Option<DictionaryAttribute<'c>>| {
            dictionary.is_some_and(|found| found.element_by_name("irc.overwrites").is_some())
        };
        Self {
            arguments: arguments.iter().map(strides).collect(),
            overwrites: results.iter().map(overwrites).collect(),
            results: results.iter().map(strides).collect(),
            keeps: func.has_attribute("irc.keeps"),
            constants: irc_mlir::read::integers(&func, "irc.constants")
                .unwrap_or_default()
                .into_iter()
                .filter_map(|argument| usize::try_from(argument).ok())
                .collect(),
        }
    }

    /// Element strides of an argument, if it has them.
    pub fn argument(&self, index: usize) -> Option<&[i64]> {
        self.arguments.get(index)?.as_deref()
    }

    /// Element strides of a result, if it has them.
    pub fn result(&self, index: usize) -> Option<&[i64]> {
        self.results.get(index)?.as_deref()
    }

    /// Whether a result may lie where the kernel reads.
    pub fn overwrites(&self, index: usize) -> bool {
        self.overwrites.get(index).copied().unwrap_or_default()
    }

    /// The types of the lowered kernel's arguments: inputs, outputs, and what it keeps, if it does,
    /// and the workspace, of unknown size.
    pub fn signature<'c>(&self, context: &'c Context, kernel: &Kernel<'c, '_>) -> Vec<Type<'c>> {
        let mut types = vec![];
        for tensor in &kernel.tensors {
            let Origin::Argument(index) = tensor.origin else { continue };
            types.push(memref(context, tensor.element, &tensor.shape, self.argument(index)));
        }
        let results = kernel.results.iter().zip(&kernel.result_shapes).enumerate();
        for (index, (result, shape)) in results {
            let element = kernel.tensors[result.tensor].element;
            types.push(memref(context, element, shape, self.result(index)));
        }
        let byte = IntegerType::new(context, 8).into();
        let sized_later: Type = MemRefType::new(byte, &[i64::MIN], None, None).into();
        types.extend(std::iter::repeat_n(sized_later, 1 + usize::from(self.keeps)));
        types
    }
}

/// The strides of a row-major shape.
pub fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim];
    }
    strides
}

/// Elements from the first to the last of a strided box, both included.
pub fn span(shape: &[i64], strides: &[i64]) -> i64 {
    strides.iter().zip(shape).map(|(stride, size)| stride * (size - 1)).sum::<i64>() + 1
}

fn strides(dictionary: &Option<DictionaryAttribute<'_>>) -> Option<Vec<i64>> {
    let strides = dictionary.as_ref()?.element_by_name("irc.strides")?;
    let strides = DenseI64ArrayAttribute::try_from(strides).ok()?;
    (0..strides.len()).map(|dim| strides.element(dim).ok()).collect()
}

fn memref<'c>(
    context: &'c Context,
    element: Type<'c>,
    shape: &[i64],
    strides: Option<&[i64]>,
) -> Type<'c> {
    let layout = strides
        .map(|strides| -> Attribute { StridedLayoutAttribute::new(context, 0, strides).into() });
    MemRefType::new(element, shape, layout, None).into()
}
