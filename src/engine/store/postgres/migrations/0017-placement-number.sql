-- The number of the placement (control/placements.ts) that the rows of a tenant belong to; NULL for a tenant that was
-- never placed, and for one that was placed before this column was added until it is next opened for writes. It tells
-- the rows of a tenant from earlier ones under its id, which a standby may still have.
ALTER TABLE tenants ADD COLUMN placement bigint;
