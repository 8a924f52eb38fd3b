"""Logs a visitor in: some operations end the session, so each second begins a new one."""

import os

import requests
import schemathesis


@schemathesis.auth(refresh_interval=1)
class Visitor:
    def get(self, case, context):
        response = requests.post(
            f"{os.environ['API']}/sessions",
            json={"user": "ada"},
            headers={"Authorization": f"Bearer {os.environ['SERVICE_KEY']}"},
            timeout=20,
        )
        return response.json()["cookie"].split("=", 1)[1]

    def set(self, case, data, context):
        case.cookies = {**(case.cookies or {}), "__Host-session": data}
