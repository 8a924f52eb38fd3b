<?php
declare(strict_types=1);

namespace Edgefront;

/** Calls of edgefront's service API. Purges and the calls `…Later` are collected; `flush` sends them. */
final class Service
{
    /** Bytes of names in one call. edgefront accepts a body of 64 KiB. */
    private const MAX_BYTES = 12000;
    /** If more names wait, one soft purge of all pages replaces them. */
    private const MAX_WAITING = 5000;

    private string $api;
    private string $key;
    private float $timeout;
    /** Seconds before each retry. @var float[] */
    private array $pauses;
    /** @var array<string, array{string, string}> */
    private array $waiting = [];
    /** The users whose sessions `flush` ends. @var array<string, string> */
    private array $ending = [];

    /** @param float[] $pauses */
    public function __construct(string $url, string $key, float $timeout = 3, array $pauses = [0.2, 1])
    {
        if (!preg_match('~^https?://~', $url)) {
            throw new \InvalidArgumentException('the address must begin with http:// or https://');
        }
        [$this->api, $this->key, $this->timeout, $this->pauses] = [rtrim($url, '/') . '/_edge/v1', $key, $timeout, $pauses];
    }

    /** Collects `['items' => […], 'tags' => […], 'urls' => […]]`. Never throws for a name. */
    public function purge(array $names): void
    {
        foreach (['items', 'tags', 'urls'] as $kind) {
            foreach ($names[$kind] ?? [] as $name) {
                $name = (string) $name;
                $isValid = $kind === 'items' ? Edge::isItem($name) : ($kind === 'tags' ? Edge::isTag($name) : $name !== '');
                if ($isValid) {
                    $this->waiting["$kind $name"] = [$kind, $name];
                } else {
                    error_log("edgefront cannot purge $kind " . json_encode($name, JSON_INVALID_UTF8_SUBSTITUTE) . ': the name is not valid');
                }
            }
        }
        if (count($this->waiting) > self::MAX_WAITING) {
            $this->purgeAll();
        }
    }

    /** One soft purge of all pages, in place of all names. */
    public function purgeAll(): void
    {
        $this->waiting = ['all' => ['all', '']];
    }

    /** Sends what was collected. Returns the names and `users` that edgefront did not take, for a later try. */
    public function flush(): array
    {
        $users = array_values($this->ending);
        $this->ending = [];
        // One failure ends the calls: each one waits for edgefront.
        while ($users !== [] && $this->endSessions($users[0])) {
            array_shift($users);
        }
        $names = isset($this->waiting['all']) ? [['all', '']] : array_values($this->waiting);
        $this->waiting = [];
        $failed = $users === [] ? [] : ['users' => $users];
        foreach (self::bodies($names) as $body) {
            if (!$this->send('POST', '/purge', $body)) {
                $failed = array_merge_recursive($failed, $body);
            }
        }
        return $failed;
    }

    /** Ends all sessions of a user at edgefront. Waits for the answer. @param string|int $user */
    public function endSessions($user, bool $retries = true): bool
    {
        return $this->send('DELETE', '/users/' . rawurlencode((string) $user) . '/sessions', null, $retries);
    }

    /** Ends all sessions of a user at edgefront with the next `flush`. @param string|int $user */
    public function endSessionsLater($user): void
    {
        $this->ending[(string) $user] = (string) $user;
    }

    /** Refreshes a row every `$every` seconds. 0 deletes its schedule and its copy. @param string|int $row */
    public function scheduleRow($row, float $every): bool
    {
        return $this->send('PUT', '/rows/' . rawurlencode((string) $row) . '/schedule', ['every' => $every]);
    }

    /** The status of a GET of this API, 0 without a response. */
    public function status(string $path): int
    {
        return $this->exchange('GET', $path, null);
    }

    private function send(string $method, string $path, ?array $body, bool $retries = true): bool
    {
        foreach (array_merge($retries ? $this->pauses : [], [null]) as $pause) {
            $status = $this->exchange($method, $path, $body);
            if ($status >= 200 && $status < 300) {
                return true;
            }
            if ($pause === null || ($status >= 300 && $status < 500 && $status !== 429)) {
                error_log("edgefront: $method $path failed: status $status");
                return false;
            }
            usleep((int) ($pause * 1000000));
        }
        return false;
    }

    private function exchange(string $method, string $path, ?array $body): int
    {
        $context = stream_context_create(['http' => [
            'method' => $method,
            'header' => ["Authorization: Bearer $this->key", 'Content-Type: application/json'],
            'content' => $body === null ? '' : json_encode($body),
            'timeout' => $this->timeout,
            'ignore_errors' => true,
            // A redirect would send the key to another address.
            'follow_location' => 0,
        ]]);
        $stream = @fopen($this->api . $path, 'r', false, $context);
        if ($stream === false) {
            return 0;
        }
        $lines = stream_get_meta_data($stream)['wrapper_data'] ?? [];
        fclose($stream);
        return preg_match('~^HTTP/\S+ (\d{3})~', $lines[0] ?? '', $match) ? (int) $match[1] : 0;
    }

    private static function bodies(array $names): array
    {
        if (($names[0][0] ?? '') === 'all') {
            return [['all' => true, 'soft' => true]];
        }
        [$bodies, $size] = [[], self::MAX_BYTES];
        foreach ($names as [$kind, $name]) {
            $length = strlen((string) json_encode($name)) + 1;
            if ($size + $length > self::MAX_BYTES) {
                $bodies[] = [];
                $size = 0;
            }
            $bodies[count($bodies) - 1][$kind][] = $name;
            $size += $length;
        }
        return $bodies;
    }
}
