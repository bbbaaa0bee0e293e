-- Random mark of the last write of the control database, as `last_write` of a tenant (../store/postgres/migrations,
-- 0027).
ALTER TABLE access_generation ADD COLUMN last_write uuid;
