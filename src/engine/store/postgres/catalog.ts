/** The properties of a table or view that the translation and the merging of statements need. */
export interface TableForm {
  /** Type of each column, by its name, as `format_type` writes it: bigint, double precision, text or bytea. */
  readonly columns: ReadonlyMap<string, string>;
  /** Names of the columns of the primary key, the tenant left out. */
  readonly key: readonly string[];
  /** Name of the column that PostgreSQL numbers by itself; undefined if the table has none. */
  readonly numbered: string | undefined;
  /**
   * Whether the column `tenant` of the table holds the number of the tenant, or of the counters
   * (control/shared-counts.ts), to which a row belongs. False for a table without this column, and for `tenants` and
   * `counters`, which give these numbers.
   */
  readonly ofTenants: boolean;
  /** Names of the tables that the table's foreign keys refer to. */
  readonly parents: readonly string[];
  /** Whether a trigger of the schema runs when a row is inserted. */
  readonly hasInsertTrigger: boolean;
  /** Names of the columns whose change runs a trigger of the schema. */
  readonly triggering: ReadonlySet<string>;
}

/** The tables and views of a schema, by name. */
export type Catalog = ReadonlyMap<string, TableForm>;

/** SQL that reads all tables and views of the current schema: one row for each column, as a `CatalogRow`. */
export const READ_CATALOG = `
  SELECT c.relname, a.attname, format_type(a.atttypid, NULL),
    pg_get_expr(d.adbin, d.adrelid) ~ '^(\\w+\\.)?next_(number|row)\\(' AS numbered,
    array_position(i.indkey::smallint[], a.attnum) AS place,
    (SELECT string_agg(DISTINCT p.relname, ' ') FROM pg_constraint k JOIN pg_class p ON p.oid = k.confrelid
      WHERE k.conrelid = c.oid AND k.contype = 'f') AS parents,
    EXISTS (SELECT FROM pg_trigger t
      WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 4 > 0) AS has_insert_trigger,
    EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 16 > 0
      AND (cardinality(t.tgattr::smallint[]) = 0 OR a.attnum = ANY (t.tgattr::smallint[]))) AS is_triggering
  FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'v')
  ORDER BY c.relname, a.attnum`;

/**
 * A row of `READ_CATALOG`: table, column, type, 1 if PostgreSQL numbers the column by itself, position in the primary
 * key (null if it is not in it), tables that foreign keys of the table name (null for none), 1 if an insert fires a
 * trigger, 1 if an update of the column fires a trigger.
 */
export type CatalogRow = readonly [
  table: string,
  column: string,
  type: string,
  numbered: 0 | 1 | null,
  place: number | null,
  parents?: string | null,
  hasInsertTrigger?: 0 | 1,
  isTriggering?: 0 | 1,
];

/** Makes the catalog of the rows that `READ_CATALOG` returned. */
export function toCatalog(rows: readonly CatalogRow[]): Catalog {
  const byTable = Map.groupBy(rows, ([table]) => table);
  return new Map(
    [...byTable].map(([table, columns]) => {
      const inKey = columns.filter((row) => row[4] !== null).sort((a, b) => a[4]! - b[4]!);
      const form: TableForm = {
        columns: new Map(columns.map(([, column, type]) => [column, type])),
        key: inKey.map(([, column]) => column).filter((column) => column !== 'tenant'),
        numbered: columns.find((row) => row[3] === 1)?.[1],
        ofTenants: columns.some(([, column]) => column === 'tenant') && table !== 'tenants' && table !== 'counters',
        parents: (columns[0]![5] ?? '').split(' ').filter((parent) => parent !== ''),
        hasInsertTrigger: columns[0]![6] === 1,
        triggering: new Set(columns.filter((row) => row[7] === 1).map(([, column]) => column)),
      };
      return [table, form];
    }),
  );
}
