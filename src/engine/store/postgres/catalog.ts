/** What a table's definition says that the translation of a statement needs. */
export interface TableForm {
  /** Type of each column, as `format_type` names it: bigint, double precision, text or bytea. */
  readonly columns: ReadonlyMap<string, string>;
  /** Columns of the primary key, without the tenant. */
  readonly key: readonly string[];
  /** The column that is numbered by itself; undefined if none is. */
  readonly numbered: string | undefined;
  /** Whether the rows belong to tenants. */
  readonly ofTenants: boolean;
}

/** The tables of a schema by name. */
export type Catalog = ReadonlyMap<string, TableForm>;

/** Reads all tables of the current schema; a row for each column, as an array in the order of `CatalogRow`. */
export const READ_CATALOG = `
  SELECT c.relname, a.attname, format_type(a.atttypid, NULL),
    pg_get_expr(d.adbin, d.adrelid) ~ '^(\\w+\\.)?next_(number|row)\\(' AS numbered,
    array_position(i.indkey::smallint[], a.attnum) AS place
  FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'v')
  ORDER BY c.relname, a.attnum`;

/** A row of `READ_CATALOG`: table, column, type, 1 if the column is numbered by itself, place in the key. */
export type CatalogRow = readonly [
  table: string,
  column: string,
  type: string,
  numbered: 0 | 1 | null,
  place: number | null,
];

/** Builds the catalog of what `READ_CATALOG` returned. */
export function toCatalog(rows: readonly CatalogRow[]): Catalog {
  const byTable = Map.groupBy(rows, ([table]) => table);
  return new Map(
    [...byTable].map(([table, columns]) => {
      const inKey = columns.filter((row) => row[4] !== null).sort((a, b) => a[4]! - b[4]!);
      const form: TableForm = {
        columns: new Map(columns.map(([, column, type]) => [column, type])),
        key: inKey.map(([, column]) => column).filter((column) => column !== 'tenant'),
        numbered: columns.find((row) => row[3] === 1)?.[1],
        ofTenants: columns.some(([, column]) => column === 'tenant') && table !== 'tenants',
      };
      return [table, form];
    }),
  );
}
