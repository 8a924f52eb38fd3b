<?php
// The web server's rules, as WordPress's .htaccess states them: existing files as they are, everything else to index.php.

$path = urldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '/');
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if (is_dir($file) && !str_ends_with($path, '/')) {
    header('Location: ' . $path . '/', true, 301);
    return true;
}
if ($path !== '/' && !str_contains($path, '..') && (is_file($file) || is_file($file . 'index.php'))) {
    return false;
}
$_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = '/index.php';
$_SERVER['SCRIPT_FILENAME'] = $_SERVER['DOCUMENT_ROOT'] . '/index.php';
chdir($_SERVER['DOCUMENT_ROOT']);
require $_SERVER['DOCUMENT_ROOT'] . '/index.php';
