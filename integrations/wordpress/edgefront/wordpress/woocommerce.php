<?php
// WooCommerce: stock, orders, rows. From its documentation.
declare(strict_types=1);

defined('ABSPATH') || exit;

$purgeStock = fn ($product) => edgefront_purge(['items' => array_filter([$product->get_id(), $product->get_parent_id()])]);
foreach (['woocommerce_product_set_stock', 'woocommerce_variation_set_stock'] as $action) {
    add_action($action, $purgeStock);
}

// The page after the payment, before it has sent headers. edgefront counts an order once.
add_action('template_redirect', function (): void {
    if (!function_exists('is_order_received_page') || !is_order_received_page()) {
        return;
    }
    $order = wc_get_order(absint(get_query_var('order-received')));
    // The key of the address proves that this visitor placed the order.
    if (!$order || !hash_equals($order->get_order_key(), (string) ($_GET['key'] ?? '')) || $order->has_status('failed')) {
        return;
    }
    $items = [];
    foreach ($order->get_items() as $line) {
        $items[$line->get_product_id()] = ($items[$line->get_product_id()] ?? 0) + (int) $line->get_quantity();
    }
    if ($items !== []) {
        edgefront()->order($order->get_id(), array_slice($items, 0, 500, true));
    }
});

add_filter('edgefront_rows', function (array $rows, array $ids): array {
    $products = function_exists('wc_get_products') ? wc_get_products(['include' => array_map('intval', $ids), 'limit' => 100]) : [];
    foreach ($products as $product) {
        $rows[] = ['id' => $product->get_id(), 'stock' => $product->get_stock_quantity(), 'price' => $product->get_price()];
    }
    return $rows;
}, 10, 2);
