//! Prepares a kernel to run: resolves names, lays out memory, and selects the operation of each instruction.

mod basic;
mod memory;
mod warp;

use crate::ast::{Function, InitialAddress, Instruction, Name, Operand, Span, Statement, Variable};
use crate::code::{
    Address, Class, Code, Constant, Global, Inst, NONE, Op, Parameter, Predicate, Program, Special,
    Src,
};
use crate::opcode::Opcode;
use crate::parser::{MAX_REGISTERS, Module};
use crate::types::{Space, Type};
use irc_diag::{Diagnostic, Sink, clip, nearest};
use std::collections::HashMap;

/// Addresses of parameters of the kernel start here, within the space of parameters.
pub(crate) const KERNEL_PARAMS: u64 = 1 << 32;
/// Bytes of local memory of a thread.
pub(crate) const MAX_FRAME: u64 = 512 << 10;

impl<'s> Module<'s> {
    /// Prepares a kernel: it and the functions that it may call are checked and compiled. Every instruction
    /// that is not supported becomes a diagnostic.
    ///
    /// `None` if there are errors, or no such kernel.
    pub fn compile(&self, kernel: &str, sink: &mut Sink) -> Option<Program> {
        let before = sink.error_count();
        let names: HashMap<&str, usize> = self.names(sink);
        let index = names.get(kernel).copied().filter(|index| self.functions[*index].entry);
        let Some(index) = index.filter(|index| self.functions[*index].body.is_some()) else {
            let mut diagnostic = Diagnostic::error(
                "ptx-kernel",
                format!("the module has no kernel `{}`", clip(kernel)),
            );
            if let Some(near) = nearest(kernel, self.kernels()) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            }
            sink.push(diagnostic);
            return None;
        };
        let cluster = self.functions[index].required_cluster.unwrap_or([1; 3]);
        if cluster != [1; 3] {
            let message = format!("clusters of {cluster:?} CTAs are not supported");
            let span = self.functions[index].name.span();
            sink.push(Diagnostic::error("ptx-unsupported", message).at(span, "this kernel"));
            return None;
        }
        let variables = self.variables.iter().enumerate();
        let variables = variables.map(|(index, variable)| (variable.name.text, index)).collect();
        let entry = &self.functions[index];
        let mut compiler = Compiler {
            module: self,
            sink,
            names,
            variables,
            numbers: HashMap::new(),
            queue: vec![],
            globals: HashMap::new(),
            shared: HashMap::new(),
            constants: HashMap::new(),
            program: Program {
                source: self.source.clone(),
                code: vec![],
                starts: vec![],
                lines: vec![],
                files: self
                    .files
                    .iter()
                    .map(|(number, name)| (*number, (*name).to_owned()))
                    .collect(),
                constants: vec![],
                functions: vec![],
                params: vec![],
                param_bytes: 0,
                globals: vec![],
                shared: 0,
                shared_names: vec![],
                max_threads: entry.max_threads,
                required_block: entry.required_block,
                uses_group: false,
            },
            scopes: vec![],
            code: Code::default(),
            labels: vec![],
            tables: vec![],
            declared: (vec![], vec![]),
            sizes: HashMap::new(),
            initialisers: vec![],
            branches: vec![],
            opcode: entry.name,
            guard: None,
            class: Class::Move,
        };
        compiler.kernel_params(entry);
        compiler.number(index);
        let mut next = 0;
        loop {
            if let Some((number, addresses)) = compiler.initialisers.pop() {
                compiler.initialise(number, &addresses);
            } else if let Some(index) = compiler.queue.get(next) {
                compiler.function(&self.functions[*index], next);
                next += 1;
            } else {
                break;
            }
        }
        let mut program = compiler.program;
        program.files.sort_unstable();
        mark_group_registers(&mut program);
        (sink.error_count() == before).then_some(program)
    }

    /// Functions by name: the definition where there are declarations as well.
    fn names(&self, sink: &mut Sink) -> HashMap<&'s str, usize> {
        let mut names: HashMap<&str, usize> = HashMap::with_capacity(self.functions.len());
        for (index, function) in self.functions.iter().enumerate() {
            let previous = names.get(function.name.text).copied();
            match previous.map(|previous| &self.functions[previous]) {
                Some(previous) if previous.body.is_some() && function.body.is_some() => {
                    let message = format!("`{}` is defined twice", clip(function.name.text));
                    let diagnostic = Diagnostic::error("ptx-repeated", message);
                    let diagnostic = diagnostic.at(function.name.span(), "again here");
                    sink.push(diagnostic.also(previous.name.span(), "it is defined here"));
                }
                Some(previous) if previous.body.is_some() => {}
                _ => {
                    names.insert(function.name.text, index);
                }
            }
        }
        names
    }
}

