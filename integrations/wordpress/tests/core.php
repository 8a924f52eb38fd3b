<?php
// The core without WordPress. Usage: php core.php
declare(strict_types=1);

require __DIR__ . '/check.php';
require __DIR__ . '/../edgefront/core/Edge.php';
require __DIR__ . '/../edgefront/core/Service.php';

use Edgefront\{Edge, Keys, Refused, Service};

const KEY = 'the key of the test origin';
ini_set('error_log', '/dev/null');

function visitor(array $headers = []): Edge
{
    return Edge::read(['Edge-Key' => KEY] + $headers, new Keys(KEY));
}

test('only the right key is accepted', function (): void {
    foreach ([null, '', substr(KEY, 0, -1), KEY . 'x', strtoupper(KEY), KEY . ',' . KEY] as $key) {
        throws(Refused::class, fn () => Edge::read(['Edge-Key' => $key, 'Edge-Session' => 'user', 'Edge-User' => '1'], new Keys(KEY)), 403);
    }
    equals(true, (new Keys(['the new key of the origin', KEY]))->match(KEY));
    foreach (['', 'short', []] as $key) {
        throws(InvalidArgumentException::class, fn () => new Keys($key));
    }
});

test('another spelling of a header is not believed', function (): void {
    $edge = visitor(['Edge-Session' => 'none', 'Edge_User' => '1', 'Edge_Session' => 'user']);
    equals(['none', null], [$edge->session, $edge->user]);
    $_SERVER += ['HTTP_EDGE_USER' => '1', 'HTTP_EDGE.USER' => '2', 'HTTP_X_FORWARDED_FOR' => '3', 'HTTP_EDGER' => '4'];
    equals(3, count(Edge::takeClaims()));
    equals(['HTTP_EDGER' => '4'], array_filter($_SERVER, fn ($name) => str_starts_with((string) $name, 'HTTP_'), ARRAY_FILTER_USE_KEY));
});

test('values that break the contract are refused', function (): void {
    foreach ([['Edge-Session' => 'admin'], ['Edge-Session' => 'user'], ['Edge-Session' => 'user', 'Edge-User' => '1,2'], ['Edge-Session' => 'user', 'Edge-User' => "1\n"],
        ['Edge-Cart' => '[]'], ['Edge-Cart' => '{"a/b":1}'], ['Edge-Cart' => '{"mug":"2"}'], ['Edge-Reservation' => 'x']] as $headers) {
        throws(Refused::class, fn () => visitor($headers), 400);
    }
});

test('a visitor has the session, cart and address that edgefront names', function (): void {
    $edge = visitor(['edge-session' => 'user', 'Edge-User' => '7', 'Edge-Cart' => '{"mug":2,"42":1}', 'X-Real-IP' => '2001:db8::1', 'X-Forwarded-Host' => 'shop.example', 'X-Forwarded-Proto' => 'https']);
    equals(['user', '7', ['mug' => 2, 42 => 1]], [$edge->session, $edge->user, $edge->cart]);
    equals(['2001:db8::1', 'shop.example', 'https'], [$edge->address, $edge->host, $edge->scheme]);
    $edge = visitor(['X-Real-IP' => '1.2.3.4, 5.6.7.8', 'X-Forwarded-Host' => 'a/b', 'X-Forwarded-Proto' => 'ftp']);
    equals([null, null, null], [$edge->address, $edge->host, $edge->scheme]);
});

test('a shared render has no visitor and no directive about one', function (): void {
    $edge = visitor(['Edge-Shared' => '1', 'Edge-Session' => 'user', 'Edge-User' => '7']);
    equals([true, null, null], [$edge->shared, $edge->session, $edge->user]);
    $edge->login(7);
    $edge->item('mug');
    equals(['Edge-Item' => 'mug'], $edge->directives());
});

test('values that edgefront would ignore are errors', function (): void {
    foreach ([fn (Edge $edge) => $edge->login("a\r\nEdge-Login: b"), fn (Edge $edge) => $edge->item('a/b'), fn (Edge $edge) => $edge->item("mug\n"),
        fn (Edge $edge) => $edge->tags('a,b'), fn (Edge $edge) => $edge->tags(...range(1, 33)), fn (Edge $edge) => $edge->addToCart('mug', 0),
        fn (Edge $edge) => $edge->order('A 1', ['mug' => 1]), fn (Edge $edge) => $edge->order('A-1', [])] as $call) {
        $edge = visitor();
        throws(InvalidArgumentException::class, fn () => $call($edge));
        equals([], $edge->directives());
    }
});

test('an order may leave the cart alone', function (): void {
    $edge = visitor();
    $edge->order('A-1', ['mug' => 1], null, false);
    equals(['Edge-Order' => '{"order_id":"A-1","items":[{"id":"mug","quantity":1}],"in_cart":false}'], $edge->directives());
});

test('directives are one line each', function (): void {
    $edge = visitor();
    $edge->order('A-1', ['mug' => 2, 42 => 1]);
    $edge->setInCart('mug', 0);
    $edge->logout();
    $edge->login(7);
    equals([
        'Edge-Order' => '{"order_id":"A-1","items":[{"id":"mug","quantity":2},{"id":"42","quantity":1}]}',
        'Edge-Login' => '7',
        'Edge-Cart' => '[{"op":"set","id":"mug","quantity":0}]',
    ], $edge->directives());
});

