-- An account keeps the five addresses that were added or used last.

DELETE FROM addresses WHERE 5 <= (
    SELECT count(*) FROM addresses AS newer WHERE newer.user = addresses.user AND newer.used_at > addresses.used_at
);

CREATE TRIGGER addresses_bound AFTER INSERT ON addresses
BEGIN
    DELETE FROM addresses WHERE user = new.user AND address NOT IN (
        SELECT address FROM addresses WHERE user = new.user ORDER BY used_at DESC LIMIT 5
    );
END;