/// Marks instructions that use registers of a `wgmma`, which may be in flight.
fn mark_group_registers(program: &mut Program) {
    if !program.uses_group {
        return;
    }
    for index in 0..program.functions.len() {
        let first = program.functions[index].entry as usize;
        let end =
            program.functions.get(index + 1).map_or(program.code.len(), |next| next.entry as usize);
        let code = &mut program.code[first..end];
        let mut used = vec![false; program.functions[index].registers as usize];
        for inst in code.iter() {
            if let Op::Warp(_, op) = &inst.op
                && let crate::code::WarpOp::GroupMatrix(_) = **op
            {
                crate::visit::registers(&inst.op, &mut |register, _| {
                    used[register as usize] = true
                });
            }
        }
        for inst in code.iter_mut() {
            let mut uses = false;
            crate::visit::registers(&inst.op, &mut |register, _| uses |= used[register as usize]);
            inst.group_registers = uses;
        }
    }
}

/// The reason why a statement is rejected.
pub(crate) struct Error {
    code: &'static str,
    message: String,
    span: Span,
    label: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// What a name in a function is.
#[derive(Debug, Clone, Copy)]
enum Symbol {
    Register {
        index: u32,
        ty: Type,
    },
    Predicate(u32),
    Registers {
        first: u32,
        count: u32,
        ty: Type,
    },
    Predicates {
        first: u32,
        count: u32,
    },
    /// A variable of the frame: its offset.
    Frame {
        offset: u64,
    },
    /// A parameter of the kernel: its address.
    KernelParam(u64),
    /// Static shared memory: its offset.
    Shared(u64),
    Constant(Constant, Space),
    Label(u32),
    /// Labels that `brx.idx` selects from.
    Table(u32),
}

/// A value of a variable's address: as a constant, or relative to the frame.
pub(crate) enum Place {
    Constant(Src, Space),
    Frame(u64),
}

pub(crate) struct Compiler<'m, 's, 'k> {
    module: &'m Module<'s>,
    sink: &'k mut Sink,
    names: HashMap<&'s str, usize>,
    variables: HashMap<&'s str, usize>,
    /// The numbers of functions in the program.
    numbers: HashMap<usize, u32>,
    /// The functions of the program, in order.
    queue: Vec<usize>,
    globals: HashMap<usize, u32>,
    shared: HashMap<usize, u64>,
    constants: HashMap<Constant, u32>,
    program: Program,
    scopes: Vec<HashMap<&'s str, Symbol>>,
    code: Code,
    /// The instruction of each label, once it is defined.
    labels: Vec<Option<u32>>,
    tables: Vec<Vec<u32>>,
    /// The registers and predicates in the frame of those that are declared; [`NONE`] before the first use.
    declared: (Vec<u32>, Vec<u32>),
    /// The sizes of the variables of the frame, by offset.
    sizes: HashMap<u64, u64>,
    /// Initialisers of globals that are not read yet: they may name any other.
    initialisers: Vec<(u32, Vec<InitialAddress<'s>>)>,
    /// Instructions whose targets are numbers of labels.
    branches: Vec<u32>,
    opcode: Name<'s>,
    guard: Option<Predicate>,
    class: Class,
}

fn aligned(offset: u64, align: u64) -> u64 {
    offset.next_multiple_of(align.max(1))
}

impl<'s> Compiler<'_, 's, '_> {
    fn kernel_params(&mut self, kernel: &Function<'s>) {
        let mut offset = 0;
        for param in &kernel.params {
            offset = aligned(offset, param.align.into());
            let name = param.name.text.to_owned();
            self.program.params.push(Parameter { name, offset, size: param.size });
            offset += param.size;
        }
        self.program.param_bytes = offset;
    }

