-- Until when a tenant needs no upkeep, so that a worker finds with one statement the tenants that need some. The note
-- holds only while `writes` is `looked_writes`: after any write the tenant is looked at again. `looked_at` and `due_at`
-- are Unix ms, `looked_by` names the settings of the worker, and `rests` has times by schedule, as JSON.
ALTER TABLE tenants
  ADD COLUMN looked_writes bigint,
  ADD COLUMN looked_at bigint,
  ADD COLUMN looked_by text COLLATE "C",
  ADD COLUMN due_at bigint,
  ADD COLUMN rests text COLLATE "C";
