//! Reads PTX text as a [`Module`].

use crate::ast::{Function, InitialAddress, Instruction, Name, Operand, Span, Statement, Variable};
use crate::lexer::{self, Kind, Number, Token, read_number};
use crate::types::{Space, Type};
use irc_diag::{Diagnostic, Sink, Source, clip};
use std::collections::HashMap;

/// Nesting of braces, lists and vectors beyond which a module is rejected.
const MAX_DEPTH: usize = 64;
/// Registers of one declaration beyond which it is rejected.
pub(crate) const MAX_REGISTERS: u32 = 1 << 20;
/// Bytes of a variable beyond which it is rejected.
const MAX_VARIABLE: u64 = 1 << 30;

/// A module of PTX as written.
#[derive(Debug)]
pub struct Module<'s> {
    /// The text.
    pub(crate) source: &'s Source,
    /// The version of the PTX ISA: major, minor.
    pub version: (u32, u32),
    /// The architecture, such as `sm_90a`.
    pub target: &'s str,
    /// Source files that `.loc` refers to, by number.
    pub(crate) files: HashMap<u32, &'s str>,
    /// Variables outside of functions.
    pub(crate) variables: Vec<Variable<'s>>,
    /// Kernels and functions, in order.
    pub(crate) functions: Vec<Function<'s>>,
}

impl<'s> Module<'s> {
    /// Reads a module. Every syntax error and repeated definition becomes a diagnostic.
    ///
    /// `None` if there are errors. Instructions are checked by [`Module::compile`].
    pub fn parse(source: &'s Source, sink: &mut Sink) -> Option<Module<'s>> {
        let before = sink.error_count();
        let tokens = lexer::tokens(source, sink);
        let module = Module {
            source,
            version: (0, 0),
            target: "",
            files: HashMap::new(),
            variables: vec![],
            functions: vec![],
        };
        let mut parser = Parser { text: source.text(), tokens, at: 0, module, sink };
        parser.module();
        let module = parser.module;
        let missing = module.version == (0, 0) && sink.error_count() == before;
        if missing {
            let message = "a module starts with `.version`, which is missing";
            sink.push(Diagnostic::error("ptx-syntax", message).at(0..0, "here"));
        }
        (sink.error_count() == before).then_some(module)
    }

    /// The number of the architecture, such as 90 of `sm_90a`, and whether the code is for it alone. `None` if the module
    /// has none.
    pub(crate) fn architecture(&self) -> Option<(u32, bool)> {
        let number = self.target.strip_prefix("sm_")?;
        let digits = number.trim_end_matches(|it: char| it.is_ascii_lowercase());
        Some((digits.parse().ok()?, digits.len() < number.len()))
    }

    /// The names of the kernels, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &'s str> {
        let kernels =
            self.functions.iter().filter(|function| function.entry && function.body.is_some());
        kernels.map(|function| function.name.text)
    }
}

/// The reason why a statement is rejected: what was expected, and where.
struct Error {
    expected: String,
    code: &'static str,
    span: Span,
}

type Result<T> = std::result::Result<T, Error>;

struct Parser<'s, 'k> {
    text: &'s str,
    tokens: Vec<Token>,
    at: usize,
    module: Module<'s>,
    sink: &'k mut Sink,
}

