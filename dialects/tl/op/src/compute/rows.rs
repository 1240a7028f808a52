//! What a [`Compute`] does with one row after another, as the steps of softmax and of normalisations do.
use super::Compute;
use crate::{DType, Dim, Scalar, Type};

/// The loops around rows and those along a row, of which neither has a known extent of 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSpace {
    /// The extents of the loops that number rows.
    pub rows: Vec<Dim>,
    /// The extents along a row.
    pub columns: Vec<Dim>,
}

/// What is computed of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// Its elements.
    Elements,
    /// A reduction of its elements.
    Reduced,
    /// One value, of others that each row has one of.
    Single,
}

/// The element that a load reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowPattern {
    /// That at the row and the column.
    Element,
    /// That of the column, in every row.
    Column,
    /// That of the row.
    Row,
    /// Another.
    Other,
}

impl RowForm {
    /// How other steps read what is computed.
    pub fn pattern(self) -> RowPattern {
        match self {
            Self::Elements => RowPattern::Element,
            Self::Reduced | Self::Single => RowPattern::Row,
        }
    }
}

impl RowSpace {
    /// The rows that a reduction reduces; `None` for maps.
    pub fn of(compute: &Compute) -> Option<Self> {
        let reduction = compute.reduction.as_ref()?;
        let [rows, columns] =
            [&compute.dims, &reduction.dims].map(|dims| long(dims).cloned().collect());
        Some(Self { rows, columns })
    }

    /// What loops compute of a row, if their extents are those of the rows.
    pub fn form(&self, compute: &Compute) -> Option<RowForm> {
        let dims = || long(&compute.dims);
        match &compute.reduction {
            Some(reduction) => (dims().eq(&self.rows) && long(&reduction.dims).eq(&self.columns))
                .then_some(RowForm::Reduced),
            None if dims().eq(self.rows.iter().chain(&self.columns)) => Some(RowForm::Elements),
            None => dims().eq(&self.rows).then_some(RowForm::Single),
        }
    }

    /// The loops that number rows, and those along a row.
    pub fn loops(&self, compute: &Compute) -> (Vec<usize>, Vec<usize>) {
        let mut loops = long_loops(compute);
        let rows = loops.by_ref().take(self.rows.len()).collect();
        (rows, loops.collect())
    }

    /// The element of an operand that loops of a form read at an index.
    pub fn pattern(
        &self,
        (compute, form): (&Compute, RowForm),
        ty: &Type,
        at: &[Scalar],
    ) -> RowPattern {
        let count = self.rows.len();
        let own = || ty.dims.iter().zip(at).filter(|(dim, _)| !dim.is(1));
        // Whether it is read at the loops from one number to another, along all their extents.
        let is_at = |from: usize, to: usize| {
            let dims = self.rows.iter().chain(&self.columns).skip(from).take(to - from);
            let loops = long_loops(compute).skip(from).take(to - from);
            own().map(|(dim, _)| dim).eq(dims)
                && own().zip(loops).all(|((_, index), loop_)| *index == Scalar::Loop(loop_))
        };
        let all = count + self.columns.len();
        let has_columns = form != RowForm::Single;
        if has_columns && is_at(0, all) {
            RowPattern::Element
        } else if is_at(0, count) {
            RowPattern::Row
        } else if has_columns && is_at(count, all) {
            RowPattern::Column
        } else {
            RowPattern::Other
        }
    }

    /// What loops over operands of these types compute of a row, if vectors can hold adjacent elements of it: functions of
    /// single-precision elements at the row and the column, or at the column, and of what is the same in all columns.
    pub fn vector_form(&self, compute: &Compute, types: &[Type]) -> Option<RowForm> {
        let form = self.form(compute)?;
        let single = compute.body.dtype(types, compute.loops()).ok()? == DType::F32;
        let (_, columns) = self.loops(compute);
        let mut fits = single && !compute.dims.iter().any(|dim| dim.is(0));
        let mut reads_rows = form != RowForm::Reduced;
        let varies = |part: &Scalar| match part {
            Scalar::Load(operand, at) => matches!(
                self.pattern((compute, form), &types[*operand], at),
                RowPattern::Element | RowPattern::Column
            ),
            Scalar::Loop(loop_) => form != RowForm::Single && columns.contains(loop_),
            _ => false,
        };
        compute.body.walk(&mut |part| {
            if let Scalar::Load(operand, _) = part
                && varies(part)
            {
                fits &= types[*operand].dtype == DType::F32;
                reads_rows = true;
            }
        });
        (fits && reads_rows && compute.body.is_lanewise(&varies)).then_some(form)
    }
}

/// The loops of extents other than 1, also those of a reduction.
fn long_loops(compute: &Compute) -> impl Iterator<Item = usize> {
    let reduced = compute.reduction.iter().flat_map(|it| &it.dims);
    let all = compute.dims.iter().chain(reduced).enumerate();
    all.filter(|(_, dim)| !dim.is(1)).map(|(it, _)| it)
}

/// The extents other than 1.
fn long(dims: &[Dim]) -> impl Iterator<Item = &Dim> {
    dims.iter().filter(|dim| !dim.is(1))
}
