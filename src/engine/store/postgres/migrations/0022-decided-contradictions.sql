-- As migration 0024 of a tenant's file.
CREATE INDEX edges_lost ON edges (tenant, (CASE winner WHEN src THEN dst ELSE src END))
  WHERE type = 'contradicts' AND winner IS NOT NULL;
CREATE INDEX edges_superseding ON edges (tenant, src, dst) WHERE type = 'supersedes';
