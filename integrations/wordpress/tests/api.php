<?php
// The router of `Api` in check.php.
$directory = getenv('API_DIRECTORY');
$call = [
    'method' => $_SERVER['REQUEST_METHOD'], 'path' => $_SERVER['REQUEST_URI'], 'key' => $_SERVER['HTTP_AUTHORIZATION'] ?? '',
    'body' => json_decode((string) file_get_contents('php://input'), true),
];
file_put_contents("$directory/calls", json_encode($call) . "\n", FILE_APPEND);
$statuses = json_decode((string) @file_get_contents("$directory/statuses"), true) ?: [200];
$status = array_shift($statuses);
file_put_contents("$directory/statuses", json_encode($statuses));
http_response_code($status);
if ($status === 302) {
    header('Location: /elsewhere');
}
echo '{}';
