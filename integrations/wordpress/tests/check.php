<?php
// A test runner of thirty lines: PHPUnit would need Composer.
declare(strict_types=1);

error_reporting(E_ALL);
set_error_handler(function (int $level, string $message, string $file, int $line): bool {
    // `@` silences an expected warning.
    if (error_reporting() & $level) {
        throw new ErrorException($message, 0, $level, $file, $line);
    }
    return true;
});

/** @param callable(): void $body */
function test(string $name, callable $body): void
{
    global $argv;
    static $failed = 0, $passed = 0;
    static $isRegistered = false;
    if (!$isRegistered) {
        $isRegistered = true;
        register_shutdown_function(function () use (&$failed, &$passed): void {
            echo "$passed passed, $failed failed\n";
            exit($failed === 0 && $passed > 0 ? 0 : 1);
        });
    }
    try {
        $body();
        $passed++;
        echo "ok   $name\n";
    } catch (Throwable $error) {
        $failed++;
        echo "FAIL $name\n     {$error->getMessage()} ({$error->getFile()}:{$error->getLine()})\n";
    }
}

/** @param mixed $expected @param mixed $found */
function equals($expected, $found, string $about = ''): void
{
    if ($expected !== $found) {
        throw new Exception("$about expected " . var_export($expected, true) . ', found ' . var_export($found, true));
    }
}

function throws(string $class, callable $body, ?int $code = null): void
{
    try {
        $body();
    } catch (Throwable $error) {
        equals($class, get_class($error));
        equals($code ?? $error->getCode(), $error->getCode());
        return;
    }
    throw new Exception("no $class");
}

/** edgefront's service API as a process: it records the calls in a file, and answers with the next status of another. */
final class Api
{
    public string $url;
    /** @var resource */
    private $process;
    private string $directory;

    public function __construct()
    {
        $this->directory = sys_get_temp_dir() . '/edgefront-' . bin2hex(random_bytes(8));
        mkdir($this->directory);
        $port = free_port();
        $this->url = "http://127.0.0.1:$port";
        $environment = getenv() + ['API_DIRECTORY' => $this->directory];
        $pipes = [];
        $output = ['file', '/dev/null', 'w'];
        $this->process = proc_open([PHP_BINARY, '-S', "127.0.0.1:$port", __DIR__ . '/api.php'], [1 => $output, 2 => $output], $pipes, null, $environment);
        wait_for_port($port);
    }

    /** @param int[] $statuses */
    public function answer(array $statuses): void
    {
        file_put_contents("$this->directory/statuses", json_encode($statuses));
    }

    /** The calls since the last one of this method. */
    public function calls(): array
    {
        $file = "$this->directory/calls";
        $lines = is_file($file) ? file($file, FILE_IGNORE_NEW_LINES) : [];
        @unlink($file);
        return array_map(fn (string $line): array => json_decode($line, true), $lines);
    }

    /** Runs also after `exit`. */
    public function __destruct()
    {
        proc_terminate($this->process);
        proc_close($this->process);
        array_map('unlink', glob("$this->directory/*"));
        rmdir($this->directory);
    }
}

function free_port(): int
{
    $socket = stream_socket_server('tcp://127.0.0.1:0');
    $port = (int) explode(':', stream_socket_get_name($socket, false))[1];
    fclose($socket);
    return $port;
}

function wait_for_port(int $port): void
{
    $end = microtime(true) + 60;
    while (!($socket = @fsockopen('127.0.0.1', $port))) {
        microtime(true) < $end || throw new Exception("nothing listens on port $port");
        usleep(50000);
    }
    fclose($socket);
}
