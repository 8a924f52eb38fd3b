<?php
declare(strict_types=1);

namespace Edgefront;

/** The request has no right `Edge-Key` (403), or breaks the contract (400). The code is the status. */
final class Refused extends \RuntimeException {}

/** The origin's key, or a list of keys during a rotation. */
final class Keys
{
    /** @var string[] */
    private array $keys;

    /** @param string|string[] $keys */
    public function __construct($keys)
    {
        $this->keys = array_values((array) $keys);
        foreach ($this->keys ?: [''] as $key) {
            if (strlen($key) < 16) {
                throw new \InvalidArgumentException('ORIGIN_KEY must have at least 16 characters');
            }
        }
    }

    /** Compares in constant time. */
    public function match(?string $key): bool
    {
        $isRight = false;
        foreach ($this->keys as $own) {
            $isRight = hash_equals($own, $key ?? '') || $isRight;
        }
        return $isRight;
    }
}

/**
 * One request as edgefront describes it, and the directives of its response. A method that names a value throws
 * `InvalidArgumentException` if edgefront would ignore the value.
 */
final class Edge
{
    private const ITEM = '/^(?!\.\.?$)[A-Za-z0-9._~-]{1,64}$/D';
    private const USER = '/^(?!\.\.?$)[!#-+\--\[\]-z|~]{1,128}$/D';
    private const TAG = '/^(?!\.\.?$)[!-+\--~]{1,64}$/D';
    private const HOST = '/^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$/D';
    private const PERSONAL = ['Edge-Login', 'Edge-Logout', 'Edge-Cart', 'Edge-Order'];

    /** True if the request came through edgefront. */
    public bool $verified = false;
    /** True if the request is a shared render: it has no visitor. */
    public bool $shared = false;
    /** `user`, `guest`, `none` or `unknown`; null without a visitor. */
    public ?string $session = null;
    public ?string $user = null;
    /** Item → quantity, on the paths of `CART_ROUTES`. Null: Redis did not answer. */
    public ?array $cart = null;
    public ?array $reservation = null;
    public ?string $address = null;
    public ?string $host = null;
    public ?string $scheme = null;
    private array $headers = [];
    private array $tags = [];
    private array $operations = [];
    private ?string $share = null;
    private ?string $touched = null;

    /**
     * Reads the headers of this process's request, and removes from `$_SERVER` those that count only with the right key.
     * Sets the address of the client, the host and the scheme.
     *
     * @throws Refused
     */
    public static function ofRequest(Keys $keys): self
    {
        // The names as they were sent: `$_SERVER` has the same name for `Edge-User` and `Edge_User`.
        $headers = function_exists('getallheaders') ? getallheaders() : [];
        $claims = self::takeClaims();
        $edge = self::read($headers ?: $claims, $keys);
        if ($edge->address !== null) {
            $_SERVER['REMOTE_ADDR'] = $edge->address;
        }
        if ($edge->host !== null) {
            $_SERVER['HTTP_HOST'] = $edge->host;
        }
        if ($edge->scheme !== null) {
            $_SERVER['HTTPS'] = $edge->scheme === 'https' ? 'on' : 'off';
            $_SERVER['REQUEST_SCHEME'] = $edge->scheme;
            $_SERVER['SERVER_PORT'] = $edge->scheme === 'https' ? '443' : '80';
        }
        return $edge;
    }

    /** Removes the headers that count only with the right key from `$_SERVER`, and returns them. */
    public static function takeClaims(): array
    {
        $claims = [];
        foreach (array_keys($_SERVER) as $variable) {
            $name = is_string($variable) && strncmp($variable, 'HTTP_', 5) === 0 ? strtr(substr($variable, 5), '_', '-') : '';
            if (self::isClaim($name)) {
                $claims[$name] = $_SERVER[$variable];
                unset($_SERVER[$variable]);
            }
        }
        return $claims;
    }

    /** Returns whether a header is believed only with the right key. `Edge_User` counts: CGI reads it as `Edge-User`. */
    public static function isClaim(string $name): bool
    {
        return preg_match('/^(edge(?![a-z0-9])|(x[-_]forwarded([-_].*)?|forwarded|x[-_]real[-_]ip)$)/iD', $name) === 1;
    }

