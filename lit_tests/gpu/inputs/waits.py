"""Prints how many steps a model's kernel has, and before how many of them all blocks wait: waits.py MLIR PTX.

MLIR is the module after the stage `llvm`, whose table has a word with bit 31 for each wait; PTX describes the steps."""
import json
import re
import sys

table = re.search(r"@irc_gpu_table\(dense<\[([^]]*)\]>", open(sys.argv[1]).read())[1]
waits = sum(int(word) >> 31 & 1 for word in table.split(","))
description = open(sys.argv[2]).readline().removeprefix("// irc: ")
print(f"{len(json.loads(description)['steps'])} steps, {waits} waits")
