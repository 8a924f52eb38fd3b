<?php
// Settings → Edgefront: what is set, and the last purge.
declare(strict_types=1);

defined('ABSPATH') || exit;

add_action('admin_menu', function (): void {
    add_options_page('Edgefront', 'Edgefront', 'manage_options', 'edgefront', 'edgefront_status_page');
});

add_action('admin_post_edgefront_purge_all', function (): void {
    check_admin_referer('edgefront_purge_all');
    current_user_can('manage_options') || wp_die('', '', ['response' => 403]);
    edgefront_purge_all();
    wp_safe_redirect(admin_url('options-general.php?page=edgefront'));
    exit;
});

function edgefront_status_page(): void
{
    $service = edgefront_service();
    $last = get_option('edgefront_last_purge');
    $health = $service ? $service->status('/readyz') : null;
    $lines = [
        'Requests without edgefront' => defined('EDGEFRONT_ORIGIN_KEY') ? 'refused' : 'accepted: define EDGEFRONT_ORIGIN_KEY in wp-config.php',
        'This request' => edgefront()->verified ? 'came through edgefront' : 'did not come through edgefront',
        'Your session at edgefront' => edgefront()->session ?? 'none',
        'Purges' => $service ? 'sent to ' . EDGEFRONT_URL : 'off: define EDGEFRONT_URL and EDGEFRONT_SERVICE_KEY in wp-config.php',
        'Health of edgefront' => $health === null ? 'unknown' : ($health === 200 ? 'ok' : ($health === 0 ? 'no answer' : "status $health: read GET /_edge/v1/readyz")),
        'Last purge' => $last ? ($last['failed'] ? 'failed ' : 'sent ') . human_time_diff($last['time']) . ' ago' : 'none',
        'Waiting for another try' => get_option(EDGEFRONT_WAITING) ? 'yes, within a minute' : 'no',
    ];
    echo '<div class="wrap"><h1>Edgefront</h1><table class="widefat striped"><tbody>';
    foreach ($lines as $name => $value) {
        echo '<tr><th scope="row">' . esc_html($name) . '</th><td>' . esc_html($value) . '</td></tr>';
    }
    echo '</tbody></table><form method="post" action="' . esc_url(admin_url('admin-post.php')) . '">';
    wp_nonce_field('edgefront_purge_all');
    echo '<input type="hidden" name="action" value="edgefront_purge_all">';
    submit_button('Purge all pages');
    echo '</form></div>';
}
