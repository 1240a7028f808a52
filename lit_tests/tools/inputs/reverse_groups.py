"""A plan with its processor groups in reverse order."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    plan = json.load(file)
plan["ProcessorGroups"].reverse()
json.dump(plan, sys.stdout)
