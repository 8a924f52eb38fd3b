<?php
// The plugin in the WordPress of storefronts/wordpress. Usage: php wordpress.php DIR, where `install DIR` has run.
declare(strict_types=1);

require __DIR__ . '/check.php';

const KEY = 'the key of the test origin';
const PASSWORD = 'visitor-password-1';

$root = realpath($argv[1]) . '/root/usr/share/wordpress';
$plugin = "$root/wp-content/plugins/edgefront";
is_link($plugin) || symlink(realpath(__DIR__ . '/../edgefront'), $plugin);
@mkdir("$root/wp-content/mu-plugins");
copy(__DIR__ . '/contract.php', "$root/wp-content/mu-plugins/contract.php");

$api = new Api();
$port = free_port();
$url = "http://127.0.0.1:$port";
$environment = ['ORIGIN_KEY' => KEY, 'API_URL' => $api->url, 'CONTRACT_PASSWORD' => PASSWORD] + getenv();
$pipes = [];
$output = ['file', realpath($argv[1]) . '/test.log', 'w'];
$start = realpath(__DIR__ . '/../../../storefronts/wordpress/start');
$shop = proc_open(['setsid', $start, $argv[1], (string) $port, 'https://shop.example'], [1 => $output, 2 => $output], $pipes, null, $environment);
register_shutdown_function(fn () => proc_terminate($shop) && proc_close($shop));
wait_for_port($port);


/** A request through edgefront. Returns status, header lines and body. */
function request(string $path, string $session = 'none', array $more = [], ?string $body = null): array
{
    global $url;
    $headers = ['Edge-Key: ' . KEY, "Edge-Session: $session", 'X-Forwarded-Host: shop.example', 'X-Forwarded-Proto: https', 'X-Real-IP: 192.0.2.7'];
    $options = ['method' => $body === null ? 'GET' : 'POST', 'header' => [...$headers, ...$more], 'content' => $body ?? '', 'ignore_errors' => true, 'follow_location' => 0];
    $text = file_get_contents($url . $path, false, stream_context_create(['http' => $options]));
    preg_match('~^HTTP/\S+ (\d+)~', $http_response_header[0], $match);
    return ['status' => (int) $match[1], 'headers' => $http_response_header, 'body' => $text];
}

/** Runs PHP in the shop, as a request of nobody. Returns its value. */
function run(string $code)
{
    ['body' => $body] = request('/contract/run', 'none', ['Content-Type: text/plain'], $code);
    return json_decode($body, true) ?? throw new Exception($body);
}

function header_of(array $response, string $name): ?string
{
    $lines = preg_grep('/^' . preg_quote($name, '/') . ':/i', $response['headers']);
    return $lines ? trim(explode(':', end($lines), 2)[1]) : null;
}

/** The names of all purges since the last call. */
function purged(string $kind): array
{
    global $api;
    $bodies = array_column($api->calls(), 'body');
    return array_merge(...array_map(fn (?array $body): array => $body[$kind] ?? [], $bodies ?: [null]));
}

$post = run('return get_page_by_path("steel-mug", OBJECT, "post")->ID;');
$user = run('return get_user_by("login", "visitor-1")->ID;');
$other = run('return get_user_by("login", "visitor-2")->ID;');
$api->calls();

test('WordPress keeps the contract', function () use ($url, $post, $user, $other, $environment): void {
    $program = getenv('EDGEFRONT_CONTRACT') ?: throw new Exception('set EDGEFRONT_CONTRACT, or run: cargo xtask test --integrations');
    $options = [
        $url, '--public-url=https://shop.example', '--product=/steel-mug/', "--item=$post", "--user=$user", "--other-user=$other",
        '--account=/contract/account', '--mark=Hello visitor-1!', '--login=/wp-login.php', '--login-form=log=visitor-1&pwd={password}',
        '--logout=/contract/logout', '--cart=/contract/cart', "--cart-form=id=$post", '--cart-page=/contract/cart', '--order=/contract/order',
        '--rows=/wp-json/edgefront/v1/rows', '--row=7',
    ];
    $pipes = [];
    $process = proc_open([$program, ...$options], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes, null, $environment);
    $report = stream_get_contents($pipes[1]) . stream_get_contents($pipes[2]);
    equals(0, proc_close($process), $report);
    equals(true, str_contains($report, ' 0 broken') && str_contains($report, "edge-item: $post"), $report);
    echo '     ', implode("\n     ", preg_grep('/^not checked|hold,/', explode("\n", $report))), "\n";
});