    /// The number of a function in the program.
    fn number(&mut self, index: usize) -> u32 {
        let next = self.queue.len() as u32;
        let number = *self.numbers.entry(index).or_insert(next);
        if number == next {
            self.queue.push(index);
        }
        number
    }

    fn push_error(&mut self, error: Error) {
        let diagnostic = Diagnostic::error(error.code, error.message);
        self.sink.push(diagnostic.at(error.span, error.label));
    }

    pub(crate) fn error<T>(
        &self,
        code: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Result<T> {
        Err(Error { code, message: message.into(), span, label: label.into() })
    }

    /// The instruction has operands or modifiers that it cannot have.
    pub(crate) fn invalid<T>(&self, why: impl Into<String>) -> Result<T> {
        let message = format!("`{}`: {}", clip(self.opcode.text), why.into());
        self.error("ptx-operand", message, self.opcode.span(), "this instruction")
    }

    pub(crate) fn unsupported<T>(&self) -> Result<T> {
        let message = format!("`{}` is not supported", clip(self.opcode.text));
        self.error("ptx-unsupported", message, self.opcode.span(), "this instruction")
    }

    fn function(&mut self, function: &Function<'s>, number: usize) {
        self.code = Code {
            name: function.name.text.to_owned(),
            entry: self.program.code.len() as u32,
            ..Code::default()
        };
        self.labels.clear();
        self.tables.clear();
        self.declared = (vec![], vec![]);
        self.sizes.clear();
        self.branches.clear();
        self.scopes = vec![HashMap::new()];
        for (index, param) in function.params.iter().enumerate() {
            let symbol = if number == 0 {
                Symbol::KernelParam(KERNEL_PARAMS + self.program.params[index].offset)
            } else {
                let offset = self.frame(param);
                self.code.params.push((offset, param.size));
                Symbol::Frame { offset }
            };
            self.declare(param.name, symbol);
        }
        for result in &function.results {
            let offset = self.frame(result);
            self.code.results.push((offset, result.size));
            self.declare(result.name, Symbol::Frame { offset });
        }
        let Some(body) = &function.body else {
            let message = format!("`{}` is called but not defined", clip(function.name.text));
            let label = "it is declared here".into();
            self.push_error(Error {
                code: "ptx-undefined",
                message,
                span: function.name.span(),
                label,
            });
            self.program.functions.push(std::mem::take(&mut self.code));
            return;
        };
        self.declare_labels(body);
        for (index, statement) in body.iter().enumerate() {
            self.statement(statement, &body[index + 1..]);
        }
        // The end of a function returns.
        self.opcode = function.name;
        self.guard = None;
        self.class = Class::Control;
        self.emit(if number == 0 { Op::Exit } else { Op::Return });
        self.resolve_branches();
        if self.code.local > MAX_FRAME {
            let message = format!(
                "{} bytes of local memory exceed the limit of {MAX_FRAME}",
                self.code.local
            );
            let label = "in this function".into();
            self.push_error(Error {
                code: "ptx-limit",
                message,
                span: function.name.span(),
                label,
            });
        }
        self.program.functions.push(std::mem::take(&mut self.code));
    }

    /// Space in the frame for a variable.
    fn frame(&mut self, variable: &Variable<'_>) -> u64 {
        let offset = aligned(self.code.local, u64::from(variable.align).max(8));
        // Empty variables have addresses of their own.
        self.code.local = offset + variable.size.max(1);
        self.sizes.insert(offset, variable.size);
        offset
    }

    /// Declares the labels of the scope that starts a list of statements.
    fn declare_labels(&mut self, statements: &[Statement<'s>]) {
        let mut depth = 0;
        for statement in statements {
            match statement {
                Statement::Open => depth += 1,
                Statement::Close if depth == 0 => break,
                Statement::Close => depth -= 1,
                Statement::Label(name) if depth == 0 => {
                    self.labels.push(None);
                    self.declare(*name, Symbol::Label(self.labels.len() as u32 - 1));
                }
                _ => {}
            }
        }
    }

    fn declare(&mut self, name: Name<'s>, symbol: Symbol) {
        let scope = self.scopes.last_mut();
        if scope.and_then(|scope| scope.insert(name.text, symbol)).is_some() {
            let message = format!("`{}` is declared twice", clip(name.text));
            self.push_error(Error {
                code: "ptx-repeated",
                message,
                span: name.span(),
                label: "again here".into(),
            });
        }
    }

    fn statement(&mut self, statement: &Statement<'s>, rest: &[Statement<'s>]) {
        match statement {
            Statement::Open => {
                self.scopes.push(HashMap::new());
                self.declare_labels(rest);
            }
            Statement::Close => {
                self.scopes.pop();
            }
            Statement::Registers { name, count, ty } => self.registers(*name, *count, *ty),
            Statement::Variable(variable) => {
                let symbol = match variable.space {
                    Space::Shared => self.shared_symbol(variable),
                    Space::Local | Space::Param => Symbol::Frame { offset: self.frame(variable) },
                    space => {
                        let number = self.add_global(variable);
                        Symbol::Constant(Constant::Global(number, 0), space)
                    }
                };
                self.declare(variable.name, symbol);
            }
            Statement::Label(name) => {
                let at = self.program.code.len() as u32;
                if let Some(Symbol::Label(label)) = self.symbol(name.text) {
                    self.labels[label as usize] = Some(at);
                }
            }
            Statement::Targets(name, targets) => {
                let labels = targets.iter().filter_map(|target| self.label(*target)).collect();
                self.tables.push(labels);
                self.declare(*name, Symbol::Table(self.tables.len() as u32 - 1));
            }
            Statement::Location(file, line, column) => {
                self.program.lines.push((self.program.code.len() as u32, *file, *line, *column));
            }
            Statement::Instruction(instruction) => {
                if let Err(error) = self.instruction(instruction) {
                    self.push_error(error);
                }
            }
        }
    }

    fn registers(&mut self, name: Name<'s>, count: Option<u32>, ty: Type) {
        let bank = if ty == Type::Pred { &mut self.declared.1 } else { &mut self.declared.0 };
        let first = bank.len() as u32;
        let end = first.saturating_add(count.unwrap_or(1));
        if end <= MAX_REGISTERS {
            bank.resize(end as usize, NONE);
        } else {
            let message = format!("more than {MAX_REGISTERS} registers");
            let label = "exceeded here".into();
            return self.push_error(Error { code: "ptx-limit", message, span: name.span(), label });
        }
        let symbol = match (ty, count) {
            (Type::B128, _) => {
                let message = "registers of 128 bits are not supported".into();
                let label = "declared here".into();
                return self.push_error(Error {
                    code: "ptx-unsupported",
                    message,
                    span: name.span(),
                    label,
                });
            }
            (Type::Pred, None) => Symbol::Predicate(first),
            (Type::Pred, Some(count)) => Symbol::Predicates { first, count },
            (_, None) => Symbol::Register { index: first, ty },
            (_, Some(count)) => Symbol::Registers { first, count, ty },
        };
        self.declare(name, symbol);
    }

    /// What a name is. Registers get their place in the frame when they are first used.
    fn symbol(&mut self, name: &str) -> Option<Symbol> {
        let place = |place: &mut u32, next: &mut u32| {
            if *place == NONE {
                *place = *next;
                *next += 1;
            }
            *place
        };
        Some(match self.declared_symbol(name)? {
            Symbol::Register { index, ty } => {
                let index = place(&mut self.declared.0[index as usize], &mut self.code.registers);
                Symbol::Register { index, ty }
            }
            Symbol::Predicate(index) => Symbol::Predicate(place(
                &mut self.declared.1[index as usize],
                &mut self.code.predicates,
            )),
            symbol => symbol,
        })
    }

    /// What a name is; registers of a range have the name of the range and their number.
    fn declared_symbol(&mut self, name: &str) -> Option<Symbol> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[prefix.len()..].parse::<u32>().ok();
        let numbered = |scope: &HashMap<&str, Symbol>, length: usize, number: u32| match scope
            .get(&name[..length])?
        {
            Symbol::Registers { first, count, ty } if number < *count => {
                Some(Symbol::Register { index: first + number, ty: *ty })
            }
            Symbol::Predicates { first, count } if number < *count => {
                Some(Symbol::Predicate(first + number))
            }
            _ => None,
        };
        for scope in self.scopes.iter().rev() {
            if let Some(symbol) = scope.get(name) {
                return Some(*symbol);
            }
            if let Some(symbol) = number.and_then(|number| numbered(scope, prefix.len(), number)) {
                return Some(symbol);
            }
            // The prefix of a range may itself end with digits.
            for length in prefix.len() + 1..name.len() {
                let number = name[length..].parse::<u32>().ok();
                if let Some(symbol) = number.and_then(|number| numbered(scope, length, number)) {
                    return Some(symbol);
                }
            }
        }
        self.module_symbol(name)
    }

