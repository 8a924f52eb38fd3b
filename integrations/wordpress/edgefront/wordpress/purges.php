<?php
// Each change purges the pages that show it: collected, and sent once after the response, with the ends of sessions.
declare(strict_types=1);

defined('ABSPATH') || exit;

const EDGEFRONT_WAITING = 'edgefront_waiting';
const EDGEFRONT_TRIES = 5;
const EDGEFRONT_MAX_WAITING = 5000;

/** Purges `['items' => […], 'tags' => […], 'urls' => […]]` after the response. */
function edgefront_purge(array $names): void
{
    $service = edgefront_service();
    if ($service !== null) {
        $service->purge($names);
        edgefront_flush_at_end();
    }
}

function edgefront_flush_at_end(): void
{
    has_action('shutdown', 'edgefront_flush') || add_action('shutdown', 'edgefront_flush', 100, 0);
}

/** Sends what was collected. What fails is tried again by a cron event, at most five times. */
function edgefront_flush(int $tries = 0): void
{
    // The visitor does not wait for edgefront.
    if (function_exists('fastcgi_finish_request')) {
        fastcgi_finish_request();
    }
    $failed = edgefront_service()->flush();
    update_option('edgefront_last_purge', ['time' => time(), 'failed' => $failed !== []], false);
    if ($failed === []) {
        return;
    }
    $waiting = get_option(EDGEFRONT_WAITING, []);
    $names = array_map('array_unique', array_filter(array_merge_recursive($waiting['names'] ?? [], $failed), 'is_array'));
    // Many names, for example of an import: one purge of all pages replaces them.
    $isAll = isset($failed['all']) || isset($waiting['all']) || count($names, COUNT_RECURSIVE) > EDGEFRONT_MAX_WAITING;
    if ($tries >= EDGEFRONT_TRIES) {
        $stay = isset($failed['users']) ? '. The sessions of these users stay: ' . implode(', ', $failed['users']) : '';
        error_log('edgefront: a purge was given up after ' . EDGEFRONT_TRIES . " tries$stay");
        return;
    }
    $kept = $isAll ? array_intersect_key($names, ['users' => true]) : $names;
    update_option(EDGEFRONT_WAITING, ['names' => $kept, 'all' => $isAll ?: null, 'tries' => $tries], false);
    wp_next_scheduled('edgefront_retry') || wp_schedule_single_event(time() + 60, 'edgefront_retry');
}

add_action('edgefront_retry', function (): void {
    $waiting = get_option(EDGEFRONT_WAITING, []);
    $service = edgefront_service();
    if ($waiting === [] || $service === null) {
        return;
    }
    delete_option(EDGEFRONT_WAITING);
    isset($waiting['all']) ? $service->purgeAll() : $service->purge($waiting['names']);
    array_map([$service, 'endSessionsLater'], $waiting['names']['users'] ?? []);
    edgefront_flush($waiting['tries'] + 1);
});

/** The page of a post, and the lists that show it. `$lostTerms`: the ids of the terms that the post had until now. */
function edgefront_purge_post($id, array $lostTerms = []): void
{
    $post = get_post($id);
    if (!$post || wp_is_post_revision($post) || wp_is_post_autosave($post) || !is_post_type_viewable($post->post_type)) {
        return;
    }
    $tags = ['lists', ...array_map(fn ($term): string => "term-$term", $lostTerms)];
    foreach (get_object_taxonomies($post) as $taxonomy) {
        foreach (wp_get_object_terms($post->ID, $taxonomy, ['fields' => 'ids']) as $term) {
            $tags[] = "term-$term";
        }
    }
    edgefront_purge(['items' => [$post->ID], 'tags' => $tags]);
}

/** The page of a post whose comments have changed. */
function edgefront_purge_comment($comment): void
{
    $comment = get_comment($comment);
    if ($comment) {
        edgefront_purge(['items' => [$comment->comment_post_ID]]);
    }
}

function edgefront_purge_all(): void
{
    $service = edgefront_service();
    if ($service !== null) {
        $service->purgeAll();
        edgefront_flush_at_end();
    }
}

add_action('wp_after_insert_post', 'edgefront_purge_post');
add_action('before_delete_post', 'edgefront_purge_post');
add_action('set_object_terms', 'edgefront_purge_post');
add_action('deleted_term_relationships', function ($id, array $ttIds): void {
    edgefront_purge_post($id, get_terms(['term_taxonomy_id' => $ttIds, 'fields' => 'ids', 'hide_empty' => false]));
}, 10, 2);
add_action('wp_insert_comment', fn ($id, $comment) => $comment->comment_approved === '1' && edgefront_purge_comment($id), 10, 2);
add_action('edit_comment', 'edgefront_purge_comment');
add_action('delete_comment', 'edgefront_purge_comment');
add_action('transition_comment_status', fn ($new, $old, $comment) => edgefront_purge_comment($comment), 10, 3);
foreach (['edited_term', 'delete_term'] as $action) {
    add_action($action, fn ($term) => edgefront_purge(['tags' => ["term-$term", 'lists']]));
}
// Every page shows these.
foreach (['switch_theme', 'wp_update_nav_menu', 'customize_save_after', 'update_option_sidebars_widgets', 'update_option_blogname'] as $action) {
    add_action($action, 'edgefront_purge_all', 10, 0);
}
