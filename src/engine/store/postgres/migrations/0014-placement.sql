-- Tenants that move between databases (move/move-tenant.ts). `arrived_by` is the token of the move that wrote a tenant's
-- rows here, and `moved_by` of the one that took it away: then its row refuses every write.
ALTER TABLE tenants ADD COLUMN arrived_by text COLLATE "C", ADD COLUMN moved_by text COLLATE "C";

-- Which database this is, and the one with the control schema of the service whose tenants it holds.
ALTER TABLE schema_version ADD COLUMN place uuid NOT NULL DEFAULT gen_random_uuid(), ADD COLUMN home uuid;
