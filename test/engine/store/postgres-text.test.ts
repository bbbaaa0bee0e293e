import { describe, expect, test } from 'vitest';
import { toCatalog, type Catalog } from '../../../src/engine/store/postgres/catalog.ts';
import { findParameters, translate, type ParameterForm } from '../../../src/engine/store/postgres/dialect.ts';
import { nameTenant } from '../../../src/engine/store/postgres/name-tenant.ts';

const catalog: Catalog = toCatalog([
  ['edges', 'tenant', 'integer', null, 0],
  ['edges', 'src', 'bigint', null, 1],
  ['edges', 'dst', 'bigint', null, 2],
  ['edges', 'weight', 'double precision', null, null],
  ['users', 'tenant', 'integer', null, 0],
  ['users', 'user_no', 'bigint', null, 1],
  ['users', 'user_id', 'text', null, null],
  ['settings', 'name', 'text', null, 0],
]);

const plain = (sql: string) => sql.replaceAll(/\s+/g, ' ').trim();
const named = (sql: string) => plain(nameTenant(sql, catalog).sql);

describe('the tenant is named', () => {
  test.each([
    [
      'SELECT e.dst FROM edges e JOIN users ON user_no = e.src, edges AS other WHERE e.src = $2',
      'SELECT e.dst FROM (SELECT * FROM edges WHERE tenant = $1::int) e ' +
        'JOIN (SELECT * FROM users WHERE tenant = $1::int) AS users ON user_no = e.src, ' +
        '(SELECT * FROM edges WHERE tenant = $1::int) AS other WHERE e.src = $2',
    ],
    [
      'SELECT users, 1 FROM settings WHERE name IN (SELECT user_id FROM users)',
      'SELECT users, 1 FROM settings WHERE name IN ' +
        '(SELECT user_id FROM (SELECT * FROM users WHERE tenant = $1::int) AS users)',
    ],
    ['SELECT * FROM users', 'SELECT * FROM (SELECT user_no, user_id FROM users WHERE tenant = $1::int) AS users'],
    [
      'WITH users AS (SELECT 1 AS n) SELECT n FROM users JOIN edges e ON e.src = n',
      'WITH users AS (SELECT 1 AS n) SELECT n FROM users JOIN (SELECT * FROM edges WHERE tenant = $1::int) e ON e.src = n',
    ],
    [
      'UPDATE edges SET weight = 1 WHERE src = $2 OR dst = $2 RETURNING dst',
      'UPDATE edges SET weight = 1 WHERE edges.tenant = $1::int AND ( src = $2 OR dst = $2 )RETURNING dst',
    ],
    ['DELETE FROM edges AS e', 'DELETE FROM edges AS e WHERE e.tenant = $1::int'],
    [
      'INSERT INTO edges (src, dst) VALUES ($2, $3), ($4, $5) ON CONFLICT (src, dst) DO UPDATE SET ' +
        'weight = max(weight, excluded.weight)',
      'INSERT INTO edges (tenant, src, dst) VALUES ($1::int, $2, $3), ($1::int, $4, $5) ON CONFLICT ' +
        '(tenant, src, dst) DO UPDATE SET weight = max(edges.weight, excluded.weight)',
    ],
    [
      'INSERT INTO edges (src, dst) SELECT user_no, 1 FROM users RETURNING *',
      'INSERT INTO edges (tenant, src, dst) SELECT $1::int, user_no, 1 FROM ' +
        '(SELECT * FROM users WHERE tenant = $1::int) AS users RETURNING src, dst, weight',
    ],
  ])('%s', (sql, expected) => {
    expect(named(sql)).toBe(expected);
  });

  test('an insert without columns is refused', () => {
    expect(() => nameTenant('INSERT INTO edges VALUES ($2, $3, $4)', catalog)).toThrow(/names no columns/);
  });
});

describe('SQLite in PostgreSQL', () => {
  const translated = (sql: string, ...forms: ParameterForm[]) =>
    plain(translate(sql, { catalog, places: findParameters(sql, catalog), forms, firstNumber: 2 }));

  test.each<[string, ParameterForm[], string]>([
    ['SELECT ? + :a, :a, ?', ['integer', 'fraction', 'text'], 'SELECT $2::bigint + $3::float8, $3::float8, $4::text'],
    [
      'SELECT 1 WHERE a IS ? AND b IS NOT ?',
      ['null', 'text'],
      'SELECT 1 WHERE a IS NOT DISTINCT FROM NULL AND b IS DISTINCT FROM $2::text',
    ],
    [
      'SELECT a AS memoryNo FROM t INDEXED BY i WHERE a IS NOT NULL AND 1',
      [],
      'SELECT a AS "memoryNo" FROM t WHERE a IS NOT NULL AND TRUE',
    ],
    ['SELECT iif(a > 0, max(a, 1.5), 0)', [], `SELECT (CASE WHEN a > 0 THEN max(a, '1.5'::float8) ELSE 0 END)`],
    ['SELECT value FROM json_each(?)', ['list of integers'], 'SELECT value FROM json_integers($2::text)'],
    ['SELECT CAST(round(a) AS INTEGER), CAST(b AS BLOB)', [], 'SELECT to_integer(round(a) ), CAST(b AS bytea)'],
    ['SELECT a FROM b CROSS JOIN c ON c.d = b.d CROSS JOIN e', [], 'SELECT a FROM b JOIN c ON c.d = b.d CROSS JOIN e'],
    [
      "SELECT a FROM (SELECT 1 AS a) WHERE a = x'0aff'",
      [],
      `SELECT a FROM (SELECT 1 AS a) AS subquery_1 WHERE a = '\\x0aff'::bytea`,
    ],
    [
      'INSERT OR IGNORE INTO users (user_no) VALUES (1)',
      [],
      'INSERT INTO users (user_no) VALUES (1) ON CONFLICT DO NOTHING',
    ],
    [
      'INSERT OR REPLACE INTO users (user_no, user_id) VALUES (1, ?)',
      ['text'],
      'INSERT INTO users (user_no, user_id) VALUES (1, $2::text) ON CONFLICT (user_no) DO UPDATE SET user_id = excluded.user_id',
    ],
  ])('%s', (sql, forms, expected) => {
    expect(translated(sql, ...forms)).toBe(expected);
  });

  test('an empty list takes its form from the column that it is compared with', () => {
    const { emptyForms } = findParameters(
      'SELECT 1 FROM users WHERE user_id IN (SELECT value FROM json_each(?))',
      catalog,
    );
    expect(emptyForms.get('0')).toBe('texts');
  });
});
