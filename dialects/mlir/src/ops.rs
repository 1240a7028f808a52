//! Names of upstream's ops that are used, and their numbers of operands and results.
//!
//! This is the only place with these names. They are constants, so that a misspelled one does not
//! compile; [`OpSpec`](crate::OpSpec) checks the numbers.

/// Numbers of operands and results of an op; `None` if variadic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arity {
    pub operands: Option<usize>,
    pub results: Option<usize>,
}

macro_rules! count {
    (*) => {
        None
    };
    ($count:literal) => {
        Some($count)
    };
}

/// A row is the name of a constant, the name of an op, and its numbers of operands and results.
macro_rules! ops {
    ($($(#[$doc:meta])* $dialect:ident { $($name:ident $op:literal $operands:tt -> $results:tt;)* })*) => {
        $($(#[$doc])*
        pub mod $dialect {
            /// What the names of the dialect's ops begin with.
            pub const PREFIX: &str = concat!(stringify!($dialect), ".");
            $(#[doc = concat!("`", $op, "`.")]
            pub const $name: &str = $op;)*
        })*

        /// The arity of an op of the table; `None` for other ops.
        pub(crate) fn arity(op: &str) -> Option<Arity> {
            match op {
                $($($dialect::$name => {
                    Some(Arity { operands: count!($operands), results: count!($results) })
                })*)*
                _ => None,
            }
        }
    };
}

#[rustfmt::skip]
ops! {
    /// Integers, floats and indices.
    arith {
        ADDF         "arith.addf"         2 -> 1;
        ADDI         "arith.addi"         2 -> 1;
        ANDI         "arith.andi"         2 -> 1;
        BITCAST      "arith.bitcast"      1 -> 1;
        CMPF         "arith.cmpf"         2 -> 1;
        CMPI         "arith.cmpi"         2 -> 1;
        CONSTANT     "arith.constant"     0 -> 1;
        DIVF         "arith.divf"         2 -> 1;
        DIVSI        "arith.divsi"        2 -> 1;
        DIVUI        "arith.divui"        2 -> 1;
        EXTF         "arith.extf"         1 -> 1;
        EXTSI        "arith.extsi"        1 -> 1;
        EXTUI        "arith.extui"        1 -> 1;
        FLOORDIVSI   "arith.floordivsi"   2 -> 1;
        FPTOSI       "arith.fptosi"       1 -> 1;
        FPTOUI       "arith.fptoui"       1 -> 1;
        INDEX_CAST   "arith.index_cast"   1 -> 1;
        INDEX_CASTUI "arith.index_castui" 1 -> 1;
        MAXIMUMF     "arith.maximumf"     2 -> 1;
        MAXNUMF      "arith.maxnumf"      2 -> 1;
        MAXSI        "arith.maxsi"        2 -> 1;
        MAXUI        "arith.maxui"        2 -> 1;
        MINIMUMF     "arith.minimumf"     2 -> 1;
        MINNUMF      "arith.minnumf"      2 -> 1;
        MINSI        "arith.minsi"        2 -> 1;
        MINUI        "arith.minui"        2 -> 1;
        MULF         "arith.mulf"         2 -> 1;
        MULI         "arith.muli"         2 -> 1;
        NEGF         "arith.negf"         1 -> 1;
        ORI          "arith.ori"          2 -> 1;
        REMF         "arith.remf"         2 -> 1;
        REMSI        "arith.remsi"        2 -> 1;
        REMUI        "arith.remui"        2 -> 1;
        SELECT       "arith.select"       3 -> 1;
        SHLI         "arith.shli"         2 -> 1;
        SHRSI        "arith.shrsi"        2 -> 1;
        SHRUI        "arith.shrui"        2 -> 1;
        SITOFP       "arith.sitofp"       1 -> 1;
        SUBF         "arith.subf"         2 -> 1;
        SUBI         "arith.subi"         2 -> 1;
        TRUNCF       "arith.truncf"       1 -> 1;
        TRUNCI       "arith.trunci"       1 -> 1;
        UITOFP       "arith.uitofp"       1 -> 1;
        XORI         "arith.xori"         2 -> 1;
    }

    /// The builtin dialect.
    builtin {
        MODULE                     "builtin.module"                     0 -> 0;
        UNREALIZED_CONVERSION_CAST "builtin.unrealized_conversion_cast" * -> *;
    }

    /// Branches.
    cf {
        BR      "cf.br"      * -> 0;
        COND_BR "cf.cond_br" * -> 0;
    }

    /// Functions.
    func {
        CALL   "func.call"   * -> *;
        FUNC   "func.func"   0 -> 0;
        RETURN "func.return" * -> 0;
    }

    /// Loops over tensors.
    linalg {
        FILL    "linalg.fill"    2 -> 1;
        GENERIC "linalg.generic" * -> *;
        INDEX   "linalg.index"   0 -> 1;
        YIELD   "linalg.yield"   * -> 0;
    }

    /// LLVM.
    llvm {
        ADD                 "llvm.add"                 2 -> 1;
        ADDRSPACECAST       "llvm.addrspacecast"       1 -> 1;
        AND                 "llvm.and"                 2 -> 1;
        BITCAST             "llvm.bitcast"             1 -> 1;
        BR                  "llvm.br"                  * -> 0;
        CALL                "llvm.call"                * -> *;
        CALL_INTRINSIC      "llvm.call_intrinsic"      * -> *;
        FENCE               "llvm.fence"               0 -> 0;
        FPEXT               "llvm.fpext"               1 -> 1;
        FUNC                "llvm.func"                0 -> 0;
        GETELEMENTPTR       "llvm.getelementptr"       * -> 1;
        INSERTELEMENT       "llvm.insertelement"       3 -> 1;
        INSERTVALUE         "llvm.insertvalue"         2 -> 1;
        INTR_MASKED_GATHER  "llvm.intr.masked.gather"  * -> 1;
        INTR_MASKED_LOAD    "llvm.intr.masked.load"    * -> 1;
        INTR_MASKED_SCATTER "llvm.intr.masked.scatter" 3 -> 0;
        INTR_MASKED_STORE   "llvm.intr.masked.store"   3 -> 0;
        INTTOPTR            "llvm.inttoptr"            1 -> 1;
        LOAD                "llvm.load"                1 -> 1;
        LSHR                "llvm.lshr"                2 -> 1;
        MLIR_ADDRESSOF      "llvm.mlir.addressof"      0 -> 1;
        MLIR_CONSTANT       "llvm.mlir.constant"       0 -> 1;
        MLIR_GLOBAL         "llvm.mlir.global"         0 -> 0;
        MLIR_POISON         "llvm.mlir.poison"         0 -> 1;
        MLIR_UNDEF          "llvm.mlir.undef"          0 -> 1;
        MLIR_ZERO           "llvm.mlir.zero"           0 -> 1;
        PTRTOINT            "llvm.ptrtoint"            1 -> 1;
        RETURN              "llvm.return"              * -> 0;
        SEXT                "llvm.sext"                1 -> 1;
        SITOFP              "llvm.sitofp"              1 -> 1;
        TRUNC               "llvm.trunc"               1 -> 1;
        UITOFP              "llvm.uitofp"              1 -> 1;
        ZEXT                "llvm.zext"                1 -> 1;
    }

    /// Functions of floats.
    math {
        ABSF      "math.absf"      1 -> 1;
        ACOS      "math.acos"      1 -> 1;
        ACOSH     "math.acosh"     1 -> 1;
        ASIN      "math.asin"      1 -> 1;
        ASINH     "math.asinh"     1 -> 1;
        ATAN      "math.atan"      1 -> 1;
        ATANH     "math.atanh"     1 -> 1;
        CEIL      "math.ceil"      1 -> 1;
        COPYSIGN  "math.copysign"  2 -> 1;
        COS       "math.cos"       1 -> 1;
        COSH      "math.cosh"      1 -> 1;
        CTLZ      "math.ctlz"      1 -> 1;
        ERF       "math.erf"       1 -> 1;
        EXP       "math.exp"       1 -> 1;
        EXP2      "math.exp2"      1 -> 1;
        EXPM1     "math.expm1"     1 -> 1;
        FLOOR     "math.floor"     1 -> 1;
        FMA       "math.fma"       3 -> 1;
        LOG       "math.log"       1 -> 1;
        LOG10     "math.log10"     1 -> 1;
        LOG1P     "math.log1p"     1 -> 1;
        LOG2      "math.log2"      1 -> 1;
        POWF      "math.powf"      2 -> 1;
        ROUNDEVEN "math.roundeven" 1 -> 1;
        RSQRT     "math.rsqrt"     1 -> 1;
        SIN       "math.sin"       1 -> 1;
        SINH      "math.sinh"      1 -> 1;
        SQRT      "math.sqrt"      1 -> 1;
        TAN       "math.tan"       1 -> 1;
        TANH      "math.tanh"      1 -> 1;
    }

    /// Memory.
    memref {
        ALLOCA                           "memref.alloca"                           * -> 1;
        CAST                             "memref.cast"                             1 -> 1;
        DIM                              "memref.dim"                              2 -> 1;
        COPY                             "memref.copy"                             2 -> 0;
        EXTRACT_ALIGNED_POINTER_AS_INDEX "memref.extract_aligned_pointer_as_index" 1 -> 1;
        GET_GLOBAL                       "memref.get_global"                       0 -> 1;
        GLOBAL                           "memref.global"                           0 -> 0;
        LOAD                             "memref.load"                             * -> 1;
        PREFETCH                         "memref.prefetch"                         * -> 0;
        REINTERPRET_CAST                 "memref.reinterpret_cast"                 * -> 1;
        STORE                            "memref.store"                            * -> 0;
        VIEW                             "memref.view"                             * -> 1;
    }

    /// Structured control flow.
    scf {
        CONDITION "scf.condition" * -> 0;
        FOR       "scf.for"       * -> *;
        IF        "scf.if"        1 -> *;
        WHILE     "scf.while"     * -> *;
        YIELD     "scf.yield"     * -> 0;
    }

    /// Tensors as values.
    tensor {
        CAST           "tensor.cast"           1 -> 1;
        COLLAPSE_SHAPE "tensor.collapse_shape" 1 -> 1;
        EMPTY          "tensor.empty"          * -> 1;
        EXPAND_SHAPE   "tensor.expand_shape"   * -> 1;
        EXTRACT        "tensor.extract"        * -> 1;
        EXTRACT_SLICE  "tensor.extract_slice"  * -> 1;
    }

    /// Vectors.
    vector {
        BITCAST               "vector.bitcast"               1 -> 1;
        BROADCAST             "vector.broadcast"             1 -> 1;
        CONSTANT_MASK         "vector.constant_mask"         0 -> 1;
        CREATE_MASK           "vector.create_mask"           * -> 1;
        EXTRACT               "vector.extract"               * -> 1;
        EXTRACT_STRIDED_SLICE "vector.extract_strided_slice" 1 -> 1;
        GATHER                "vector.gather"                * -> 1;
        FROM_ELEMENTS         "vector.from_elements"         * -> 1;
        LOAD                  "vector.load"                  * -> 1;
        MASKEDLOAD            "vector.maskedload"            * -> 1;
        MASKEDSTORE           "vector.maskedstore"           * -> 0;
        SHUFFLE               "vector.shuffle"               2 -> 1;
        STEP                  "vector.step"                  0 -> 1;
        STORE                 "vector.store"                 * -> 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_ops_take_and_give() {
        let arity_of = |operands, results| Some(Arity { operands, results });
        assert_eq!(arity(arith::SELECT), arity_of(Some(3), Some(1)));
        assert_eq!(arity(scf::IF), arity_of(Some(1), None));
        assert_eq!(arity("tl.add"), None);
    }
}
