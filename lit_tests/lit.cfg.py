"""How LLVM's lit runs these files; `cargo test -p irc-tools --test lit` calls it.

Substitutions in a RUN line, besides lit's own (%s this file, %S its folder, %t a scratch path):

    %irc  %irc-opt  %irc-translate    the tools
    %examples  %models                the repository's models: for people, for tests
    %data                             the ARK files that the format crate tests itself on
    %gemini                           a small Gemini schedule and its layers
    %mlf                              small archives of the Model Library Format
    %lit-tests                        this folder
    %python  %oracle                  Python with numpy (`./irc-dev setup`), and tests/oracle
    %expect                           reads stdin: must equal %s.expected, to the byte
                                      (`cargo xtask bless` writes that file anew)
    FileCheck  not                    LLVM's
"""

import os
import pathlib

import lit.formats

root = pathlib.Path(__file__).resolve().parent
tools = pathlib.Path(lit_config.params["tools"])
llvm = pathlib.Path(lit_config.params["llvm"])

config.name = "irc"
config.test_format = lit.formats.ShTest(execute_external=False)
# Which files are tests is the harness's choice: every file with a RUN line.
config.suffixes = [""]
config.excludes = ["inputs"]
config.test_source_root = str(root)
config.test_exec_root = lit_config.params["scratch"]

# Longer names first: substitutions are textual.
config.substitutions += [
    ("%irc-opt", str(tools / "irc-opt")),
    ("%irc-translate", str(tools / "irc-translate")),
    (r"%irc\b", str(tools / "irc")),
    ("%examples", str(root.parent / "examples")),
    ("%models", str(root.parent / "tests" / "models")),
    ("%data", str(root.parent / "formats" / "ark" / "tests" / "data")),
    ("%gemini", str(root.parent / "formats" / "gemini" / "tests" / "data")),
    ("%mlf", str(root.parent / "formats" / "mlf" / "tests" / "data")),
    ("%lit-tests", str(root)),
    ("%python", str(root.parent / "target" / "venv" / "bin" / "python")),
    ("%oracle", str(root.parent / "tests" / "oracle")),
    ("%expect", "cp /dev/stdin %s.expected" if "bless" in lit_config.params else "diff -u %s.expected -"),
]

# The tools' own folder stays off the path: a test names them by substitution only.
config.environment["PATH"] = os.pathsep.join([str(llvm), "/usr/local/bin", "/usr/bin", "/bin"])
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["LC_ALL"] = "C.UTF-8"
