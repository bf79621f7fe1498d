"""Lets schemathesis write and read JSON lines: a generated value is one line, an example is whole."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    return value if isinstance(value, str) else json.dumps(value) + "\n"


@schemathesis.deserializer("application/x-ndjson")
def first_line(ctx, response):
    return json.loads(response.content.splitlines()[0])
