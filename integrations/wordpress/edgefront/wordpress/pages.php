<?php
// Pages name their item and their tags, so that purges find them. A theme may share them: edgefront()->share(300).
declare(strict_types=1);

defined('ABSPATH') || exit;

add_action('template_redirect', function (): void {
    $edge = edgefront();
    if (is_user_logged_in()) {
        $edge->touch('the user');
    }
    // The visitor's comments that wait, and opened posts.
    foreach (array_keys($_COOKIE) as $name) {
        if (preg_match('/^(comment_author_|wp-postpass_)/', (string) $name)) {
            $edge->touch('a cookie');
        }
    }
    // Only the canonical address names an item.
    if (is_singular() && !is_preview() && get_query_var('page') < 2 && !isset($_GET['replytocom'], $_GET['unapproved'])) {
        $edge->item(get_queried_object_id());
        return;
    }
    $term = is_category() || is_tag() || is_tax() ? get_queried_object() : null;
    if ($term instanceof WP_Term) {
        $edge->tags("term-$term->term_id");
    } elseif (is_home() || is_archive() || is_search() || is_feed()) {
        $edge->tags('lists');
    }
});
