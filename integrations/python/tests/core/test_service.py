import logging

import pytest
from support import Api

from edgefront import Service


@pytest.fixture
def api():
    api = Api()
    yield api
    api.close()


def service(api, pauses=(0, 0, 0)):
    return Service(api.url, "the service key", pauses=pauses)


def test_a_purge_is_sent_with_the_key(api):
    edgefront = service(api)
    edgefront.purge([("items", "mug"), ("tags", "kitchen"), ("urls", "/about"), ("items", "mug")])
    assert edgefront.flush()
    names = {"items": ["mug"], "tags": ["kitchen"], "urls": ["/about"]}
    assert api.calls == [("POST", "/_edge/v1/purge", names, "Bearer the service key")]


def test_a_failed_purge_is_retried(api):
    api.statuses = [503, 429]
    edgefront = service(api)
    edgefront.purge([("items", "mug")])
    assert edgefront.flush() and len(api.calls) == 3


def test_retries_end_and_are_logged(api, caplog):
    api.statuses = [503] * 10
    edgefront = service(api)
    with caplog.at_level(logging.WARNING, "edgefront"):
        edgefront.purge([("items", "mug")])
        assert edgefront.flush()
    assert len(api.calls) == 4
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3 + ["ERROR"]
    assert "the service key" not in caplog.text


@pytest.mark.parametrize("status", [401, 422, 302])
def test_a_refused_purge_is_not_retried_and_no_redirect_gets_the_key(api, status):
    api.statuses = [status]
    edgefront = service(api)
    edgefront.purge([("items", "mug")])
    assert edgefront.flush() and len(api.calls) == 1


def test_an_unreachable_edgefront_raises_nothing(api):
    edgefront = service(api)
    api.close()
    edgefront.purge([("items", "mug")])
    assert edgefront.flush()


def test_an_invalid_name_is_logged_and_the_others_are_purged(api, caplog):
    edgefront = service(api)
    edgefront.purge([("items", "a/b"), ("tags", "a,b"), ("items", "mug")])
    assert edgefront.flush()
    assert api.names("items") == ["mug"] and api.names("tags") == []
    assert len(caplog.records) == 2


def test_many_names_are_split_into_small_bodies(api):
    edgefront = service(api)
    edgefront.purge([("items", f"{number:060}") for number in range(1_000)])
    assert edgefront.flush()
    assert len(api.calls) > 1 and len(set(api.names("items"))) == 1_000


def test_too_many_names_become_one_purge_of_all_pages(api):
    edgefront = service(api)
    edgefront.purge([("items", str(number)) for number in range(6_000)])
    assert edgefront.flush()
    assert [body for _, _, body, _ in api.calls] == [{"all": True, "soft": True}]


def test_a_user_is_quoted(api):
    assert service(api).end_sessions("ada/x@shop.example")
    assert api.calls[0][:2] == ("DELETE", "/_edge/v1/users/ada%2Fx%40shop.example/sessions")


def test_a_call_for_later_does_not_wait_and_is_retried(api):
    api.statuses = [503]
    api.gate.clear()
    edgefront = service(api)
    edgefront.end_sessions("ada", later=True)
    edgefront.report_order({"order_id": "A-1"}, later=True)
    edgefront.purge([("items", "mug")])
    assert not edgefront.flush(0)
    api.gate.set()
    assert edgefront.flush()
    calls = [(method, path.removeprefix("/_edge/v1")) for method, path, *_ in api.calls]
    assert len(calls) == 4
    assert set(calls) == {("DELETE", "/users/ada/sessions"), ("POST", "/orders"), ("POST", "/purge")}


def test_a_call_without_retries_is_sent_once(api):
    api.statuses = [503]
    assert not service(api).end_sessions("ada", retries=False)
    assert len(api.calls) == 1


def test_the_number_of_waiting_calls_is_bounded(api, caplog):
    api.gate.clear()
    edgefront = service(api)
    accepted = [edgefront.end_sessions(number, later=True) for number in range(5_002)]
    assert accepted[0] and not accepted[-1] and "was dropped" in caplog.text
    edgefront._calls.clear()
    api.gate.set()
    assert edgefront.flush()