    /**
     * @param array<string, string> $headers
     * @throws Refused
     */
    public static function read(array $headers, Keys $keys): self
    {
        $headers = array_change_key_case($headers);
        if (!$keys->match($headers['edge-key'] ?? null)) {
            throw new Refused('This address answers edgefront only.', 403);
        }
        $edge = new self();
        $edge->verified = true;
        $host = $headers['x-forwarded-host'] ?? '';
        $scheme = $headers['x-forwarded-proto'] ?? '';
        $edge->host = preg_match(self::HOST, $host) ? $host : null;
        $edge->scheme = in_array($scheme, ['http', 'https'], true) ? $scheme : null;
        $edge->address = filter_var($headers['x-real-ip'] ?? '', FILTER_VALIDATE_IP) ?: null;
        if (isset($headers['edge-shared'])) {
            $edge->shared = true;
            return $edge;
        }
        $edge->session = $headers['edge-session'] ?? null;
        if (!in_array($edge->session, [null, 'user', 'guest', 'none', 'unknown'], true)) {
            throw new Refused('Edge-Session is not valid.', 400);
        }
        if ($edge->session === 'user') {
            $edge->user = $headers['edge-user'] ?? '';
            if (!preg_match(self::USER, $edge->user)) {
                throw new Refused('Edge-User is not valid.', 400);
            }
        }
        $edge->cart = self::readObject('Edge-Cart', $headers['edge-cart'] ?? null);
        foreach ($edge->cart ?? [] as $item => $quantity) {
            if (!self::isItem((string) $item) || !is_int($quantity) || $quantity < 1) {
                throw new Refused('Edge-Cart is not valid.', 400);
            }
        }
        $edge->reservation = self::readObject('Edge-Reservation', $headers['edge-reservation'] ?? null);
        return $edge;
    }

    public static function isItem(string $text): bool
    {
        return preg_match(self::ITEM, $text) === 1;
    }

    public static function isTag(string $text): bool
    {
        return preg_match(self::TAG, $text) === 1;
    }

    /** `Edge-Login`: starts a session of this user. @param string|int $user */
    public function login($user): void
    {
        $this->headers['Edge-Login'] = self::checked(self::USER, 'user', $user);
    }

    /**
     * `Edge-Logout`: ends the visitor's session, all sessions of its user, or all sessions of the named user. The last call
     * counts. A named user wins over a login, because edgefront would execute the login only.
     *
     * @param string|int|null $user
     */
    public function logout(bool $everywhere = false, $user = null): void
    {
        if ($user !== null) {
            $this->headers['Edge-Logout'] = 'user=' . self::checked(self::USER, 'user', $user);
        } elseif ($this->user === null || ($this->headers['Edge-Logout'] ?? null) !== "user=$this->user") {
            $this->headers['Edge-Logout'] = $everywhere ? 'all' : '1';
        }
    }

    /** Returns whether the response can name this user in `Edge-Logout`. It names one user, and starts no session. @param string|int $user */
    public function canLogOut($user): bool
    {
        $isFree = in_array($this->headers['Edge-Logout'] ?? null, [null, "user=$user"], true) && !isset($this->headers['Edge-Login']);
        return $this->verified && !$this->shared && $isFree && !headers_sent();
    }

    /** `Edge-Item`: the item that the page shows. @param string|int $item */
    public function item($item): void
    {
        $this->headers['Edge-Item'] = self::checked(self::ITEM, 'item', $item);
    }

    /** `Edge-Tags`: names for a purge of this page, at most 32. @param string|int ...$tags */
    public function tags(...$tags): void
    {
        $all = $this->tags;
        foreach ($tags as $tag) {
            $all[self::checked(self::TAG, 'tag', $tag)] = true;
        }
        if (count($all) > 32) {
            throw new \InvalidArgumentException('a page has at most 32 tags');
        }
        $this->tags = $all;
    }

    /**
     * `Edge-Order`: the visitor bought these quantities. `$inCart = false` leaves the cart alone, such as for a piece of a flash sale.
     *
     * @param string|int $orderId
     * @param array<string|int, int> $items
     */
    public function order($orderId, array $items, ?array $reservation = null, bool $inCart = true): void
    {
        if (count($items) < 1 || count($items) > 500) {
            throw new \InvalidArgumentException('an order has 1 to 500 items');
        }
        $lines = [];
        foreach ($items as $item => $quantity) {
            $lines[] = ['id' => self::checked(self::ITEM, 'item', $item), 'quantity' => self::quantity($quantity, 1)];
        }
        $order = ['order_id' => self::checked(self::ITEM, 'order_id', $orderId), 'items' => $lines];
        $order += $inCart ? [] : ['in_cart' => false];
        $this->headers['Edge-Order'] = self::json($reservation === null ? $order : $order + ['reservation' => $reservation]);
    }

    /** @param string|int $item */
    public function addToCart($item, int $quantity = 1): void
    {
        $this->change(['op' => 'add', 'id' => self::checked(self::ITEM, 'item', $item), 'quantity' => self::quantity($quantity, 1)]);
    }

    /** 0 removes the item. @param string|int $item */
    public function setInCart($item, int $quantity): void
    {
        $this->change(['op' => 'set', 'id' => self::checked(self::ITEM, 'item', $item), 'quantity' => self::quantity($quantity, 0)]);
    }

