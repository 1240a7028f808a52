//! Sizes: symbols, what is known about them, and what must hold.

use super::*;
use crate::op::block_scaled_sizes;

impl Builder {
    /// Whether every symbol of a size is known in this graph or an enclosing one.
    pub fn knows(&self, dim: &Dim) -> bool {
        dim.symbols().iter().all(|name| self.symbol_is_extent(name).is_some())
    }

    /// Whether a size is nonnegative because it is a sum of products of extents.
    pub fn is_size(&self, dim: &Dim) -> bool {
        let extent = |factor: &Factor| match factor {
            Factor::Symbol(name) => self.symbol_is_extent(name) == Some(true),
            Factor::Call(..) | Factor::IfEqual(_) | Factor::Broadcast(_) => false,
        };
        dim.terms().into_iter().all(|(by, factors)| by >= 0 && factors.iter().all(extent))
    }

    /// The simplified size, given that extents are nonnegative.
    pub(super) fn simplified(&self, dim: &Dim) -> Dim {
        match dim {
            Dim::Known(_) => dim.clone(),
            Dim::Symbolic(_) => dim.simplified(&|name| self.symbol_is_extent(name) == Some(true)),
        }
    }

    /// Whether the result of an op has sizes that can be simplified, or are long.
    pub(super) fn is_wordy(&self, op: &Op, types: &[Type]) -> Built<bool> {
        let dims = op.infer_symbolic(types)?.dims;
        let is_wordy = |dim: &Dim| dim.is_longer_than(MAX_PARTS) || self.simplified(dim) != *dim;
        Ok(dims.iter().any(is_wordy))
    }

    /// The sizes of an op with a symbol for each that is long, so that sizes stay short however deep the graph
    /// is. Equal sizes have one symbol.
    pub(super) fn shortened(&mut self, compute: Compute) -> Compute {
        let long = RefCell::new(BTreeSet::new());
        let compute = compute.map_sizes(&|dim| {
            let dim = self.simplified(dim);
            if dim.is_longer_than(MAX_PARTS) {
                long.borrow_mut().insert(dim.clone());
            }
            dim
        });
        let long = long.into_inner();
        long.iter().for_each(|dim| self.shorten(dim));
        if long.is_empty() {
            return compute;
        }
        compute.map_sizes(&|dim| self.short.get(dim).unwrap_or(dim).clone())
    }

    /// Names a size: the element of a value that the program computes from it.
    fn shorten(&mut self, dim: &Dim) {
        if self.short.contains_key(dim) {
            return;
        }
        let scalar = Compute::map(vec![], Scalar::Size(dim.clone()));
        let value = self.value(Type::new(DType::I64, Vec::<Dim>::new()), Facts::default());
        self.push(NodeKind::Op(Op::compute(scalar)), vec![], vec![value]);
        self.name_long(dim, SymbolSource::Element(value, 0));
    }

    fn name_long(&mut self, dim: &Dim, source: SymbolSource) -> Dim {
        let is_extent = dim.is_extent(&|name| self.symbol_is_extent(name) == Some(true));
        let name = self.fresh_name();
        if is_extent {
            self.short_extents.insert(name.clone());
        }
        let short = Dim::symbol(&name);
        self.push_symbol(name, source);
        self.short.insert(dim.clone(), short.clone());
        short
    }

    /// The elements of a value with a symbol for each that is long.
    pub(super) fn shortened_elements(&mut self, value: ValueId, elements: &[Dim]) -> Vec<Dim> {
        let short = |(index, dim): (usize, &Dim)| {
            let dim = self.simplified(dim);
            if !dim.is_longer_than(MAX_PARTS) {
                return dim;
            }
            let known = self.short.get(&dim).cloned();
            known.unwrap_or_else(|| self.name_long(&dim, SymbolSource::Element(value, index)))
        };
        elements.iter().enumerate().map(short).collect()
    }