test('a public page is shared, and a page of a user is not', function () use ($user): void {
    equals('public, max-age=300, stale-while-revalidate=60', header_of(request('/steel-mug/'), 'Cache-Control'));
    equals('private, no-store', header_of(request('/steel-mug/', 'user', ["Edge-User: $user"]), 'Cache-Control'));
    equals('private, no-store', header_of(request('/steel-mug/', 'none', ['Cookie: comment_author_x=Vera']), 'Cache-Control'));
});

test('a list has tags', function (): void {
    equals('lists', header_of(request('/'), 'Edge-Tags'));
    equals(1, preg_match('/^term-\d+$/', (string) header_of(request('/category/garden/'), 'Edge-Tags')));
});

test('WordPress sees the address of the visitor', function (): void {
    equals(true, str_contains(request('/contract/account')['body'], '192.0.2.7'));
});

test('a saved post is purged once, with its lists', function () use ($post): void {
    purged('items');
    run("wp_update_post(['ID' => $post, 'post_content' => 'New']); wp_update_post(['ID' => $post, 'post_content' => 'Newer']); return 1;");
    global $api;
    $calls = $api->calls();
    equals(1, count($calls));
    equals([(string) $post], $calls[0]['body']['items']);
    equals(true, in_array('lists', $calls[0]['body']['tags'], true) && (bool) preg_grep('/^term-/', $calls[0]['body']['tags']));
});

test('a post that leaves a term purges the list of that term', function () use ($post): void {
    [$moved, $removed, $deleted] = run('return array_map(fn () => wp_insert_term(uniqid("term-"), "category")["term_id"], [1, 2, 3]);');
    $tags = function (string $code): array {
        run("$code; return 1;");
        return purged('tags');
    };
    $tags("wp_set_post_categories($post, [$moved, $removed, $deleted])");
    $found = $tags("wp_set_post_categories($post, [$removed, $deleted])");
    equals(['lists', "term-$moved"], array_values(array_intersect($found, ['lists', "term-$moved"])));
    equals(true, in_array("term-$removed", $tags("wp_remove_object_terms($post, $removed, 'category')"), true));
    equals(true, in_array("term-$deleted", $tags("wp_delete_term($deleted, 'category')"), true));
    // No post has this term.
    equals(["term-$moved", 'lists'], $tags("wp_delete_term($moved, 'category')"));
});

test('a draft revision is not purged', function () use ($post): void {
    run("_wp_put_post_revision($post); return 1;");
    equals([], purged('items'));
});

test('a comment purges its post when it is published', function () use ($post): void {
    $comment = fn (int $approved): string => "return wp_insert_comment(['comment_post_ID' => $post, 'comment_content' => 'Good.', 'comment_approved' => $approved]);";
    $id = run($comment(0));
    equals([], purged('items'));
    run("return wp_set_comment_status($id, 'approve');");
    equals([(string) $post], purged('items'));
    run($comment(1));
    equals([(string) $post], purged('items'));
});

test('a change of stock purges its product', function (): void {
    request('/contract/stock');
    equals(['7'], purged('items'));
});

test('a failed purge is tried again by a cron event, and ends', function () use ($api, $post): void {
    $api->answer(array_fill(0, 100, 503));
    run("wp_update_post(['ID' => $post, 'post_content' => 'Later']); return 1;");
    equals(true, run('return (bool) wp_next_scheduled("edgefront_retry");'));
    for ($try = 1; $try <= 5; $try++) {
        equals([(string) $post], run('return get_option("edgefront_waiting")["names"]["items"];'));
        run('do_action("edgefront_retry"); return 1;');
    }
    equals(false, run('return get_option("edgefront_waiting");'));
    $api->answer([]);
    $api->calls();
    run("wp_update_post(['ID' => $post, 'post_content' => 'Again']); return 1;");
    equals([(string) $post], purged('items'));
});

