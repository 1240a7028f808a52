"""The code of an archive: compiled, linked, and what it needs."""
import pathlib
import subprocess

from archive import Failure, demand

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = ["-I", str(HERE.parent.parent / "runtime/include"), "-I", str(HERE)]
FLAGS = ["-O2", "-fPIC"]
OWN = ["-Wall", "-Wextra", "-Werror", "-std=c11"]

MATH = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1
    fabs fdim floor fma fmax fmin fmod frexp hypot ldexp lgamma llrint llround log log10 log1p log2
    logb lrint lround modf nearbyint pow remainder rint round roundeven sin sincos sinh sqrt tan tanh
    tgamma trunc""".split()
C = """abort aligned_alloc calloc free malloc memchr memcmp memcpy memmove memset posix_memalign
    qsort realloc strcmp strlen strncmp""".split()
# Arithmetic of the compiler's own library, and what the linker makes.
COMPILER = """__cpu_model __divti3 __extendhfsf2 __gnu_f2h_ieee __gnu_h2f_ieee __modti3 __multi3 __truncdfbf2
    __truncdfhf2 __truncsfbf2 __truncsfhf2 __udivti3 __umodti3 _GLOBAL_OFFSET_TABLE_""".split()
ALLOWED = {*C, *COMPILER, *MATH, *(name + "f" for name in MATH)}

SLOTS = {"__TVMAPISetLastError", "__TVMBackendAllocWorkspace", "__TVMBackendFreeWorkspace",
         "__TVMBackendGetFuncFromEnv", "__TVMBackendParallelBarrier", "__TVMBackendParallelLaunch",
         "__TVMFFIErrorSetRaisedFromCStr", "__TVMFuncCall", "__tvm_module_ctx"}


def tool(*command):
    """Runs a tool, and gives what it prints."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        text = done.stderr.strip() or f"exit code {done.returncode}"
        raise Failure(f"{pathlib.Path(str(command[0])).name}: {text[-2000:]}")
    return done.stdout


def objects(archive, folder):
    """The objects of the archive, and those of its sources."""
    made = list(archive.objects)
    for source in archive.sources:
        made.append(folder / f"{source.stem}.o")
        tool("cc", "-c", *FLAGS, *INCLUDE, source, "-o", made[-1])
    demand(made, "there is no object and no source")
    return made


def link(objects, library, *flags):
    tool("cc", "-shared", *objects, "-o", library, *flags, "-lm")
    return library


def own_object(name, folder):
    """One of our C files, compiled."""
    made = folder / f"{name}.o"
    tool("cc", "-c", *FLAGS, *OWN, *INCLUDE, HERE / f"{name}.c", "-o", made)
    return made


def symbols(objects, flag):
    """Names by type, of `nm` with a flag."""
    found = {}
    for line in tool("nm", flag, *objects).splitlines():
        words = line.split()
        if len(words) >= 2 and not line.endswith(":"):
            found[words[-1]] = words[-2]
    return found


def needed(objects):
    """What no object defines."""
    defined = symbols(objects, "--defined-only")
    return sorted(set(symbols(objects, "--undefined-only")) - set(defined))


def check_symbols(objects, functions, with_runtime):
    """Nothing is needed but libc and libm; slots of the runtime are there, weak and empty."""
    defined = symbols(objects, "--defined-only")
    missing = [name for name in functions if defined.get(name) not in ("T", "W")]
    demand(not missing, f"functions are not defined: {missing}")
    runtime = {name for name in needed(objects) if name.startswith("TVM")}
    demand(with_runtime or not runtime, f"a runtime of TVM is needed by name: {sorted(runtime)}")
    unknown = set(needed(objects)) - ALLOWED - runtime
    demand(not unknown, f"nobody defines {sorted(unknown)}")
    slots = {name: kind for name, kind in defined.items() if name.startswith("__TVM")}
    strong = {name for name, kind in slots.items() if kind != "V" or name not in SLOTS}
    demand(not strong, f"slots that are unknown or not weak: {sorted(strong)}")
    outside = sorted(set(needed(objects)) - {"_GLOBAL_OFFSET_TABLE_"})
    return f"needs {', '.join(outside) or 'nothing'}; slots {', '.join(sorted(slots)) or 'none'}"