    fn module_symbol(&mut self, name: &str) -> Option<Symbol> {
        let index = *self.variables.get(name)?;
        let module = self.module;
        let variable = &module.variables[index];
        Some(match variable.space {
            Space::Shared => match self.shared.get(&index) {
                Some(offset) => Symbol::Shared(*offset),
                None => {
                    let symbol = self.shared_symbol(variable);
                    if let Symbol::Shared(offset) = symbol {
                        self.shared.insert(index, offset);
                    }
                    symbol
                }
            },
            space => {
                let number = match self.globals.get(&index) {
                    Some(number) => *number,
                    None => {
                        // Registered first: its initialiser may name it.
                        self.globals.insert(index, self.program.globals.len() as u32);
                        self.add_global(variable)
                    }
                };
                Symbol::Constant(Constant::Global(number, 0), space)
            }
        })
    }

    fn shared_symbol(&mut self, variable: &Variable<'s>) -> Symbol {
        if variable.size == 0 {
            return Symbol::Constant(Constant::DynamicShared(0), Space::Shared);
        }
        let offset = aligned(self.program.shared, variable.align.into());
        self.program.shared = offset + variable.size;
        self.program.shared_names.push((variable.name.text.to_owned(), offset, variable.size));
        Symbol::Shared(offset)
    }