    pub(super) fn symbol_is_extent(&self, name: &str) -> Option<bool> {
        let own = self.own_symbol(name);
        let own = own.map(|symbol| {
            matches!(symbol.source, SymbolSource::Extent(..)) || self.short_extents.contains(name)
        });
        own.or_else(|| self.around.get(name).copied())
    }

    /// A symbol of this graph.
    fn own_symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(name).map(|place| &self.graph.symbols[*place])
    }

    fn push_symbol(&mut self, name: Arc<str>, source: SymbolSource) {
        self.symbols.insert(name.clone(), self.graph.symbols.len());
        self.graph.symbols.push(Symbol { name, source });
    }

    /// The inputs from which a value is computed.
    pub fn dependencies(&self, value: ValueId) -> Dependencies {
        dependencies::of_value(&self.graph, &|value| self.elements(value), value)
    }

    /// The inputs from which sizes are computed.
    pub fn dependencies_of_sizes(&self, sizes: &[Dim]) -> Dependencies {
        dependencies::of_sizes(&self.graph, &|value| self.elements(value), sizes)
    }

    /// The inputs from which the sizes of values are computed.
    pub fn dependencies_of_types(&self) -> Dependencies {
        let dims = self.graph.types.iter().flat_map(|ty| &ty.dims);
        let open: BTreeSet<&Dim> = dims.filter(|dim| dim.known().is_none()).collect();
        let open: Vec<Dim> = open.into_iter().cloned().collect();
        self.dependencies_of_sizes(&open)
    }

    /// Defines each new symbol by its dimension; a later occurrence of the symbol is checked.
    pub(super) fn define_extents(&mut self, value: ValueId) {
        for (axis, dim) in self.dims(value).iter().enumerate() {
            let names = dim.symbols();
            let Some(name) = names.first().filter(|name| *dim == Dim::symbol(name)) else {
                continue;
            };
            if self.symbol_is_extent(name).is_none() {
                let source = SymbolSource::Extent(value, axis);
                self.push_symbol(name.clone(), source);
            }
        }
    }

    /// A new symbol with a unique name.
    pub fn fresh_symbol(&mut self) -> Dim {
        Dim::symbol(&self.fresh_name())
    }

    pub(super) fn fresh_name(&mut self) -> Arc<str> {
        loop {
            let name: Arc<str> = format!("{}s{}", self.prefix, self.fresh).into();
            self.fresh += 1;
            if self.symbol_is_extent(&name).is_none() {
                self.named_at.insert(name.clone(), self.graph.lengths());
                break name;
            }
        }
    }

    /// The elements of a small integer value as sizes, in row-major order, if they are known from shape
    /// arithmetic.
    pub fn elements(&self, value: ValueId) -> Option<&[Dim]> {
        self.facts[value.0].elements.as_deref()
    }

    /// The elements of a small integer value as sizes: known ones, or new symbols that read them at run
    /// time.
    ///
    /// # Errors
    /// If the value is not of integers, or their number is unknown or too large.
    pub fn elements_or_symbols(&mut self, value: ValueId) -> Built<Vec<Dim>> {
        if let Some(elements) = self.elements(value) {
            return Ok(elements.to_vec());
        }
        let constant = self.facts[value.0].constant.as_ref();
        if let Some(elements) = constant.and_then(|constant| elements_of(constant, FOLDED)) {
            return Ok(elements);
        }
        let ty = self.ty(value).clone();
        let count = ty.elements().known().filter(|count| (0..=sizes::FOLLOWED).contains(count));
        let (Some(count), true) = (count, ty.dtype.is_integer()) else {
            return Err(format!("expected a few integers, found {ty}").into());
        };
        let source = |index| SymbolSource::Element(value, index);
        let elements: Vec<Dim> = (0..count as usize).map(|at| self.symbol(source(at))).collect();
        self.facts[value.0].elements = Some(elements.clone());
        Ok(elements)
    }

    /// Assumes that an extent of the last value has a fixed size, and checks this at run time. Returns
    /// the value with that type. Has no effect for an extent that depends only on extents of inputs,
    /// which callers choose.
    ///
    /// # Errors
    /// If the extent is known to differ.
    pub fn assume(&mut self, value: ValueId, axis: usize, extent: i64, message: &str) -> Built {
        let found = self.ty(value).dims[axis].clone();
        let names = found.symbols();
        if !names.iter().any(|name| self.is_computed(name)) {
            return Ok(value);
        }
        if names.iter().any(|name| self.is_given_back(name)) {
            self.require(&found, Relation::Equal, &extent.into(), message)?;
            let ty = self.ty(value).clone();
            let mut dims = ty.dims.clone();
            dims[axis] = extent.into();
            return self.compute(Compute::reshape(&ty, dims), &[value]);
        }
        let one = names.first().filter(|name| found == Dim::symbol(name));
        match one {
            Some(name) => {
                self.substitute(name, extent);
            }
            None => self.graph.restate(value, axis, &Dim::Known(extent)),
        }
        let (right, message) = (Dim::Known(extent), self.at_origin(message));
        let check = Check { left: found, right, relation: Relation::Equal, message };
        self.graph.checks.push(check);
        Ok(value)
    }

    /// Whether a symbol of this graph is the extent of a result of a choice or loop: only the type
    /// of that result defines the symbol.
    pub(super) fn is_given_back(&self, name: &Arc<str>) -> bool {
        let own = self.own_symbol(name);
        let given = own.is_some_and(|symbol| matches!(symbol.source, SymbolSource::Extent(..)));
        given && self.is_computed(name)
    }

    /// Whether a symbol of this graph is not the extent of an input.
    pub(super) fn is_computed(&self, name: &Arc<str>) -> bool {
        let own = self.own_symbol(name);
        own.is_some_and(|symbol| match symbol.source {
            SymbolSource::Element(..) => true,
            SymbolSource::Extent(from, _) => !self.inputs.contains(&from),
        })
    }

    /// Replaces a symbol by its value wherever it can occur: in what has been built since it was named, and
    /// among the elements of the value that it is read from.
    fn substitute(&mut self, name: &Arc<str>, extent: i64) {
        let known = &|other: &str| (*other == **name).then_some(Dim::Known(extent));
        let start = self.named_at.get(name).cloned().unwrap_or_default();
        let source = self.own_symbol(name).map(|symbol| match symbol.source {
            SymbolSource::Extent(value, _) | SymbolSource::Element(value, _) => value.0,
        });
        self.graph.substitute_from(&start, known);
        let (earlier, later) = self.facts.split_at_mut(start.values());
        let source = source.and_then(|source| earlier.get_mut(source));
        let facts = source.into_iter().chain(later);
        for elements in facts.filter_map(|facts| facts.elements.as_mut()) {
            elements.iter_mut().for_each(|element| *element = element.substitute(known));
        }
        self.short.values_mut().for_each(|short| *short = short.substitute(known));
    }

    /// A new symbol.
    pub fn symbol(&mut self, source: SymbolSource) -> Dim {
        let name = self.fresh_name();
        let dim = Dim::symbol(&name);
        self.push_symbol(name, source);
        dim
    }

    /// The origin of the current node, followed by a message.
    fn at_origin(&self, message: &str) -> String {
        match &self.origin {
            Some(origin) => format!("{origin}: {message}"),
            None => message.to_owned(),
        }
    }

    /// Requires a relation between two sizes, with a check at run time if it is not known statically.
    ///
    /// # Errors
    /// If the relation is known not to hold.
    pub fn require(
        &mut self,
        left: &Dim,
        relation: Relation,
        right: &Dim,
        message: &str,
    ) -> Built<()> {
        let [left, right] = [left, right].map(|dim| self.simplified(dim));
        if left == right || relation == Relation::EqualOrOne && left.is(1) {
            return Ok(());
        }
        match (left.known(), right.known()) {
            (Some(a), Some(b)) if relation.holds(a, b) => Ok(()),
            (Some(a), Some(b)) => Err(irc_tensor::check_text(message, a, b).into()),
            _ => {
                if self.required.insert((left.clone(), relation, right.clone())) {
                    let message = self.at_origin(message);
                    self.graph.checks.push(Check { left, right, relation, message });
                }
                Ok(())
            }
        }
    }

    /// Requires that a value of a type can exist at run time: no extent is negative, and if an extent
    /// is computed from elements, which may be any numbers, there is enough memory for the value.
    ///
    /// # Errors
    /// If it is known that the value cannot exist.
    pub(super) fn require_size(&mut self, ty: &Type) -> Built<()> {
        if ty.known().is_some() {
            return Ok(());
        }
        let symbols = ty.dims.iter().flat_map(Dim::symbols);
        if symbols.into_iter().any(|name| self.symbol_is_extent(&name) == Some(false)) {
            let most = i64::MAX / ty.dtype.size() as i64;
            let message = format!("expected as many elements of {ty} as fit in memory");
            self.require(&ty.elements(), Relation::AtMost, &most.into(), &message)?;
        }
        for (axis, dim) in ty.dims.iter().enumerate() {
            if !dim.is_extent(&|name| self.symbol_is_extent(name) == Some(true)) {
                let message = format!("expected dimension {axis} of {ty} not to be negative");
                self.require(&0.into(), Relation::AtMost, dim, &message)?;
            }
        }
        Ok(())
    }

    /// Requires for symbolic sizes what inference requires for known ones.
    pub(super) fn check_sizes(&mut self, op: &Op, types: &[Type]) -> Built<()> {
        match op {
            Op::Binary(_) | Op::Compare(_) | Op::Select => self.check_join(op.name(), types),
            Op::Matmul { transpose_lhs, transpose_rhs } => {
                let depth = |ty: &Type, last: bool| {
                    let back = if last { 1 } else { 2 };
                    ty.rank().checked_sub(back).map(|axis| ty.dims[axis].clone())
                };
                let (left, right) =
                    (depth(&types[0], !transpose_lhs), depth(&types[1], *transpose_rhs));
                let (Some(left), Some(right)) = (left, right) else { return Ok(()) };
                let message = "matmul: expected one contracted size";
                self.require(&left, Relation::Equal, &right, message)?;
                let batch =
                    |ty: &Type| Type::new(ty.dtype, &ty.dims[..ty.rank().saturating_sub(2)]);
                self.check_join("matmul", &[batch(&types[0]), batch(&types[1])])
            }
            Op::BlockScaledMatmul { block, .. } => {
                let message = "block_scaled_matmul: expected as many blocks as the depth needs";
                for (left, relation, right) in
                    block_scaled_sizes(types, *block).into_iter().flatten()
                {
                    self.require(&left, relation, &right, message)?;
                }
                Ok(())
            }
            Op::Conv(conv) if types[1].rank() >= 2 && types[0].rank() >= 2 => {
                let [channels, rest] = conv.agreement(&types[1]);
                let message = "conv: expected as many channels as the filters have";
                self.require(&types[0].dims[1], Relation::Equal, &channels, message)?;
                let message = "conv: expected as many filters in each group";
                self.require(&rest, Relation::Equal, &0.into(), message)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_join(&mut self, name: &str, types: &[Type]) -> Built<()> {
        let found = || types.iter().map(Type::to_string).collect::<Vec<_>>().join(" and ");
        let message = || format!("{name}: expected shapes that broadcast together");
        let joined = join(types).ok_or_else(|| format!("{}, found {}", message(), found()))?;
        for ty in types {
            let new = joined.len() - ty.rank();
            for (own, to) in ty.dims.iter().zip(&joined[new..]) {
                self.require(own, Relation::EqualOrOne, to, &message())?;
            }
        }
        Ok(())
    }
}
