//! The rules as a table: code, severity, title, and help.

use irc_diag::{Diagnostic, Severity};

use crate::model::{Path, Schema};

/// How strict validation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// According to the format.
    #[default]
    Strict,
    /// Deviations common in files of the time are warnings: names that are not identifiers, no
    /// domain, no counts of inputs, no declarations.
    Compat,
}

/// Severities; `X` is not checked.
const E: Option<Severity> = Some(Severity::Error);
const W: Option<Severity> = Some(Severity::Warning);
const N: Option<Severity> = Some(Severity::Note);
const X: Option<Severity> = None;

/// The severity of a violation at each level, and in ONNX.
struct Row {
    code: &'static str,
    strict: Option<Severity>,
    compat: Option<Severity>,
    onnx: Option<Severity>,
    help: &'static str,
}

macro_rules! rules {
    ($($id:ident $code:literal $strict:ident $compat:ident $onnx:ident $title:literal $help:literal;)*) => {
        /// A rule that a valid file satisfies.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $title] $id,)* }

        impl Rule {
            /// All rules, in order.
            pub const ALL: &'static [Rule] = &[$(Rule::$id),*];

            /// Its name: `R40`.
            pub fn id(self) -> &'static str {
                match self { $(Rule::$id => stringify!($id),)* }
            }

            /// The rule in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Rule::$id => $title,)* }
            }

            fn row(self) -> Row {
                match self {
                    $(Rule::$id => Row {
                        code: $code, strict: $strict, compat: $compat, onnx: $onnx, help: $help,
                    },)*
                }
            }
        }
    };
}

