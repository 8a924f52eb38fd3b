"""Makes each call as a logged-in visitor, and writes whole numbers without a fraction."""

import os

import requests
import schemathesis

cookies = {}


@schemathesis.hook
def before_call(context, case, kwargs):
    if any("session" in requirement for requirement in case.operation.definition.raw["security"]):
        if not cookies:
            log_in()
        # A case may have a forged cookie of its own.
        case.cookies = {**cookies, **(case.cookies or {})}
    case.body = whole_numbers(case.body)


@schemathesis.hook
def after_call(context, case, response):
    if case.operation.definition.raw["operationId"].startswith("end"):
        cookies.clear()


def log_in():
    response = requests.post(
        f"{os.environ['API']}/sessions",
        json={"user": "ada"},
        headers={"Authorization": f"Bearer {os.environ['SERVICE_KEY']}"},
        timeout=20,
    )
    name, value = response.json()["cookie"].split("=", 1)
    cookies[name] = value


def whole_numbers(value):
    """An integer in JSON Schema may be written `42.0`. As an id, that text has more than one reading, and the API refuses it."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {name: whole_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return value
