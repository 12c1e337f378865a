#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""output_schema.py SCHEMA FOLDER: validates the outputs of verbs, N.VERB in the folder, against
docs/output.schema.json; N.claim says which output it is. Also checks that the schema of a task agrees
with that of the protocol."""
import json
import pathlib
import sys

import jsonschema


def nulls(value, path="$"):
    """The paths of all nulls: an unknown value is absent."""
    if value is None:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from nulls(part, f"{path}.{key}")


def kind(rule):
    return rule.get("type"), rule.get("enum"), rule.get("const")


def check_schema(path, schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    protocol = json.loads((path.parent / "protocol.schema.json").read_text(encoding="utf-8"))
    task = schema["$defs"]["task"]["properties"]
    for key, rule in protocol["$defs"]["task"]["properties"].items():
        assert key in task, f"the protocol's {key} of a task is not in {path.name}"
        assert "$ref" in rule or kind(rule) == kind(task[key]), f"{key} of a task differs: {rule} and {task[key]}"


def check_output(path, schema, verb, text):
    outputs = [json.loads(line) for line in text.splitlines()]
    assert outputs, "the output is empty"
    assert verb == "suspend" or len(outputs) == 1, f"the output has {len(outputs)} lines"
    schema = {**schema, "$id": path.as_uri(), "oneOf": [{"$ref": "#/$defs/" + verb}]}
    validator = jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver(path.as_uri(), schema))
    for output in outputs:
        validator.validate(output)
        assert not list(nulls(output)), f"null at {list(nulls(output))}"


def main(schema_path, folder):
    path = pathlib.Path(schema_path).resolve()
    schema = json.loads(path.read_text(encoding="utf-8"))
    check_schema(path, schema)
    failed = 0
    for file in sorted(pathlib.Path(folder).iterdir()):
        verb = file.suffix[1:]
        if verb == "claim":
            continue
        try:
            check_output(path, schema, verb, file.read_text(encoding="utf-8"))
        except (AssertionError, ValueError, jsonschema.ValidationError) as error:
            failed += 1
            print(f"{file.with_suffix('.claim').read_text(encoding='utf-8').strip()}: {error}"[:2000])
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
