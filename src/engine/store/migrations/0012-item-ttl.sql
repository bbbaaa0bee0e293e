-- Lifetime that a read of an item renews, in ms; NULL where reads renew nothing.
ALTER TABLE items ADD COLUMN ttl_ms INTEGER;