#[rustfmt::skip]
rules! {
    // id  code     strict compat onnx
    R01 "cir-r01" E E E "edges of data and control form no cycle" "break the cycle: a node can only use what has been computed before it";
    R02 "cir-r02" W W W "a node has an output" "give the node an output, or remove it";
    R03 "cir-r03" E E W "a graph or library has a name" "set `name`";
    R04 "cir-r04" E W X "a graph or library has a domain" "set `domain` to a reversed domain name, such as `com.example.nn`";
    R05 "cir-r05" E E X "a domain is a DNS name" "use labels of letters, digits and inner hyphens, joined by dots";
    R06 "cir-r06" W W X "a domain is a reversed DNS name" "put the top-level domain first: `org.acme`, not `acme.org`";
    R07 "cir-r07" E E E "the version of the format is given and known" "set `ir_version`: 1 in Common IR, 1 to 14 in ONNX";
    R08 "cir-r08" E W X "the version of the model is given" "set `model_version`";
    R09 "cir-r09" E E X "optional metadata have their type" "`producer_version` is a number: two digits major, two minor, four below";
    R10 "cir-r10" W W X "a graph or library is documented" "describe its purpose in `doc_string`";
    R11 "cir-r11" E W X "documentation holds no HTML" "write Markdown, or put the text in a code span";
    R12 "cir-r12" W W X "documentation is Markdown" "write Markdown, or put the text in a code span";
    R13 "cir-r13" E W W "each graph input and output has a name and a type" "`input` and `input_arg_info` are parallel lists, as are `output` and `output_arg_info`";
    R14 "cir-r14" E E E "a library has no graph" "move the nodes into a function";
    R15 "cir-r15" E E E "the root document is a graph" "import the library from a graph";
    R20 "cir-r20" E W X "a name is an identifier of C" "use letters, digits and `_`, not starting with a digit; --compat accepts other names";
    R21 "cir-r21" E E W "names are unique" "rename one of them";
    R22 "cir-r22" E E X "functions and operators of a document share one namespace" "rename one of them";
    R23 "cir-r23" E E E "names of parameters are unique in a function" "rename one of them";
    R24 "cir-r24" E E E "names of attributes are unique in a node" "remove one of them";
    R25 "cir-r25" W W X "a name is not a keyword of C" "rename it";
    R30 "cir-r30" E E X "a function has an input and an output" "declare them in `input_params` and `output_params`";
    R31 "cir-r31" E E X "parameters of a function have names and types" "give both";
    R32 "cir-r32" E E E "the body of a function is closed" "pass the value to the function as an input";
    R33 "cir-r33" E E W "the body of a function is in topological order" "move the node after those whose outputs it uses";
    R34 "cir-r34" E E E "the body of a function computes each output" "name an output of a node like it";
    R35 "cir-r35" E E E "no function calls itself" "a function is replaced by its body, which must terminate: remove the call";
    R36 "cir-r36" W W X "attributes of a function are used in its body" "the format does not specify their purpose: here, named defaults that the body may refer to";
    R40 "cir-r40" E E E "each input is computed, given or constant" "name an output of an earlier node, a graph input or an initializer";
    R41 "cir-r41" E E E "each value is computed once" "rename one of the outputs";
    R42 "cir-r42" E E E "graph outputs are outputs of nodes" "pass the value through a node such as Identity";
    R43 "cir-r43" E W X "calls of operators count the inputs of each parameter" "set `input_arg_count`; --compat accepts calls without it";
    R44 "cir-r44" E E X "there is one count for each formal parameter" "give `input_arg_count` one entry for each parameter; 0 leaves it out";
    R45 "cir-r45" E E X "the counts add up to the number of inputs" "inputs are matched with parameters from left to right";
    R46 "cir-r46" E E E "counts are not negative" "0 leaves the parameter out";
    R47 "cir-r47" E E E "a call of a function has as many inputs and outputs as the function" "each parameter takes one value";
    R48 "cir-r48" E E W "nodes are in topological order" "move the node after those whose outputs it uses";
    R49 "cir-r49" E E E "a control input names an earlier node" "name a node before this one";
    R50 "cir-r50" W W W "a control input adds an edge" "remove it";
    R51 "cir-r51" N N N "control inputs may be ignored" "an implementation may ignore them when it schedules: results must not depend on them";
    R52 "cir-r52" E E X "an attribute has one value" "set one of its value fields";
    R53 "cir-r53" E E X "attributes are those declared, of the declared types" "an attribute is optional when its declaration says so in the first word of its `doc_string`";
    R60 "cir-r60" E E E "an import is a URI or a relative path" "escape what a URI cannot hold: `%20` for a space";
    R61 "cir-r61" E E E "imported documents can be read" "it is searched for beside the importing document and in each --library-path";
    R62 "cir-r62" E E E "imported documents are libraries" "import a library: it has functions and operators, and no graph";
    R63 "cir-r63" W W W "imports form no cycle" "each library is read once; move what both need into a third";
    R64 "cir-r64" E E E "a library has one identity" "import one version of it only";
    R65 "cir-r65" E E X "a qualified name is that of an imported symbol" "write `domain.library.Symbol`, and import the library";
    R66 "cir-r66" E E E "bundled symbols are those of the libraries" "bundle again, or remove the import";
    R67 "cir-r67" E E E "imports are contained" "keep libraries in the model's folder or one of --library-path; --allow-fetch lets http(s) be read";
    R70 "cir-r70" E W X "operators are declared" "declare it, or import a library that does; --implicit-std accepts the standard ones";
    R71 "cir-r71" E E E "a declared operator has a signature with types" "give every operand of every signature a type";
    R72 "cir-r72" W W W "declared operands have shapes" "give a shape; `[*]` is any";
    R73 "cir-r73" E E E "declared attributes have types" "give the attribute a type";
    R74 "cir-r74" E E E "a call matches one signature" "the first that matches is used";
    R75 "cir-r75" W W W "signatures differ" "remove one of them";
    R80 "cir-r80" E E W "element types are those of the format" "float16, float, double, int8 to int64, uint8, uint16, complex64, complex128, string, bool";
    R81 "cir-r81" E E E "keys of maps are integers or strings, values no collections" "keep collections in a tuple or a list instead";
    R82 "cir-r82" E E W "a list has one type of elements" "give the type of its elements";
    R83 "cir-r83" E E X "an element of a tuple is one that it has" "elements are counted from 0";
    R84 "cir-r84" E E W "strings are UTF-8 without byte order mark or final NUL" "encode the text as UTF-8; other bytes go into a tensor of uint8";
    R85 "cir-r85" E E E "elements are in the field of their type, as many as the sizes require" "one `*_data` field, that of the element type, or `raw_data`";
    R86 "cir-r86" E E E "raw data have the size of the elements" "little-endian, row-major, one byte for a bool";
    R87 "cir-r87" E E E "sparse tensors have an index within the sizes for each value" "indices are [nnz, rank], or [nnz] linear in ONNX; values are [nnz]";
    R88 "cir-r88" E E E "a segment is a range of raw data" "give `begin` <= `end`, and the elements in `raw_data`";
    R89 "cir-r89" W W W "keys of a map are unique" "the last value of a key counts";
    R90 "cir-r90" E E W "sizes are not negative" "a size that is not known is a variable";
    R91 "cir-r91" E E X "a size is a number, an identifier or a wildcard" "write `n`, `*` or `m*`";
    R92 "cir-r92" E E E "a variable is one size within a declaration" "both must have the same size there";
    R93 "cir-r93" E E X "a variable belongs to one declaration" "the same name elsewhere is another size: give the variable a place in an input of this declaration";
    R94 "cir-r94" E E W "shapes are those of tensors" "`[*]` is a tensor of any number of dimensions; other types have no shape";
    R95 "cir-r95" E E E "there are as many dimensions as the sizes beside a wildcard" "a wildcard stands for zero or more dimensions, each other entry for one";
    R96 "cir-r96" E E E "equal named wildcards are equal shapes" "both must have the same shape";
    R97 "cir-r97" E E E "a named wildcard is the same dimensions in each shape" "both must have the same dimensions there";
    R98 "cir-r98" E E E "a variable beside a wildcard is one size" "both must have the same size there";
    R99 "cir-r99" E E E "a scalar has no dimensions" "`[]` is a scalar; a shape that is left out is unknown";
    R100 "cir-r100" W W W "one shape determines its wildcards" "give all but one of its wildcards a shape of its own among the inputs";
    R101 "cir-r101" E E E "sizes given as numbers match" "the sizes must be equal";
    R102 "cir-r102" E E W "arguments fit the graph's signature" "a default must be a value of its input";
}