test('a logout may name a user, and then wins over a login', function (): void {
    $edge = visitor(['Edge-Session' => 'user', 'Edge-User' => '5']);
    $edge->logout(false, 7);
    equals(['Edge-Logout' => 'user=7'], $edge->directives());
    // edgefront would execute the login only, and the sessions of the user would stay.
    $edge->login(7);
    equals(['Edge-Logout' => 'user=7'], $edge->directives());
    $edge->logout();
    equals(['Edge-Login' => '7'], $edge->directives());
});

test("a logout of the visitor's user includes the visitor's session", function (): void {
    $edge = visitor(['Edge-Session' => 'user', 'Edge-User' => '5']);
    $edge->logout(false, 5);
    $edge->logout();
    equals(['Edge-Logout' => 'user=5'], $edge->directives());
});

test('an error of the server claims no order and no login', function (): void {
    $edge = visitor();
    $edge->login(7);
    $edge->logout();
    $edge->addToCart('mug');
    $edge->order('A-1', ['mug' => 1]);
    equals(['Edge-Logout' => '1'], $edge->directives(500));
});

test('ids have the characters that edgefront accepts', function (): void {
    $accepts = function (callable $call): bool {
        try {
            $call(visitor());
            return true;
        } catch (InvalidArgumentException $error) {
            return false;
        }
    };
    for ($code = 0; $code < 256; $code++) {
        $character = chr($code);
        $graphic = $code > 32 && $code < 127;
        equals($graphic && !str_contains('{},"\\', $character), $accepts(fn (Edge $edge) => $edge->login("a$character")), "user $code");
        equals($graphic && $character !== ',', $accepts(fn (Edge $edge) => $edge->tags("a$character")), "tag $code");
        equals($graphic && preg_match('/[A-Za-z0-9._~-]/', $character) === 1, $accepts(fn (Edge $edge) => $edge->item("a$character")), "item $code");
    }
});

test('a response of one visitor is not shared', function (): void {
    $share = function (?callable $prepare = null, int $status = 200, array $lines = []): string {
        $edge = visitor();
        $edge->share(60, 30);
        $prepare && $prepare($edge);
        return $edge->finish($status, $lines)['Cache-Control'];
    };
    equals('public, max-age=60, stale-while-revalidate=30', $share());
    equals('private, no-store', $share(fn (Edge $edge) => $edge->touch('the user')));
    equals('private, no-store', $share(fn (Edge $edge) => $edge->login(7)));
    equals('private, no-store', $share(null, 200, ['Set-Cookie: a=b']));
    equals('private, no-store', $share(null, 404));
});

test('a 304 confirms that a page is shared, unless it belongs to one visitor', function (): void {
    foreach ([[null, 'public, max-age=60, stale-while-revalidate=30'], ['the user', 'private, no-store']] as [$cause, $expected]) {
        $edge = visitor();
        $edge->share(60, 30);
        $cause && $edge->touch($cause);
        equals($expected, $edge->finish(304, [])['Cache-Control']);
    }
});

$api = new Api();
$service = fn (): Service => new Service($api->url, 'the service key', 3, [0, 0]);

test('purges are collected into one call', function () use ($api, $service): void {
    $edgefront = $service();
    $edgefront->purge(['items' => ['mug', 42]]);
    $edgefront->purge(['items' => ['mug', 'a/b'], 'tags' => ['kitchen'], 'urls' => ['/about']]);
    equals([], $api->calls());
    equals([], $edgefront->flush());
    $body = ['items' => ['mug', '42'], 'tags' => ['kitchen'], 'urls' => ['/about']];
    equals([['method' => 'POST', 'path' => '/_edge/v1/purge', 'key' => 'Bearer the service key', 'body' => $body]], $api->calls());
    equals([], $edgefront->flush());
});

test('a failed purge is tried three times, and its names are returned', function () use ($api, $service): void {
    $edgefront = $service();
    $api->answer([503, 429]);
    $edgefront->purge(['items' => ['mug']]);
    equals([], $edgefront->flush());
    equals(3, count($api->calls()));
    $api->answer([503, 503, 503]);
    $edgefront->purge(['items' => ['mug']]);
    equals(['items' => ['mug']], $edgefront->flush());
    equals(3, count($api->calls()));
});

test('the ends of sessions are collected, and the users after a failure are returned', function () use ($api, $service): void {
    $edgefront = $service();
    $users = fn (): array => array_map(fn (array $call): string => explode('/', $call['path'])[4], $api->calls());
    array_map([$edgefront, 'endSessionsLater'], [5, 6, 5, 7]);
    equals([], $users());
    $api->answer([200, 503, 503, 503]);
    equals(['users' => ['6', '7']], $edgefront->flush());
    equals(['5', '6', '6', '6'], $users());
    equals([], $edgefront->flush());
    $api->answer([503]);
    equals(false, $edgefront->endSessions(5, false));
    equals(['5'], $users());
});

test('a refusal is not retried, and no redirect gets the key', function () use ($api, $service): void {
    foreach ([401, 302] as $status) {
        $edgefront = $service();
        $api->answer([$status]);
        $edgefront->purge(['items' => ['mug']]);
        $edgefront->flush();
        equals(1, count($api->calls()));
    }
});

test('many names are split, and too many purge all pages', function () use ($api, $service): void {
    $edgefront = $service();
    $edgefront->purge(['items' => array_map(fn (int $n): string => str_pad((string) $n, 60, '0', STR_PAD_LEFT), range(1, 1000))]);
    $edgefront->flush();
    $calls = $api->calls();
    equals([true, 1000], [count($calls) > 1, array_sum(array_map(fn (array $call): int => count($call['body']['items']), $calls))]);
    $edgefront->purge(['items' => range(1, 6000)]);
    $edgefront->flush();
    equals([['all' => true, 'soft' => true]], array_column($api->calls(), 'body'));
});
