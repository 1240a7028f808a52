
_Static_assert(sizeof(void *) == 8 && sizeof(float) == 4 && sizeof(double) == 8, "a 64-bit machine");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian bytes");
#if defined(__FAST_MATH__) || __FLT_EVAL_METHOD__ != 0
#error "floats must be computed as IEEE 754 says: without -ffast-math, in their own format"
#endif

/* Do not contract a product and a sum to one rounding. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* A model may leave arguments and constants unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
/* Models may contain comparisons with a constant result. */
#pragma GCC diagnostic ignored "-Wtype-limits"
/* Vectors that are wider than registers stay within this file. */
#pragma GCC diagnostic ignored "-Wpsabi"

/* Whether the processor has fused multiply-add: from the compiler's flags, or detected at run time.
   With IRC_NO_FMA it is not used; the results are the same. */
#if defined(IRC_NO_FMA)
#define C_HAS_FMA false
#define C_FMA
#elif defined(__FMA__) || defined(__FP_FAST_FMAF)
#define C_HAS_FMA true
#define C_FMA
#elif defined(__x86_64__)
#define C_HAS_FMA __builtin_cpu_supports("fma")
#define C_FMA __attribute__((target("fma")))
#else
#define C_HAS_FMA false
#define C_FMA
#endif

#define C_INLINE static inline __attribute__((always_inline))

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;
