-- Random mark of the last write of a tenant. A write whose answer was lost has committed if its mark is still here: the
-- number of its transaction proves nothing, as after a crash the server may have given it to another one.
ALTER TABLE tenants ADD COLUMN last_write uuid;
