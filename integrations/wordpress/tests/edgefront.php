<?php
// The plugin in WordPress behind a running edgefront, which `cargo xtask test --integrations` starts.
// Usage: php edgefront.php DIR, after wordpress.php.
declare(strict_types=1);

require __DIR__ . '/check.php';

const KEY = 'the key of the test origin';

$url = getenv('EDGEFRONT_URL') ?: throw new Exception('run: cargo xtask test --integrations');
$port = (int) getenv('EDGEFRONT_ORIGIN_PORT');
$environment = ['ORIGIN_KEY' => KEY, 'API_URL' => $url, 'SERVICE_KEY' => getenv('EDGEFRONT_SERVICE_KEY')] + getenv();
$pipes = [];
$output = ['file', realpath($argv[1]) . '/test.log', 'a'];
$start = realpath(__DIR__ . '/../../../storefronts/wordpress/start');
$shop = proc_open(['setsid', $start, $argv[1], (string) $port, $url], [1 => $output, 2 => $output], $pipes, null, $environment);
register_shutdown_function(fn () => proc_terminate($shop) && proc_close($shop));
wait_for_port($port);

/** A browser's request. Returns the body and the header Cache-Status. */
function send(string $path, ?string $body = null, string $type = 'application/x-www-form-urlencoded'): array
{
    global $url;
    static $cookies = [];
    $pairs = array_map(fn (string $name): string => "$name=$cookies[$name]", array_keys($cookies));
    $headers = ["Content-Type: $type", 'Cookie: ' . implode('; ', $pairs)];
    $options = ['method' => $body === null ? 'GET' : 'POST', 'header' => $headers, 'content' => $body ?? '', 'ignore_errors' => true, 'follow_location' => 0];
    $text = file_get_contents($url . $path, false, stream_context_create(['http' => $options]));
    $status = '';
    foreach ($http_response_header as $line) {
        if (preg_match('/^Set-Cookie: ([^=]+)=([^;]*)/i', $line, $match)) {
            $cookies[$match[1]] = $match[2];
        } elseif (preg_match('/^Cache-Status: (.*)/i', $line, $match)) {
            $status = $match[1];
        }
    }
    return [$text, $status];
}

function eventually(callable $condition): void
{
    for ($end = microtime(true) + 60; !$condition();) {
        microtime(true) < $end || throw new Exception('never');
    }
}

$api = fn (string $path): array => json_decode(send("/_edge/v1$path")[0], true);
$run = fn (string $code) => json_decode(send('/contract/run', $code, 'text/plain')[0], true);

test('behind edgefront, a save purges its page, a login moves the cart, and an order counts', function () use ($api, $run): void {
    $post = $run('return get_page_by_path("steel-mug", OBJECT, "post")->ID;');
    $user = $run('return get_user_by("login", "visitor-1")->ID;');
    eventually(fn (): bool => str_contains(send('/steel-mug/')[1], '; hit'));
    $run("wp_update_post(['ID' => $post, 'post_content' => 'Saved behind edgefront']); return 1;");
    equals(true, str_contains(send('/steel-mug/')[0], 'Saved behind edgefront'));

    send('/contract/cart', "id=$post");
    equals(['user' => null, 'guest' => true, 'cart' => ['lines' => 1, 'quantity' => 2]], $api('/session'));
    send('/wp-login.php', 'log=visitor-1&pwd=visitor-password-1');
    equals(['user' => (string) $user, 'guest' => false, 'cart' => ['lines' => 1, 'quantity' => 2]], $api('/session'));

    send('/contract/order', 'pay=1');
    equals(0, $api('/cart')['quantity']);
    eventually(fn (): bool => $api("/items/$post/stats")['orders'] > 0);
});
