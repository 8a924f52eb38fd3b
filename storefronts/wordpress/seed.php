<?php
// Installs WordPress and writes the posts, comments and users of the test shop. Usage: php seed.php FOLDER

mysqli_query(mysqli_connect('localhost', 'root', '', '', 0, getenv('SHOP_SOCKET')), 'CREATE DATABASE wordpress CHARACTER SET utf8mb4');

// WordPress calls this if it exists. Its own one sends an email.
function wp_new_blog_notification() {}

$_SERVER['HTTP_HOST'] = 'localhost';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['REMOTE_ADDR'] = '127.0.0.1';
define('WP_INSTALLING', true);
require $argv[1] . '/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

$result = wp_install('Corner Shop', 'admin', 'admin@shop.test', true, '', 'admin-password-1');
$admin = $result['user_id'];
// Readers of the tests. Each has a name of its own, so that a page shows whose it is.
for ($i = 1; $i <= 30; $i++) {
    wp_insert_user([
        'user_login' => "visitor-$i", 'user_pass' => "visitor-password-$i", 'user_email' => "visitor-$i@shop.test",
        'display_name' => "Vera Visitor $i", 'role' => 'subscriber',
    ]);
}
update_option('blogdescription', 'Goods with a story');
update_option('permalink_structure', '/%postname%/');
update_option('users_can_register', 1);
// Avatars come from another host.
update_option('show_avatars', 0);

$categories = [];
foreach (['Kitchen', 'Garden', 'Office', 'Workshop', 'Books'] as $name) {
    $categories[] = wp_insert_term($name, 'category')['term_id'];
}
$materials = ['Oak', 'Steel', 'Linen', 'Ceramic'];
$things = ['Mug', 'Lamp', 'Chair', 'Basket', 'Clock', 'Kettle', 'Shelf', 'Apron', 'Bowl', 'Stool'];
for ($i = 0; $i < 40; $i++) {
    $name = $materials[$i % 4] . ' ' . $things[intdiv($i, 4)];
    $paragraphs = [];
    for ($j = 1; $j <= 6; $j++) {
        $paragraphs[] = "<!-- wp:paragraph -->\n<p>" . str_repeat("The $name is made by hand, in batch $j, and lasts. ", 6) . "</p>\n<!-- /wp:paragraph -->";
    }
    $post = wp_insert_post([
        'post_title' => $name, 'post_status' => 'publish', 'post_author' => $admin, 'post_category' => [$categories[$i % 5]],
        'tags_input' => [strtolower($materials[$i % 4])], 'post_content' => implode("\n", $paragraphs),
        'post_date' => gmdate('Y-m-d H:i:s', time() - 3600 * (41 - $i)),
        // One post has a password.
        'post_password' => $i === 0 ? 'open-sesame' : '',
    ]);
    for ($j = 0; $j < $i % 4; $j++) {
        wp_insert_comment([
            'comment_post_ID' => $post, 'comment_author' => "Reader $j", 'comment_author_email' => "reader$j@shop.test",
            'comment_content' => "I like the $name ($j).", 'comment_approved' => 1,
        ]);
    }
}
flush_rewrite_rules(false);
