<?php
// The address for ROWS_URL: /wp-json/edgefront/v1/rows. The filter `edgefront_rows` names the rows.
declare(strict_types=1);

defined('ABSPATH') || exit;

add_action('rest_api_init', function (): void {
    register_rest_route('edgefront/v1', '/rows', [
        'methods' => 'GET',
        'permission_callback' => fn (): bool => edgefront()->verified,
        'callback' => function (WP_REST_Request $request) {
            try {
                $ids = edgefront()->rowIds((string) $request['ids']);
            } catch (Edgefront\Refused $refused) {
                return new WP_Error('edgefront', $refused->getMessage(), ['status' => $refused->getCode()]);
            }
            $rows = apply_filters('edgefront_rows', [], $ids);
            $isAsked = fn (array $row): bool => in_array((string) $row['id'], $ids, true);
            $response = new WP_REST_Response(array_values(array_filter($rows, $isAsked)));
            $response->header('Cache-Control', 'no-store');
            return $response;
        },
    ]);
});
