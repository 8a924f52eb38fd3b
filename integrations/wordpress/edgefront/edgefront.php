<?php
/**
 * Plugin Name: Edgefront
 * Description: Puts WordPress behind edgefront: refuses other requests, names pages for purges, purges on each change, and shares logins.
 * Version: 0.1.0
 * Requires at least: 6.0
 * Requires PHP: 8.0
 * License: MIT OR Apache-2.0
 *
 * The constants EDGEFRONT_ORIGIN_KEY, EDGEFRONT_SERVICE_KEY and EDGEFRONT_URL in wp-config.php are its settings.
 */
declare(strict_types=1);

defined('ABSPATH') || exit;

require_once __DIR__ . '/core/Edge.php';
require_once __DIR__ . '/core/Service.php';
require_once __DIR__ . '/wordpress/visitors.php';
require_once __DIR__ . '/wordpress/pages.php';
require_once __DIR__ . '/wordpress/purges.php';
require_once __DIR__ . '/wordpress/rows.php';
require_once __DIR__ . '/wordpress/woocommerce.php';
require_once __DIR__ . '/wordpress/status.php';

/** The request's `Edgefront\Edge`, for themes and plugins. */
function edgefront(): Edgefront\Edge
{
    static $edge = null;
    return $edge ??= edgefront_admit();
}

/** edgefront's service API; null without its settings. */
function edgefront_service(): ?Edgefront\Service
{
    static $service = false;
    if ($service === false) {
        $isSet = defined('EDGEFRONT_URL') && defined('EDGEFRONT_SERVICE_KEY');
        $service = $isSet ? new Edgefront\Service(EDGEFRONT_URL, EDGEFRONT_SERVICE_KEY) : null;
    }
    return $service;
}

/** Ends the process if the request did not come through edgefront. */
function edgefront_admit(): Edgefront\Edge
{
    $isCommand = in_array(PHP_SAPI, ['cli', 'phpdbg'], true);
    if ($isCommand || !defined('EDGEFRONT_ORIGIN_KEY')) {
        // Nothing is required, and no Edge-* header is believed.
        $claims = array_filter(array_keys($_SERVER), fn ($name): bool => is_string($name) && preg_match('/^HTTP_EDGE(?![A-Z0-9])/i', $name) === 1);
        $_SERVER = array_diff_key($_SERVER, array_flip($claims));
        return new Edgefront\Edge();
    }
    try {
        $edge = Edgefront\Edge::ofRequest(new Edgefront\Keys(EDGEFRONT_ORIGIN_KEY));
    } catch (Edgefront\Refused $refused) {
        http_response_code($refused->getCode());
        header('Content-Type: text/plain');
        header('Cache-Control: no-store');
        exit($refused->getMessage() . "\n");
    }
    $edge->sendAtEnd();
    return $edge;
}

edgefront();
