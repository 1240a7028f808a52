//! Known providers of symbols that objects need.

/// The provider of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// libc, libm, or the linker.
    System,
    /// A runtime of TVM.
    Runtime,
    /// Unknown.
    Unknown,
}

/// Functions of libm, each also with the suffixes `f` and `l`.
const MATH: &str = "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp \
                    exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp \
                    lgamma llrint llround log log10 log1p log2 logb lrint lround modf nearbyint \
                    nextafter pow remainder rint round roundeven scalbn sin sincos sinh sqrt tan \
                    tanh tgamma trunc";

/// Functions of libc that code generators and generated C call.
const C: &str = "abort abs aligned_alloc calloc fprintf free llabs malloc memchr memcmp memcpy \
                 memmove memset posix_memalign printf puts qsort realloc snprintf stderr strcmp \
                 strlen strncmp __assert_fail __memcpy_chk __memset_chk __stack_chk_fail";

/// The compiler's runtime library: arithmetic on wide integers and half-precision floats.
const COMPILER: &str = "__divti3 __extendhfsf2 __fixsfti __fixunssfti __floattisf __floatuntisf \
                        __gnu_f2h_ieee __gnu_h2f_ieee __modti3 __muloti4 __multi3 __truncdfbf2 \
                        __truncdfhf2 __truncsfbf2 __truncsfhf2 __udivti3 __umodti3 \
                        __extendbfsf2 _GLOBAL_OFFSET_TABLE_";

/// Symbols that TVM's runtime exports to generated code.
const RUNTIME: &str = "TVMAPISetLastError TVMArrayAlloc TVMArrayFree TVMBackendAllocWorkspace \
                       TVMBackendFreeWorkspace TVMBackendGetFuncFromEnv TVMBackendParallelBarrier \
                       TVMBackendParallelLaunch TVMBackendRegisterSystemLibSymbol \
                       TVMBackendRunOnce TVMFuncCall TVMFuncGetGlobal TVMGetLastError \
                       TVMPlatformAbort TVMPlatformMemoryAllocate TVMPlatformMemoryFree";

/// Slots that a loader fills with functions of its runtime.
const SLOTS: &str = "__TVMAPISetLastError __TVMBackendAllocWorkspace __TVMBackendFreeWorkspace \
                     __TVMBackendGetFuncFromEnv __TVMBackendParallelBarrier \
                     __TVMBackendParallelLaunch __TVMFuncCall __tvm_module_ctx";

/// The provider of a symbol that an object needs.
pub(super) fn source_of(name: &str) -> Source {
    let is_in = |list: &str, name: &str| list.split_ascii_whitespace().any(|each| each == name);
    let base = name.strip_suffix(['f', 'l']).unwrap_or(name);
    if is_in(C, name) || is_in(COMPILER, name) || is_in(MATH, name) || is_in(MATH, base) {
        return Source::System;
    }
    if is_in(RUNTIME, name) || is_in(SLOTS, name) {
        return Source::Runtime;
    }
    Source::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_sources() {
        for name in ["memset", "expf", "exp", "erfl", "ceil", "fabsf", "__truncsfhf2"] {
            assert_eq!(source_of(name), Source::System, "{name}");
        }
        assert_eq!(source_of("TVMBackendAllocWorkspace"), Source::Runtime);
        assert_eq!(source_of("tvmgen_default_fused_add"), Source::Unknown);
        assert_eq!(source_of("f"), Source::Unknown);
    }
}
