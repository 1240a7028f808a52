#!/usr/bin/env python3
"""Writes the table of ONNX's operators from the Python package onnx: their versions, inputs, outputs, attributes.

    onnx_schemas.py [--check]

With --check, it is compared with the file instead; the exit code is 1 if they differ.
"""
import pathlib
import sys

import onnx.defs

TABLE = pathlib.Path(__file__).parents[2] / "compiler/frontends/onnx/src/schema/table.txt"
MANY = 2**31 - 1


def line(schema):
    most = lambda count: "*" if count == MANY else count
    attributes = (f"{name}:{attribute.type.name.lower()}" for name, attribute in sorted(schema.attributes.items()))
    parts = [schema.domain or "ai.onnx", schema.name, schema.since_version,
             "removed" if schema.deprecated else f"{schema.min_input}..{most(schema.max_input)}",
             f"{schema.min_output}..{most(schema.max_output)}", *attributes]
    return " ".join(map(str, parts))


def main():
    schemas = onnx.defs.get_all_schemas_with_history()
    schemas.sort(key=lambda schema: (schema.domain or "ai.onnx", schema.name, schema.since_version))
    text = "".join(line(schema) + "\n" for schema in schemas)
    if "--check" not in sys.argv[1:]:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        sys.exit(f"{TABLE}: not that of onnx {onnx.__version__}; run {sys.argv[0]}")


if __name__ == "__main__":
    main()