test('names that come while the last try fails are not dropped', function () use ($api, $post): void {
    $api->answer(array_fill(0, 6, 503));
    run("wp_update_post(['ID' => $post, 'post_content' => 'Last try']); return 1;");
    $waiting = run('
        $waiting = get_option("edgefront_waiting");
        update_option("edgefront_waiting", ["tries" => 4] + $waiting);
        add_filter("pre_update_option_edgefront_last_purge", function ($value) {
            update_option("edgefront_waiting", ["names" => ["items" => ["other"]], "all" => null, "tries" => 0]);
            return $value;
        });
        do_action("edgefront_retry");
        return get_option("edgefront_waiting");
    ');
    equals(['other'], $waiting['names']['items'] ?? null);
    run('do_action("edgefront_retry"); return 1;');
    equals(true, in_array('other', purged('items'), true));
});

/** Runs PHP in the shop as a visitor. Returns the header Edge-Logout, Edge-Login, and the users whose sessions the API has ended. */
function changed(string $code, string $session = 'none', array $more = []): array
{
    global $api;
    $api->calls();
    $response = request('/contract/run', $session, ['Content-Type: text/plain', ...$more], "$code; return 1;");
    equals('1', $response['body']);
    $calls = array_filter($api->calls(), fn (array $call): bool => $call['method'] === 'DELETE');
    $users = array_map(fn (array $call): int => (int) explode('/', $call['path'])[4], array_values($calls));
    return [header_of($response, 'Edge-Logout'), header_of($response, 'Edge-Login'), $users];
}

// `visitor-1` keeps the password, with which the tests sign in.
$third = run('return wp_insert_user(["user_login" => uniqid("visitor-"), "user_pass" => uniqid()]);');

test('a new password names the user in the response', function () use ($user, $other, $third): void {
    $change = fn (int $id): string => "wp_update_user(['ID' => $id, 'user_pass' => uniqid()])";
    equals(["user=$other", null, []], changed($change($other)));
    equals(["user=$other", null, []], changed($change($other), 'user', ["Edge-User: $user"]));
    equals(["user=$other", null, []], changed("reset_password(get_userdata($other), uniqid())"));
    // A response names one user.
    equals(["user=$other", null, [$third]], changed("{$change($other)}; {$change($third)}"));
});

test('a visitor with a new password stays signed in', function () use ($other): void {
    $code = "wp_update_user(['ID' => $other, 'user_pass' => uniqid()])";
    equals([null, (string) $other, [$other]], changed($code, 'user', ["Edge-User: $other"]));
});

test('the visitor signs in again if the sessions cannot end before the login', function () use ($api, $other): void {
    $api->answer([503]);
    $code = "wp_update_user(['ID' => $other, 'user_pass' => uniqid()])";
    // No retry: the visitor waits.
    equals(["user=$other", null, [$other]], changed($code, 'user', ["Edge-User: $other"]));
});

test('the end of sessions is tried again by a cron event, also beside a purge of all pages', function () use ($api, $third, $other): void {
    $reset = fn (int $id): string => "reset_password(get_userdata($id), uniqid())";
    $api->answer(array_fill(0, 6, 503));
    run("edgefront_purge_all(); {$reset($other)}; {$reset($third)}; return 1;");
    $api->calls();
    run('do_action("edgefront_retry"); return 1;');
    $calls = array_map(fn (array $call): string => "$call[method] $call[path]", $api->calls());
    equals(["DELETE /_edge/v1/users/$third/sessions", 'POST /_edge/v1/purge'], $calls);
});

test('the status page shows the settings and no key', function () use ($api): void {
    $page = run('require_once ABSPATH . "wp-admin/includes/template.php"; ob_start(); edgefront_status_page(); return ob_get_clean();');
    foreach (['refused', 'came through edgefront', $api->url, 'Last purge'] as $text) {
        equals(true, str_contains($page, $text), $text);
    }
    equals(false, str_contains($page, KEY) || str_contains($page, 'the service key'));
});