impl<'s> Parser<'s, '_> {
    fn peek(&self) -> Token {
        self.tokens[self.at]
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at];
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn slice(&self, token: Token) -> &'s str {
        self.text.get(token.span()).unwrap_or("")
    }

    fn peek_word(&self) -> Option<&'s str> {
        (self.peek().kind == Kind::Word).then(|| self.slice(self.peek()))
    }

    fn is(&self, mark: u8) -> bool {
        self.peek().kind == Kind::Mark(mark)
    }

    fn take(&mut self, mark: u8) -> bool {
        let is = self.is(mark);
        if is {
            self.next();
        }
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.peek_word() == Some(word);
        if is {
            self.next();
        }
        is
    }

    fn unexpected<T>(&self, expected: impl Into<String>) -> Result<T> {
        Err(Error { expected: expected.into(), code: "ptx-syntax", span: self.peek().span() })
    }

    fn expect(&mut self, mark: u8) -> Result<()> {
        if self.take(mark) {
            Ok(())
        } else {
            self.unexpected(format!("expected `{}`", mark as char))
        }
    }

    fn name(&mut self) -> Result<Name<'s>> {
        match self.peek_word() {
            Some(text) => Ok(Name { text, start: self.next().start as usize }),
            None => self.unexpected("expected a name"),
        }
    }

    fn number(&mut self) -> Result<Number> {
        let token = self.peek();
        if token.kind != Kind::Number {
            return self.unexpected("expected a number");
        }
        let Some(number) = read_number(self.slice(token)) else {
            return self.unexpected("expected a number of at most 64 bits");
        };
        self.next();
        Ok(number)
    }

    fn integer(&mut self) -> Result<u64> {
        let before = self.at;
        match self.number()? {
            Number::Integer(value) => Ok(value),
            _ => {
                self.at = before;
                self.unexpected("expected an integer")
            }
        }
    }

    fn small(&mut self) -> Result<u32> {
        let before = self.at;
        let value = self.integer()?;
        u32::try_from(value).or_else(|_| {
            self.at = before;
            self.unexpected("expected an integer of 32 bits")
        })
    }

    /// `[-] integer`, as 64 bits.
    fn signed(&mut self) -> Result<i64> {
        let negative = self.take(b'-');
        let value = self.integer()? as i64;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    /// Reports an error, and continues after the statement.
    fn recover(&mut self, error: Error, from: usize) {
        let start = error.span.start;
        let shown = self.text.get(error.span.clone()).unwrap_or("");
        let label = if shown.is_empty() {
            "the text ends here".into()
        } else {
            format!("`{}`", clip(shown))
        };
        self.sink
            .push(Diagnostic::error(error.code, error.expected).at(start..error.span.end, label));
        self.at = self.at.max(from);
        loop {
            match self.peek().kind {
                Kind::End | Kind::Mark(b'}') => break,
                Kind::Mark(b';') => {
                    self.next();
                    break;
                }
                _ => {
                    self.next();
                }
            }
        }
    }

    fn module(&mut self) {
        while self.peek().kind != Kind::End {
            let from = self.at;
            if let Err(error) = self.item() {
                self.recover(error, from);
                self.take(b'}');
            }
            if self.at == from {
                self.next();
            }
        }
    }

    fn item(&mut self) -> Result<()> {
        let Some(word) = self.peek_word() else {
            return self.unexpected("expected a directive of a module");
        };
        match word {
            ".version" => {
                self.next();
                let token = self.peek();
                let parts = self.slice(token).split_once('.');
                let version = parts
                    .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
                let Some(version) = version.filter(|version| *version != (0, 0)) else {
                    return self.unexpected("expected a version, such as 8.0");
                };
                self.next();
                self.module.version = version;
            }
            ".target" => {
                self.next();
                self.module.target = self.name()?.text;
                while self.take(b',') {
                    self.name()?;
                }
            }
            ".address_size" => {
                self.next();
                if self.peek().kind != Kind::Number || self.slice(self.peek()) != "64" {
                    return self.unexpected("expected 64: addresses of 32 bits are not supported");
                }
                self.next();
            }
            ".file" => self.file()?,
            ".section" => self.section()?,
            ".pragma" => self.pragma()?,
            ".extern" | ".visible" | ".weak" | ".common" => {
                self.next();
                self.definition(word == ".extern")?;
            }
            ".alias" => {
                return Err(Error {
                    expected: "`.alias` is not supported".into(),
                    code: "ptx-unsupported",
                    span: self.peek().span(),
                });
            }
            _ => self.definition(false)?,
        }
        Ok(())
    }

    fn file(&mut self) -> Result<()> {
        self.next();
        let number = self.small()?;
        if self.peek().kind != Kind::String {
            return self.unexpected("expected the name of a file");
        }
        let token = self.next();
        self.module.files.insert(number, self.slice(token).trim_matches('"'));
        while self.take(b',') {
            self.integer()?;
        }
        Ok(())
    }

    /// Debug information, which is not read.
    fn section(&mut self) -> Result<()> {
        self.next();
        self.name()?;
        self.expect(b'{')?;
        let mut depth = 1;
        while depth > 0 {
            match self.peek().kind {
                Kind::End => return self.unexpected("expected `}` at the end of the section"),
                Kind::Mark(b'{') => depth += 1,
                Kind::Mark(b'}') => depth -= 1,
                _ => {}
            }
            self.next();
        }
        Ok(())
    }

    fn pragma(&mut self) -> Result<()> {
        self.next();
        while self.peek().kind == Kind::String {
            self.next();
            self.take(b',');
        }
        self.expect(b';')
    }

    fn definition(&mut self, external: bool) -> Result<()> {
        match self.peek_word() {
            Some(".entry") => self.function(true),
            Some(".func") => self.function(false),
            Some(word @ (".global" | ".const" | ".shared" | ".local" | ".param")) => {
                self.next();
                let space = Space::parse(&word[1..]).unwrap_or(Space::Global);
                for mut variable in self.variables(space)? {
                    variable.external = external;
                    self.module.variables.push(variable);
                }
                Ok(())
            }
            _ => self.unexpected("expected `.entry`, `.func`, or a state space and a variable"),
        }
    }

    /// Variables of a space, up to the semicolon.
    fn variables(&mut self, space: Space) -> Result<Vec<Variable<'s>>> {
        let mut variables = vec![self.variable(space, true)?];
        while self.take(b',') {
            let (ty, align) = (variables[0].ty, variables[0].align);
            variables.push(self.declarator(space, ty, align, 1, true)?);
        }
        self.expect(b';')?;
        Ok(variables)
    }

    /// `[.align N] [.v2|.v4] .type [.ptr …] name [sizes] [= values]`.
    fn variable(&mut self, space: Space, initialised: bool) -> Result<Variable<'s>> {
        let mut align = 0;
        let mut lanes = 1;
        let ty = loop {
            let Some(word) = self.peek_word() else {
                return self.unexpected("expected the type of a variable");
            };
            match word {
                ".align" => {
                    self.next();
                    align = self.alignment()?;
                }
                ".v2" | ".v4" => {
                    self.next();
                    lanes = if word == ".v2" { 2 } else { 4 };
                }
                ".attribute" => {
                    self.next();
                    self.expect(b'(')?;
                    while !self.is(b')') && self.peek().kind != Kind::End {
                        self.next();
                    }
                    self.expect(b')')?;
                }
                _ => match word.strip_prefix('.').and_then(Type::parse) {
                    Some(ty) => {
                        self.next();
                        break ty;
                    }
                    None => return self.unexpected("expected the type of a variable"),
                },
            }
        };
        if self.take_word(".ptr") {
            // What a pointer points to: not needed, as every access is checked.
            while matches!(
                self.peek_word(),
                Some(".global" | ".shared" | ".const" | ".local" | ".generic")
            ) {
                self.next();
            }
            if self.take_word(".align") {
                self.alignment()?;
            }
        }
        self.declarator(space, ty, align, lanes, initialised)
    }

    fn alignment(&mut self) -> Result<u32> {
        let before = self.at;
        match self.small()? {
            align if align.is_power_of_two() && align <= 1 << 20 => Ok(align),
            _ => {
                self.at = before;
                self.unexpected("expected a power of two up to 1048576")
            }
        }
    }

    fn declarator(
        &mut self,
        space: Space,
        ty: Type,
        align: u32,
        lanes: u64,
        initialised: bool,
    ) -> Result<Variable<'s>> {
        let name = self.name()?;
        let mut size = u64::from(ty.bytes()) * lanes;
        while self.take(b'[') {
            let length = if self.is(b']') { 0 } else { self.integer()? };
            self.expect(b']')?;
            size = size.saturating_mul(length);
        }
        if size > MAX_VARIABLE {
            let expected =
                format!("{size} bytes of `{}` exceed the limit of {MAX_VARIABLE}", clip(name.text));
            return Err(Error { expected, code: "ptx-limit", span: name.span() });
        }
        let align = align.max(ty.bytes().max(1) * lanes as u32);
        let mut variable = Variable {
            name,
            space,
            ty,
            align,
            size,
            bytes: vec![],
            addresses: vec![],
            external: false,
        };
        if initialised && self.take(b'=') {
            self.values(&mut variable, 0)?;
            let bytes = variable.bytes.len() as u64;
            if variable.size == 0 {
                variable.size = bytes;
            } else if bytes > variable.size {
                let expected = format!(
                    "{bytes} bytes of values exceed the {} of `{}`",
                    variable.size,
                    clip(name.text)
                );
                return Err(Error { expected, code: "ptx-initialiser", span: name.span() });
            }
        }
        Ok(variable)
    }

    fn values(&mut self, variable: &mut Variable<'s>, depth: usize) -> Result<()> {
        if self.take(b'{') {
            if depth > MAX_DEPTH {
                return self.unexpected("expected no deeper nesting");
            }
            while !self.is(b'}') {
                self.values(variable, depth + 1)?;
                if !self.take(b',') {
                    break;
                }
            }
            return self.expect(b'}');
        }
        let value = match self.peek_word() {
            Some(word) => {
                self.next();
                let grouped = word == "generic" && self.take(b'(');
                let name = if grouped {
                    self.name()?
                } else {
                    Name { text: word, start: self.tokens[self.at - 1].start as usize }
                };
                if grouped {
                    self.expect(b')')?;
                }
                let offset = match () {
                    () if self.take(b'+') => self.signed()?,
                    () if self.is(b'-') => self.signed()?,
                    () => 0,
                };
                if variable.ty.bytes() != 8 {
                    return Err(Error {
                        expected: "an address needs an element of 64 bits".into(),
                        code: "ptx-initialiser",
                        span: name.span(),
                    });
                }
                let at = variable.bytes.len() as u64;
                variable.addresses.push(InitialAddress { at, name, offset });
                0
            }
            None => {
                let negative = self.take(b'-');
                let sign = if negative { -1.0 } else { 1.0 };
                match (self.number()?, variable.ty) {
                    (Number::Integer(value), Type::F32) => {
                        u64::from(((sign * value as f64) as f32).to_bits())
                    }
                    (Number::Integer(value), Type::F64) => (sign * value as f64).to_bits(),
                    (Number::Integer(value), _) if negative => value.wrapping_neg(),
                    (Number::Integer(value), _) => value,
                    (Number::F32(value), Type::F64) => (sign * f64::from(value)).to_bits(),
                    (Number::F32(value), _) => u64::from((sign as f32 * value).to_bits()),
                    (Number::F64(value), Type::F32) => u64::from(((sign * value) as f32).to_bits()),
                    (Number::F64(value), _) => (sign * value).to_bits(),
                }
            }
        };
        let width = variable.ty.bytes().clamp(1, 8) as usize;
        variable.bytes.extend_from_slice(&value.to_le_bytes()[..width]);
        Ok(())
    }

    fn function(&mut self, entry: bool) -> Result<()> {
        self.next();
        let results = if !entry && self.is(b'(') { self.params()? } else { vec![] };
        let name = self.name()?;
        let params = if self.is(b'(') { self.params()? } else { vec![] };
        let mut function = Function {
            name,
            entry,
            params,
            results,
            body: None,
            max_threads: None,
            required_block: None,
            required_cluster: None,
        };
        loop {
            if self.take(b';') {
                break;
            }
            if self.is(b'{') {
                function.body = Some(self.body()?);
                break;
            }
            match self.peek_word() {
                Some(".maxntid") => {
                    let dimensions = self.dimensions()?;
                    function.max_threads =
                        Some(dimensions.iter().map(|extent| u64::from(*extent)).product());
                }
                Some(".reqntid") => function.required_block = Some(self.dimensions()?),
                Some(".reqnctapercluster") => function.required_cluster = Some(self.dimensions()?),
                Some(".minnctapersm" | ".maxnreg" | ".maxnctapersm" | ".maxclusterrank") => {
                    self.next();
                    self.integer()?;
                }
                Some(".noreturn" | ".explicitcluster" | ".blocksareclusters") => {
                    self.next();
                }
                Some(".pragma") => self.pragma()?,
                _ => return self.unexpected("expected `{`, `;` or a directive of a function"),
            }
        }
        self.module.functions.push(function);
        Ok(())
    }

    fn dimensions(&mut self) -> Result<[u32; 3]> {
        self.next();
        let mut dimensions = [1; 3];
        for (index, dimension) in dimensions.iter_mut().enumerate() {
            if index == 0 || self.take(b',') {
                *dimension = self.small()?;
            }
        }
        Ok(dimensions)
    }

    fn params(&mut self) -> Result<Vec<Variable<'s>>> {
        self.expect(b'(')?;
        let mut params = vec![];
        while !self.is(b')') {
            if self.peek_word() == Some(".reg") {
                return Err(Error {
                    expected: "parameters in registers are not supported".into(),
                    code: "ptx-unsupported",
                    span: self.peek().span(),
                });
            }
            if !self.take_word(".param") {
                return self.unexpected("expected `.param`");
            }
            params.push(self.variable(Space::Param, false)?);
            if !self.take(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(params)
    }

    fn body(&mut self) -> Result<Vec<Statement<'s>>> {
        let open = self.peek().span();
        self.expect(b'{')?;
        let mut statements = vec![];
        let mut depth = 1;
        loop {
            let from = self.at;
            match self.peek().kind {
                Kind::End => {
                    let expected = "expected `}` at the end of the function".into();
                    return Err(Error { expected, code: "ptx-syntax", span: open });
                }
                Kind::Mark(b'{') => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return self.unexpected("expected no deeper nesting");
                    }
                    self.next();
                    statements.push(Statement::Open);
                }
                Kind::Mark(b'}') => {
                    depth -= 1;
                    self.next();
                    if depth == 0 {
                        return Ok(statements);
                    }
                    statements.push(Statement::Close);
                }
                Kind::Mark(b';') => {
                    self.next();
                }
                _ => {
                    if let Err(error) = self.statement(&mut statements) {
                        self.recover(error, from + 1);
                    }
                }
            }
        }
    }

    fn statement(&mut self, statements: &mut Vec<Statement<'s>>) -> Result<()> {
        if self.take(b'@') {
            let negated = self.take(b'!');
            let predicate = self.name()?;
            statements.push(Statement::Instruction(self.instruction(Some((predicate, negated)))?));
            return Ok(());
        }
        let Some(word) = self.peek_word() else {
            return self.unexpected("expected an instruction, a label or a directive");
        };
        match word {
            ".reg" => self.registers(statements)?,
            ".local" | ".shared" | ".param" | ".const" | ".global" => {
                self.next();
                let space = Space::parse(&word[1..]).unwrap_or(Space::Local);
                statements.extend(self.variables(space)?.into_iter().map(Statement::Variable));
            }
            ".loc" => self.location(statements)?,
            ".file" => self.file()?,
            ".pragma" => self.pragma()?,
            _ if word.starts_with('.') => {
                return self.unexpected("expected a directive of a function");
            }
            _ if self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind == Kind::Mark(b':') => {
                let name = self.name()?;
                self.next();
                if self.take_word(".branchtargets") {
                    let mut targets = vec![self.name()?];
                    while self.take(b',') {
                        targets.push(self.name()?);
                    }
                    self.expect(b';')?;
                    statements.push(Statement::Targets(name, targets));
                } else if self.take_word(".callprototype") {
                    // The type of a function that is called by address; its arguments are checked at the call.
                    while !self.is(b';') && self.peek().kind != Kind::End {
                        self.next();
                    }
                    self.expect(b';')?;
                } else {
                    statements.push(Statement::Label(name));
                }
            }
            _ => statements.push(Statement::Instruction(self.instruction(None)?)),
        }
        Ok(())
    }

    fn registers(&mut self, statements: &mut Vec<Statement<'s>>) -> Result<()> {
        self.next();
        let Some(ty) = self.peek_word().and_then(|word| Type::parse(word.strip_prefix('.')?))
        else {
            return self.unexpected("expected the type of a register");
        };
        self.next();
        loop {
            let name = self.name()?;
            let mut count = None;
            if self.take(b'<') {
                let before = self.at;
                let number = self.small()?;
                if number > MAX_REGISTERS {
                    self.at = before;
                    return self.unexpected(format!("expected at most {MAX_REGISTERS} registers"));
                }
                count = Some(number);
                self.expect(b'>')?;
            }
            statements.push(Statement::Registers { name, count, ty });
            if !self.take(b',') {
                break;
            }
        }
        self.expect(b';')
    }

    /// `.loc file line column [, function_name label [+ offset], inlined_at file line column]`.
    fn location(&mut self, statements: &mut Vec<Statement<'s>>) -> Result<()> {
        self.next();
        let (file, line, column) = (self.small()?, self.small()?, self.small()?);
        statements.push(Statement::Location(file, line, column));
        while self.take(b',') {
            match self.name()?.text {
                "function_name" => {
                    self.name()?;
                    if self.take(b'+') {
                        self.integer()?;
                    }
                }
                _ => {
                    for _ in 0..3 {
                        self.integer()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn instruction(&mut self, guard: Option<(Name<'s>, bool)>) -> Result<Instruction<'s>> {
        let opcode = self.name()?;
        let mut operands = vec![];
        while !self.is(b';') {
            operands.push(self.operand(0)?);
            if !self.take(b',') {
                break;
            }
        }
        self.expect(b';')?;
        Ok(Instruction { guard, opcode, operands })
    }

    fn operand(&mut self, depth: usize) -> Result<Operand<'s>> {
        if depth > MAX_DEPTH {
            return self.unexpected("expected no deeper nesting");
        }
        let operand = self.single(depth)?;
        if self.take(b'|') {
            let second = self.operand(depth + 1)?;
            return Ok(Operand::Pair(Box::new(operand), Box::new(second)));
        }
        Ok(operand)
    }

    fn single(&mut self, depth: usize) -> Result<Operand<'s>> {
        match self.peek().kind {
            Kind::Word => {
                let name = self.name()?;
                if name.text == "_" {
                    return Ok(Operand::Sink);
                }
                Ok(Operand::Name(name, self.offset()?))
            }
            Kind::Number => self.literal(false),
            Kind::Mark(b'-') => {
                self.next();
                self.literal(true)
            }
            Kind::Mark(b'!') => {
                self.next();
                Ok(Operand::Not(self.name()?))
            }
            Kind::Mark(b'[') => self.address(depth),
            Kind::Mark(b'{') => {
                self.next();
                Ok(Operand::Vector(self.list(b'}', depth)?))
            }
            Kind::Mark(b'(') => {
                self.next();
                Ok(Operand::List(self.list(b')', depth)?))
            }
            _ => self.unexpected("expected an operand"),
        }
    }

    fn literal(&mut self, negative: bool) -> Result<Operand<'s>> {
        Ok(match self.number()? {
            Number::Integer(value) if negative => Operand::Integer(value.wrapping_neg()),
            Number::Integer(value) => Operand::Integer(value),
            Number::F32(value) => Operand::F32(if negative { -value } else { value }),
            Number::F64(value) => Operand::F64(if negative { -value } else { value }),
        })
    }

    fn list(&mut self, end: u8, depth: usize) -> Result<Vec<Operand<'s>>> {
        let mut operands = vec![];
        while !self.is(end) {
            operands.push(self.operand(depth + 1)?);
            if !self.take(b',') {
                break;
            }
        }
        self.expect(end)?;
        Ok(operands)
    }

    /// `[+ integer | - integer]`.
    fn offset(&mut self) -> Result<i64> {
        if self.take(b'+') || self.is(b'-') { self.signed() } else { Ok(0) }
    }

    fn address(&mut self, depth: usize) -> Result<Operand<'s>> {
        self.expect(b'[')?;
        let base = if self.peek().kind == Kind::Word { Some(self.name()?) } else { None };
        let offset = if base.is_some() { self.offset()? } else { self.signed()? };
        let mut coordinates = vec![];
        if self.take(b',') {
            self.expect(b'{')?;
            coordinates = self.list(b'}', depth + 1)?;
        }
        self.expect(b']')?;
        Ok(Operand::Address { base, offset, coordinates })
    }
}