impl Rule {
    /// Its code in diagnostics: `cir-r40`.
    pub fn code(self) -> &'static str {
        self.row().code
    }

    /// How to resolve a violation.
    pub fn help(self) -> &'static str {
        self.row().help
    }

    /// The severity of a violation in a file of that schema; `None` if it is not checked there.
    pub fn severity(self, level: Level, schema: Schema) -> Option<Severity> {
        let row = self.row();
        match (schema, level) {
            (Schema::Onnx, _) => row.onnx,
            (Schema::CommonIr, Level::Strict) => row.strict,
            (Schema::CommonIr, Level::Compat) => row.compat,
        }
    }
}

/// A diagnostic whose code and message name the rule.
pub(crate) fn diagnostic(
    rule: Rule,
    severity: Severity,
    at: &Path<'_>,
    message: impl std::fmt::Display,
) -> Diagnostic {
    let message = format!("{message} ({})", rule.id());
    Diagnostic::new(severity, rule.code(), message).path(at.to_string()).help(rule.help())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_codes_go_together() {
        assert_eq!(Rule::ALL.len(), 79);
        for rule in Rule::ALL {
            assert_eq!(rule.code(), format!("cir-{}", rule.id().to_lowercase()));
            assert!(Rule::ALL.iter().filter(|other| other.title() == rule.title()).count() == 1);
        }
    }
}