    fn add_global(&mut self, variable: &Variable<'s>) -> u32 {
        let number = self.program.globals.len() as u32;
        if variable.external && variable.bytes.is_empty() {
            let message = format!("`{}` is defined in another module", clip(variable.name.text));
            let label = "declared here".into();
            self.push_error(Error {
                code: "ptx-undefined",
                message,
                span: variable.name.span(),
                label,
            });
        }
        let mut bytes = variable.bytes.clone();
        bytes.resize(variable.size as usize, 0);
        self.program.globals.push(Global {
            name: variable.name.text.to_owned(),
            align: variable.align.into(),
            bytes,
            addresses: vec![],
            writable: variable.space != Space::Const,
        });
        if !variable.addresses.is_empty() {
            self.initialisers.push((number, variable.addresses.clone()));
        }
        number
    }

    fn initialise(&mut self, number: u32, addresses: &[InitialAddress<'s>]) {
        for InitialAddress { at, name, offset } in addresses {
            let constant = match self.module_symbol(name.text) {
                Some(Symbol::Constant(Constant::Global(number, _), _)) => {
                    Constant::Global(number, *offset)
                }
                Some(Symbol::Shared(base)) => Constant::Value(base.wrapping_add_signed(*offset)),
                Some(Symbol::Constant(constant, _)) => constant,
                _ => match self.names.get(name.text).copied() {
                    Some(function) => Constant::Value(function_address(self.number(function))),
                    None => {
                        let error = self.undefined(*name);
                        self.push_error(error);
                        continue;
                    }
                },
            };
            self.program.globals[number as usize].addresses.push((*at, constant));
        }
    }

    fn undefined(&self, name: Name<'_>) -> Error {
        let message = format!("`{}` is not declared", clip(name.text));
        Error { code: "ptx-undefined", message, span: name.span(), label: "used here".into() }
    }

    fn label(&mut self, name: Name<'s>) -> Option<u32> {
        match self.symbol(name.text) {
            Some(Symbol::Label(label)) => Some(label),
            _ => {
                let error = self.undefined(name);
                self.push_error(error);
                None
            }
        }
    }

    fn resolve_branches(&mut self) {
        let end = self.program.code.len() as u32 - 1;
        for at in std::mem::take(&mut self.branches) {
            let resolve =
                |label: u32| self.labels.get(label as usize).copied().flatten().unwrap_or(end);
            match &mut self.program.code[at as usize].op {
                Op::Branch(target) => *target = resolve(*target),
                Op::BranchIndexed(_, targets) => {
                    targets.iter_mut().for_each(|target| *target = resolve(*target))
                }
                _ => {}
            }
        }
    }

    /// Adds an instruction.
    pub(crate) fn emit(&mut self, op: Op) {
        let inst = Inst { guard: self.guard, class: self.class, group_registers: false, op };
        self.program.code.push(inst);
        self.program.starts.push(self.opcode.start as u32);
    }

    fn instruction(&mut self, instruction: &Instruction<'s>) -> Result<()> {
        self.opcode = instruction.opcode;
        self.guard = None;
        if let Some((name, negated)) = instruction.guard {
            self.guard = Some(Predicate { index: self.predicate_index(name)?, negated });
        }
        let op = Opcode::new(instruction.opcode.text);
        let operands = &instruction.operands[..];
        self.expect_architecture(&op)?;
        self.basic(&op, operands)
    }

    /// Checks that the architecture of the module has an instruction.
    fn expect_architecture(&mut self, op: &Opcode<'_>) -> Result<()> {
        let (Some((least, alone)), Some(target)) = (op.architecture(), self.module.architecture())
        else {
            return Ok(());
        };
        if target.0 >= least && (target.1 || !alone) {
            return Ok(());
        }
        let suffix = if alone { "a" } else { " or later" };
        let (name, target) = (clip(self.opcode.text), clip(self.module.target));
        let message =
            format!("`{name}` needs sm_{least}{suffix}, and the module is for `{target}`");
        self.error("ptx-target", message, self.opcode.span(), "this instruction")
    }

    fn predicate_index(&mut self, name: Name<'s>) -> Result<u32> {
        match self.symbol(name.text) {
            Some(Symbol::Predicate(index)) => Ok(index),
            Some(_) => {
                let message = format!("`{}` is not a predicate", clip(name.text));
                self.error("ptx-operand", message, name.span(), "expected a register of type .pred")
            }
            None => Err(self.undefined(name)),
        }
    }

    /// A predicate operand.
    pub(crate) fn predicate(&mut self, operand: &Operand<'s>) -> Result<Predicate> {
        match operand {
            Operand::Name(name, 0) => {
                Ok(Predicate { index: self.predicate_index(*name)?, negated: false })
            }
            Operand::Not(name) => {
                Ok(Predicate { index: self.predicate_index(*name)?, negated: true })
            }
            // LLVM writes -1 for true.
            Operand::Integer(value @ (0 | 1 | u64::MAX)) => {
                let index = self.temporary_predicate();
                self.unguarded(Op::PredicateConstant(index, *value != 0));
                Ok(Predicate { index, negated: false })
            }
            _ => self.invalid("expected a predicate"),
        }
    }

    /// Adds an instruction that runs whatever the guard is, for the operands of the next.
    fn unguarded(&mut self, op: Op) {
        let guard = self.guard.take();
        self.emit(op);
        self.guard = guard;
    }

    /// A destination that is a predicate; [`NONE`] for `_`.
    pub(crate) fn predicate_target(&mut self, operand: &Operand<'s>) -> Result<u32> {
        match operand {
            Operand::Sink => Ok(NONE),
            Operand::Name(name, 0) => self.predicate_index(*name),
            _ => self.invalid("expected a predicate as destination"),
        }
    }

    pub(crate) fn temporary(&mut self) -> u32 {
        self.code.registers += 1;
        self.code.registers - 1
    }

    pub(crate) fn temporary_predicate(&mut self) -> u32 {
        self.code.predicates += 1;
        self.code.predicates - 1
    }

    /// A destination and the type of its register; [`NONE`] for `_`.
    pub(crate) fn target(&mut self, operand: &Operand<'s>) -> Result<(u32, Type)> {
        match operand {
            Operand::Sink => Ok((NONE, Type::B64)),
            Operand::Name(name, 0) => match self.symbol(name.text) {
                Some(Symbol::Register { index, ty }) => Ok((index, ty)),
                Some(_) => {
                    let message = format!("`{}` is not a register", clip(name.text));
                    self.error("ptx-operand", message, name.span(), "expected a register")
                }
                None => Err(self.undefined(*name)),
            },
            _ => self.invalid("expected a register as destination"),
        }
    }

    pub(crate) fn constant(&mut self, constant: Constant) -> Src {
        let next = self.constants.len() as u32;
        let index = *self.constants.entry(constant).or_insert(next);
        if index == next {
            self.program.constants.push(constant);
        }
        Src::constant(index)
    }

    pub(crate) fn value(&mut self, value: u64) -> Src {
        self.constant(Constant::Value(value))
    }

    /// A source operand of a type.
    pub(crate) fn source(&mut self, operand: &Operand<'s>, ty: Type) -> Result<Src> {
        let bits = if ty == Type::Pred { 32 } else { ty.bits().min(64) };
        let mask = u64::MAX >> (64 - bits);
        match operand {
            Operand::Integer(value) if ty == Type::F32 => {
                Ok(self.value(u64::from((*value as i64 as f32).to_bits())))
            }
            Operand::Integer(value) if ty == Type::F64 => {
                Ok(self.value((*value as i64 as f64).to_bits()))
            }
            Operand::Integer(value) => Ok(self.value(value & mask)),
            Operand::F32(value) if ty == Type::F64 => Ok(self.value(f64::from(*value).to_bits())),
            Operand::F32(value) => Ok(self.value(value.to_bits().into())),
            Operand::F64(value) if bits == 32 => Ok(self.value((*value as f32).to_bits().into())),
            Operand::F64(value) => Ok(self.value(value.to_bits())),
            Operand::Name(name, offset) => {
                if let Some(special) = special(name.text) {
                    let register = self.temporary();
                    self.unguarded(Op::Special(register, special));
                    return Ok(Src::register(register));
                }
                match self.symbol(name.text) {
                    Some(Symbol::Register { index, ty: own }) => {
                        if own.bits() < bits && ty != Type::Pred {
                            let message = format!(
                                "`{}` has {} bits, and {bits} are read",
                                clip(name.text),
                                own.bits()
                            );
                            return self.error(
                                "ptx-operand",
                                message,
                                name.span(),
                                "this register",
                            );
                        }
                        // A wider register: the upper bits are not read.
                        if own.bits() > bits && ty != Type::Pred {
                            let narrow = self.temporary();
                            let mask = self.value(mask);
                            let and: crate::row::Binary = crate::row::binary!(|a, b| a & b);
                            self.unguarded(Op::Binary(and, narrow, Src::register(index), mask));
                            return Ok(Src::register(narrow));
                        }
                        Ok(Src::register(index))
                    }
                    Some(Symbol::Predicate(_)) => {
                        let message = format!("`{}` is a predicate", clip(name.text));
                        self.error("ptx-operand", message, name.span(), "expected a value")
                    }
                    _ => match self.place(*name, *offset)? {
                        Place::Constant(src, _) => Ok(src),
                        Place::Frame(offset) => {
                            let register = self.temporary();
                            self.unguarded(Op::FrameAddress(register, offset));
                            Ok(Src::register(register))
                        }
                    },
                }
            }
            _ => self.invalid("expected a register or a constant"),
        }
    }

    /// The address of a variable, parameter or function.
    pub(crate) fn place(&mut self, name: Name<'s>, offset: i64) -> Result<Place> {
        Ok(match self.symbol(name.text) {
            Some(Symbol::Frame { offset: base }) => Place::Frame(base.wrapping_add_signed(offset)),
            Some(Symbol::KernelParam(base)) => {
                Place::Constant(self.value(base.wrapping_add_signed(offset)), Space::Param)
            }
            Some(Symbol::Shared(base)) => {
                Place::Constant(self.value(base.wrapping_add_signed(offset)), Space::Shared)
            }
            Some(Symbol::Constant(constant, space)) => {
                let constant = match constant {
                    Constant::Global(number, _) => Constant::Global(number, offset),
                    Constant::DynamicShared(_) => Constant::DynamicShared(offset),
                    value => value,
                };
                Place::Constant(self.constant(constant), space)
            }
            Some(_) => return self.invalid(format!("`{}` has no address", clip(name.text))),
            None => match self.names.get(name.text).copied() {
                Some(function) => {
                    let number = self.number(function);
                    Place::Constant(self.value(function_address(number)), Space::Generic)
                }
                None => return Err(self.undefined(name)),
            },
        })
    }

    /// An address operand of a space.
    pub(crate) fn address(&mut self, operand: &Operand<'s>, space: Space) -> Result<Address> {
        let Operand::Address { base, offset, coordinates } = operand else {
            return self.invalid("expected an address in brackets");
        };
        if !coordinates.is_empty() {
            return self.invalid("expected an address without coordinates");
        }
        self.address_of(*base, *offset, space)
    }

    pub(crate) fn address_of(
        &mut self,
        base: Option<Name<'s>>,
        offset: i64,
        space: Space,
    ) -> Result<Address> {
        let Some(name) = base else {
            let base = self.value(0);
            return Ok(Address { space, base, offset, frame: false });
        };
        if let Some(Symbol::Register { index, .. }) = self.symbol(name.text) {
            return Ok(Address { space, base: Src::register(index), offset, frame: false });
        }
        match self.place(name, 0)? {
            Place::Constant(base, own) => {
                let space = if space == Space::Generic { own } else { space };
                Ok(Address { space, base, offset, frame: false })
            }
            Place::Frame(at) => {
                let base = self.value(at);
                Ok(Address { space: Space::Local, base, offset, frame: true })
            }
        }
    }
}

/// The addresses of functions start here.
pub(crate) const FUNCTIONS: u64 = 0x7fb0_0000_0000;

fn function_address(number: u32) -> u64 {
    FUNCTIONS + u64::from(number) * 16
}

fn special(name: &str) -> Option<Special> {
    let name = name.strip_prefix('%').or((name == "WARP_SZ").then_some(name))?;
    let axis = |suffix: &str| match suffix {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    if let Some((base, suffix)) = name.split_once('.') {
        let axis = axis(suffix)?;
        return Some(match base {
            "tid" => Special::Tid(axis),
            "ntid" => Special::Ntid(axis),
            "ctaid" => Special::Ctaid(axis),
            "nctaid" => Special::Nctaid(axis),
            // Every cluster has one CTA.
            "cluster_ctaid" => Special::Zero,
            "cluster_nctaid" => Special::One,
            "clusterid" => Special::Ctaid(axis),
            "nclusterid" => Special::Nctaid(axis),
            _ => return None,
        });
    }
    Some(match name {
        "laneid" => Special::LaneId,
        "warpid" => Special::WarpId,
        "nwarpid" => Special::WarpCount,
        "smid" => Special::SmId,
        "nsmid" => Special::SmCount,
        "gridid" => Special::GridId,
        "lanemask_eq" => Special::LaneMaskEq,
        "lanemask_le" => Special::LaneMaskLe,
        "lanemask_lt" => Special::LaneMaskLt,
        "lanemask_ge" => Special::LaneMaskGe,
        "lanemask_gt" => Special::LaneMaskGt,
        "clock" => Special::Clock,
        "clock64" => Special::Clock64,
        "globaltimer" | "globaltimer_lo" => Special::GlobalTimer,
        "globaltimer_hi" => Special::GlobalTimerHigh,
        "dynamic_smem_size" => Special::DynamicShared,
        "total_smem_size" => Special::TotalShared,
        "cluster_ctarank" | "is_explicit_cluster" => Special::Zero,
        "cluster_nctarank" => Special::One,
        _ => return None,
    })
}
