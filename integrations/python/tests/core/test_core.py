import pytest
from support import KEY

from edgefront import BadRequest, Edge, Keys, Refused
from edgefront.wsgi import claims

KEYS = Keys(KEY)


def read(**headers):
    return Edge.read([(name.replace("_", "-"), value) for name, value in headers.items()], KEYS)


def visitor(**headers):
    return read(Edge_Key=KEY, **headers)


@pytest.mark.parametrize("key", [None, "", KEY[:-1], KEY + "x", KEY.upper(), f"{KEY},{KEY}", "ü" * 26])
def test_only_the_right_key_is_accepted(key):
    headers = [] if key is None else [("Edge-Key", key)]
    with pytest.raises(Refused):
        Edge.read([*headers, ("Edge-Session", "user"), ("Edge-User", "ada")], KEYS)


def test_both_keys_of_a_rotation_are_accepted():
    keys = Keys(["the new key of the origin", KEY])
    for key in ("the new key of the origin", KEY):
        assert Edge.read([("Edge-Key", key)], keys).verified


@pytest.mark.parametrize("key", ["", "short", []])
def test_a_short_key_is_a_wrong_setting(key):
    with pytest.raises(ValueError, match="16 characters"):
        Keys(key)


def test_a_second_header_of_the_same_name_is_refused():
    with pytest.raises(Refused):
        Edge.read([("Edge-Key", KEY), ("edge-key", "x")], KEYS)
    with pytest.raises(Refused):
        Edge.read([("Edge-Key", KEY), ("Edge-Session", "user"), ("Edge-User", "a"), ("Edge-User", "b")], KEYS)


def test_another_spelling_of_a_header_is_not_believed():
    edge = Edge.read([("Edge-Key", KEY), ("Edge-Session", "none"), ("Edge_User", "ada"), ("Edge_Session", "user")], KEYS)
    assert (edge.session, edge.user) == ("none", None)


def test_cgi_spellings_are_removed_from_an_environment():
    environ = {"HTTP_EDGE_USER": "a", "HTTP_EDGE.USER": "b", "HTTP_EDGE": "c", "HTTP_X_FORWARDED_FOR": "d", "HTTP_EDGER": "e"}
    assert len(claims(environ)) == 4
    assert environ == {"HTTP_EDGER": "e"}


def test_a_visitor_has_the_session_that_edgefront_names():
    edge = visitor(Edge_Session="user", Edge_User="ada@shop.example", Edge_Cart='{"mug":2}')
    assert (edge.session, edge.user, edge.cart_items) == ("user", "ada@shop.example", {"mug": 2})
    # Edge-User counts only with a user's session.
    assert visitor(Edge_Session="none", Edge_User="ada").user is None
    assert visitor(Edge_Session="unknown").session == "unknown"
    assert visitor().session is None


def test_a_shared_render_has_no_visitor():
    edge = visitor(Edge_Shared="1", Edge_Session="user", Edge_User="ada", Edge_Cart='{"mug":2}')
    assert (edge.shared, edge.session, edge.user, edge.cart_items) == (True, None, None, None)


@pytest.mark.parametrize(
    "headers",
    [
        {"Edge_Session": "admin"},
        {"Edge_Session": "user"},
        {"Edge_Session": "user", "Edge_User": "ada,bob"},
        {"Edge_Session": "user", "Edge_User": ".."},
        {"Edge_Session": "user", "Edge_User": "a b"},
        {"Edge_Cart": "[]"},
        {"Edge_Cart": '{"mug":"2"}'},
        {"Edge_Cart": '{"a/b":2}'},
        {"Edge_Reservation": "x"},
    ],
)
def test_a_value_that_breaks_the_contract_is_refused(headers):
    with pytest.raises(BadRequest):
        visitor(**headers)


def test_client_host_and_scheme_are_checked():
    edge = visitor(X_Real_IP="2001:db8::1", X_Forwarded_Host="shop.example:8443", X_Forwarded_Proto="https")
    assert (edge.address, edge.host, edge.scheme) == ("2001:db8::1", "shop.example:8443", "https")
    edge = visitor(X_Real_IP="1.2.3.4, 5.6.7.8", X_Forwarded_Host="a/b", X_Forwarded_Proto="javascript")
    assert (edge.address, edge.host, edge.scheme) == (None, None, None)


def test_directives_are_one_line_each():
    edge = visitor(Edge_Session="none")
    edge.login(7)
    edge.cart.add("mug", 2)
    edge.cart.set(42, 0)
    edge.order("A-1", {"mug": 2}, reservation={"sale": "mug", "id": "1-x"}, in_cart=False)
    edge.item("mug")
    edge.tags("kitchen", "goods", "kitchen")
    assert edge.directives() == [
        ("Edge-Item", "mug"),
        ("Edge-Tags", "kitchen, goods"),
        (
            "Edge-Order",
            '{"order_id":"A-1","items":[{"id":"mug","quantity":2}],"in_cart":false,"reservation":{"sale":"mug","id":"1-x"}}',
        ),
        ("Edge-Login", "7"),
        ("Edge-Cart", '[{"op":"add","id":"mug","quantity":2},{"op":"set","id":"42","quantity":0}]'),
    ]


