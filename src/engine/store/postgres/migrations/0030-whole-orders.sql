-- Of links of equal weight, and of relations, the first ones are read up to a limit. SQLite's indexes end with the
-- primary key and so give them in one order; here the columns are named.
DROP INDEX edges_by_src_weight;
DROP INDEX edges_by_dst_weight;
CREATE INDEX edges_by_src_weight ON edges (tenant, src, weight DESC, dst, type);
CREATE INDEX edges_by_dst_weight ON edges (tenant, dst, weight DESC, src, type);
DROP INDEX entity_relations_by_dst;
CREATE INDEX entity_relations_by_dst ON entity_relations (tenant, dst, src, relation, memory);
