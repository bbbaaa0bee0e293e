/** The statements by which the word index of a tenant in PostgreSQL is read; `$1` is the tenant. */

/** SQL that reads the totals of the index, and its state: each commit that changes words changes this row. */
export const READ_TOTALS = 'SELECT rows, terms, xmin::text FROM word_totals WHERE tenant = $1';
/**
 * SQL that reads the facts of terms: the number of each term's rows and the size of its blocks. It scans the blocks of
 * each term once; a plain join, whose order PostgreSQL may change, would need memory for a sort.
 */
export const FACTS = `SELECT w.term, f.* FROM unnest($2::text[]) AS w (term)
  CROSS JOIN LATERAL (SELECT sum(b.rows) AS rows, sum(octet_length(b.data)) AS bytes FROM word_blocks b
    WHERE b.tenant = $1 AND b.term = w.term) AS f WHERE f.rows > 0`;
/** SQL that reads the facts of terms, and the blocks of the terms with the smallest ones, up to `$3` bytes in all. */
export const READ_WORDS = `WITH facts AS MATERIALIZED (${FACTS})
  SELECT term, rows, bytes, NULL AS block, NULL AS data, NULL AS parts FROM facts
  UNION ALL
  SELECT b.term, NULL, NULL, b.block, b.data, b.parts
  FROM (SELECT term, sum(bytes) OVER (ORDER BY bytes, term) AS up_to FROM facts) AS f
  CROSS JOIN LATERAL (SELECT term, block, data, parts FROM word_blocks
    WHERE tenant = $1 AND term = f.term) AS b WHERE f.up_to <= $3::bigint`;
/** SQL that reads all blocks of terms. */
export const READ_LISTS = `SELECT b.term, b.block, b.data, b.parts FROM unnest($2::text[]) AS w (term)
  CROSS JOIN LATERAL (SELECT term, block, data, parts FROM word_blocks WHERE tenant = $1 AND term = w.term) AS b`;
/**
 * SQL that reads the blocks of terms with the numbers `$3`, and their sizes, lowest numbers first; beyond `$4` bytes in
 * all the data is null, with the size alone.
 */
export const READ_LISTS_OF = `SELECT term, block, CASE WHEN up_to <= $4::bigint THEN data END, parts, size
  FROM (SELECT b.*, sum(b.size) OVER (ORDER BY b.block, b.term) AS up_to FROM unnest($2::text[]) AS w (term)
    CROSS JOIN LATERAL (SELECT term, block, data, parts, octet_length(data) AS size FROM word_blocks
      WHERE tenant = $1 AND term = w.term AND block = ANY ($3::bigint[])) AS b) AS f`;