    public function clearCart(): void
    {
        $this->change(['op' => 'clear']);
    }

    private function change(array $operation): void
    {
        if (count($this->operations) >= 100) {
            throw new \InvalidArgumentException('a response has at most 100 changes of the cart');
        }
        $this->operations[] = $operation;
    }

    /** Declares the response shared, unless it depends on its visitor. */
    public function share(int $maxAge = 300, int $stale = 60): void
    {
        $this->share = "public, max-age=$maxAge, stale-while-revalidate=$stale";
    }

    /** Records that the response depends on its visitor. It then is not shared. */
    public function touch(string $cause): void
    {
        $this->touched = $this->touched ?? $cause;
    }

    /**
     * The `Edge-*` headers. None without edgefront: a client must not see them. An error of the server has only a logout,
     * because its transaction may have been rolled back.
     */
    public function directives(int $status = 200): array
    {
        if (!$this->verified) {
            return [];
        }
        $headers = $this->headers;
        if ($this->tags !== []) {
            $headers['Edge-Tags'] = implode(', ', array_keys($this->tags));
        }
        if ($this->operations !== []) {
            $headers['Edge-Cart'] = self::json($this->operations);
        }
        if ($status >= 500) {
            unset($headers['Edge-Login'], $headers['Edge-Cart'], $headers['Edge-Order']);
        }
        if (isset($headers['Edge-Login'])) {
            $namesUser = str_starts_with($headers['Edge-Logout'] ?? '', 'user=');
            unset($headers[$namesUser ? 'Edge-Login' : 'Edge-Logout']);
        }
        return $this->shared ? array_diff_key($headers, array_flip(self::PERSONAL)) : $headers;
    }

    /** The headers to set on a response with this status and these header lines. */
    public function finish(int $status, array $lines): array
    {
        $own = $this->directives($status);
        $isPersonal = array_intersect_key($own, array_flip(self::PERSONAL)) !== [];
        if ($this->share === null && !$isPersonal) {
            return $own;
        }
        $cause = $isPersonal ? 'it has a directive about its visitor' : null;
        $cause = $cause ?? ($this->touched !== null ? "it depends on $this->touched" : null);
        $cause = $cause ?? (preg_grep('/^set-cookie:/i', $lines) ? 'it sets a cookie' : null);
        // A 304 confirms the stored page, which takes over its headers.
        $cause = $cause ?? (!in_array($status, [200, 304], true) ? "its status is $status" : null);
        if ($cause !== null && $this->share !== null) {
            error_log("edgefront: a response is not shared: $cause");
        }
        return $own + ['Cache-Control' => $cause === null ? $this->share : 'private, no-store'];
    }

    /** Sends the directives with this process's response. Call it once. */
    public function sendAtEnd(): void
    {
        header_register_callback(function (): void {
            if (session_status() === PHP_SESSION_ACTIVE) {
                $this->touch('the session');
            }
            foreach ($this->finish((int) http_response_code(), headers_list()) as $name => $value) {
                header("$name: $value");
                if ($name === 'Cache-Control') {
                    header_remove('CDN-Cache-Control');
                    header_remove('Expires');
                }
            }
        });
    }

    /** The rows of a request of `ROWS_URL`: the ids that it names. @return string[] @throws Refused */
    public function rowIds(string $text): array
    {
        if (!$this->verified) {
            throw new Refused('This address answers edgefront only.', 403);
        }
        $ids = array_values(array_unique(explode(',', $text)));
        if (count($ids) > 100 || array_filter($ids, fn (string $id): bool => !self::isItem($id)) !== []) {
            throw new Refused('ids is not valid.', 400);
        }
        return $ids;
    }

    /** @param mixed $value */
    private static function checked(string $pattern, string $name, $value): string
    {
        $text = (string) $value;
        if (!preg_match($pattern, $text)) {
            throw new \InvalidArgumentException("$name is not valid for edgefront: " . json_encode($text, JSON_INVALID_UTF8_SUBSTITUTE));
        }
        return $text;
    }

    /** @param mixed $value */
    private static function quantity($value, int $least): int
    {
        if (!is_int($value) || $value < $least) {
            throw new \InvalidArgumentException("quantity must be a whole number, at least $least");
        }
        return $value;
    }

    /** @param mixed $value */
    private static function json($value): string
    {
        // ASCII only, so it always is a header value.
        return json_encode($value, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES);
    }

    private static function readObject(string $name, ?string $text): ?array
    {
        if ($text === null) {
            return null;
        }
        $value = json_decode($text);
        if (!$value instanceof \stdClass) {
            throw new Refused("$name is not valid.", 400);
        }
        return (array) $value;
    }
}
