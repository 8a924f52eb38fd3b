<?php
// WordPress's user is the user of edgefront's session, and its logins are edgefront's.
declare(strict_types=1);

defined('ABSPATH') || exit;

add_filter('determine_current_user', function ($user) {
    $edge = edgefront();
    // An application password names its own user with each request.
    if (!$edge->verified || $edge->session === 'unknown' || isset($_SERVER['PHP_AUTH_USER'])) {
        return $user;
    }
    $id = ctype_digit((string) $edge->user) ? (int) $edge->user : 0;
    return $id > 0 && get_userdata($id) ? $id : 0;
}, 100);

// A login of WordPress's own ends with edgefront's session.
add_action('init', function (): void {
    $edge = edgefront();
    $own = wp_validate_logged_in_cookie(false);
    if ($own && in_array($edge->session, ['guest', 'none', 'user'], true) && (string) $own !== $edge->user) {
        WP_Session_Tokens::get_instance($own)->destroy(wp_get_session_token());
        wp_clear_auth_cookie();
    }
}, 0);

// Every login sets this cookie: the login form, a registration, a new password in the profile.
add_action('set_logged_in_cookie', function ($cookie, $expire, $expiration, $user): void {
    edgefront()->login($user);
}, 10, 4);
add_action('wp_logout', function (): void {
    edgefront()->logout();
});

// A new password ends the user's sessions at edgefront, before WordPress starts a new one.
add_action('profile_update', function ($id, $old, $new): void {
    if (($new['user_pass'] ?? $old->user_pass) === $old->user_pass) {
        return;
    }
    // WordPress signs the current user in again. edgefront executes a login or a logout, not both. So the API ends the old
    // sessions before the login. If it fails, they end with the response, and the visitor signs in again.
    $isRenewed = edgefront()->verified && get_current_user_id() === (int) $id;
    $service = $isRenewed ? edgefront_service() : null;
    if ($service === null || !$service->endSessions($id, false)) {
        edgefront_end_sessions($id);
    }
}, 10, 3);
add_action('after_password_reset', function ($user): void {
    edgefront_end_sessions($user->ID);
});
add_action('deleted_user', 'edgefront_end_sessions');

/** Names the user in the response. If that is not possible, the API ends the sessions after the response. */
function edgefront_end_sessions($id): void
{
    $service = edgefront_service();
    if (edgefront()->canLogOut($id)) {
        edgefront()->logout(false, $id);
    } elseif ($service !== null) {
        $service->endSessionsLater($id);
        edgefront_flush_at_end();
    }
}