def test_a_logout_may_name_a_user():
    edge = visitor(Edge_Session="user", Edge_User="ada")
    edge.logout(user=7)
    assert edge.directives() == [("Edge-Logout", "user=7")]
    # edgefront would execute the login only, and the sessions of the user would stay.
    edge.login(7)
    assert edge.directives() == [("Edge-Logout", "user=7")]
    edge.logout()
    assert edge.directives() == [("Edge-Login", "7")]


def test_a_logout_of_the_visitors_user_includes_the_visitors_session():
    edge = visitor(Edge_Session="user", Edge_User="ada")
    edge.logout(user="ada")
    edge.logout()
    assert edge.directives() == [("Edge-Logout", "user=ada")]


def test_a_response_without_edgefront_has_no_directive():
    edge = Edge()
    edge.login("ada")
    assert edge.finish(200, []) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda edge: edge.login("a\r\nEdge-Login: b"),
        lambda edge: edge.login("ü"),
        lambda edge: edge.logout(user="a,b"),
        lambda edge: edge.item("a/b"),
        lambda edge: edge.item("x" * 65),
        lambda edge: edge.item("mug\n"),
        lambda edge: edge.tags("a,b"),
        lambda edge: edge.tags(*range(33)),
        lambda edge: edge.cart.add("mug", 0),
        lambda edge: edge.cart.add("mug", True),
        lambda edge: edge.cart.add("mug", 1.5),
        lambda edge: edge.order("A 1", {"mug": 1}),
        lambda edge: edge.order("A-1", {}),
    ],
)
def test_a_value_that_edgefront_would_ignore_is_an_error(call):
    edge = visitor(Edge_Session="none")
    with pytest.raises(ValueError):
        call(edge)
    assert edge.directives() == []


def share(prepare=lambda edge: None, response=(), status=200):
    edge = visitor(Edge_Session="none")
    edge.share(300, 60)
    prepare(edge)
    return dict(edge.finish(status, list(response)))["Cache-Control"]


def test_a_page_of_everybody_is_shared():
    assert share() == "public, max-age=300, stale-while-revalidate=60"
    assert share(response=[("Set-Cookie", "a=b"), ("Cache-Control", "no-cache")]) == "private, no-store"


def test_a_page_of_one_visitor_is_not_shared():
    assert share(lambda edge: edge.touch("the session")) == "private, no-store"
    assert share(lambda edge: edge.cart.add("mug")) == "private, no-store"
    assert share(response=[("Edge-Login", "ada")]) == "private, no-store"


def test_a_304_confirms_that_a_page_is_shared():
    assert share(status=304) == "public, max-age=300, stale-while-revalidate=60"
    assert share(lambda edge: edge.touch("the session"), status=304) == "private, no-store"


def test_a_page_of_an_error_is_not_shared():
    assert share(status=404) == "private, no-store"


def test_an_error_of_the_server_claims_no_order_and_no_login():
    edge = visitor(Edge_Session="none")
    edge.login("ada")
    edge.logout()
    edge.cart.add("mug")
    edge.order("A-1", {"mug": 1})
    assert edge.directives(500) == [("Edge-Logout", "1")]


@pytest.mark.parametrize("character", [chr(code) for code in range(256)])
def test_ids_have_the_characters_that_edgefront_accepts(character):
    graphic = "!" <= character <= "~"
    unreserved = character.isascii() and (character.isalnum() or character in "-._~")
    for call, expected in [
        (Edge.login, graphic and character not in '{},"\\'),
        (Edge.tags, graphic and character != ","),
        (Edge.item, unreserved),
    ]:
        edge = visitor(Edge_Session="none")
        if expected:
            call(edge, f"a{character}")
        else:
            with pytest.raises(ValueError):
                call(edge, f"a{character}")


def test_a_login_is_never_declared_shared():
    edge = visitor(Edge_Session="none")
    edge.login("ada")
    headers = dict(edge.finish(200, [("Cache-Control", "public"), ("CDN-Cache-Control", "max-age=60")]))
    assert (headers["Cache-Control"], "CDN-Cache-Control" in headers) == ("private, no-store", False)


def test_a_shared_render_sends_no_directive_about_a_visitor():
    edge = visitor(Edge_Shared="1")
    edge.login("ada")
    edge.cart.add("mug")
    edge.item("mug")
    assert edge.directives() == [("Edge-Item", "mug")]
