import path from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { openStore, type SqliteStore } from '../../../src/engine/store/open-store.ts';
import { listPassing } from '../../../src/engine/store/passing-memories.ts';
import { createWorkBudget, runWithin } from '../../../src/engine/store/work-budget.ts';
import type { Json, Metadata, MetadataCondition } from '../../../src/engine/types.ts';
import { metadataBySql, tagsBySql } from '../../support/metadata-by-sql.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = 1_000_000;
const ROWS = 400;

/** Keys and values are few, so that conditions and rows meet. Each value has a near relative of another type. */
const key = fc.constantFrom(
  'a',
  'b',
  'a.b',
  'quo"te',
  '__proto__',
  'toString',
  '',
  'ключ',
  '0',
  '\u0000',
  '😀',
  '\uFFFD',
);
const scalar = fc.oneof(
  fc.constantFrom(0, 1, -1, 0.5, -0, 1e21, 5e-324, 1e15),
  fc.integer({ min: -3, max: 3 }),
  fc.integer({ min: -16, max: 16 }).map((n) => n / 4),
  fc.constantFrom('', 'a', 'b', '1', '0.5', 'true', 'null', '[1]', '{}', '\u0000', 'é', '\uFFFD', '😀', 'A'),
  fc.boolean(),
  fc.constant(null),
);
const value: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 2 }) },
  { weight: 1, arbitrary: ownKeys(scalar) },
);
const comparable = scalar.filter((one) => typeof one === 'number' || typeof one === 'string');
const operation: fc.Arbitrary<readonly [operator: string, operand: Json]> = fc.oneof(
  fc.tuple(fc.constantFrom('$eq', '$ne'), value),
  fc.tuple(fc.constantFrom('$gt', '$gte', '$lt', '$lte'), comparable as fc.Arbitrary<Json>),
  fc.tuple(fc.constantFrom('$in', '$nin'), fc.array(value, { maxLength: 4 }) as fc.Arbitrary<Json>),
  fc.tuple(fc.constant('$exists'), fc.boolean()),
);
const tag = fc.constantFrom('red', 'blue', '', 'Red', 'é', '😀', '1', '\u0000', '"');

describe('conditions on labels', () => {
  let store: SqliteStore;
  beforeAll(async () => {
    store = openStore(path.join(tempFolder(), 'labels.sqlite'), { role: 'worker', create: true });
    const rows = fc.sample(fc.record({ metadata: ownKeys(value), tags: fc.uniqueArray(tag) }), ROWS);
    const memories = rows.map(({ metadata, tags }, at) => ({ content: `row ${at}`, metadata, tags }));
    await seedMemories(store, memories, NOW);
    return () => store.close();
  });

  test('on metadata mean what they mean in SQL, for every operator, key and type', () => {
    let found = 0;
    fc.assert(
      fc.property(fc.array(fc.tuple(key, operation), { minLength: 1, maxLength: 4 }), (wanted) => {
        const byKey = new Map(wanted.map(([key, [operator, operand]]) => [key, { [operator]: operand }]));
        const expected = [...byKey].flatMap(([key, condition]) => {
          const [[operator, operand]] = Object.entries(condition) as [[string, Json]];
          return [metadataBySql(key, operator, operand)];
        });
        const metadata = Object.fromEntries(byKey) as Record<string, MetadataCondition>;
        const passing = listPassing(store, compileFilter({ metadata }, NOW), ROWS);
        found += passing.length;
        expect(passing).toEqual(select(expected));
      }),
      { numRuns: 3_000 },
    );
    expect(found).toBeGreaterThan(0);
  });

  test('on tags mean what they mean in SQL', () => {
    fc.assert(
      fc.property(fc.array(tag, { minLength: 1, maxLength: 4 }), (tags) => {
        expect(listPassing(store, compileFilter({ tags }, NOW), ROWS)).toEqual(select([tagsBySql(tags)]));
      }),
      { numRuns: 300 },
    );
  });

  test('parse a row once, however many conditions there are', () => {
    const spent = (metadata: Record<string, MetadataCondition>) => {
      let bytes = 0;
      const budget = {
        ...createWorkBudget({ bytes: Infinity, deadlineMs: Infinity }),
        spend: (more: number) => ((bytes += more), true),
      };
      runWithin(budget, () => listPassing(store, compileFilter({ metadata }, NOW), ROWS));
      return bytes;
    };
    const many = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`k${at}`, { $nin: [at, `${at}`] }]));
    expect(spent(many)).toBe(spent({ k0: { $nin: [0] } }));
  });

  test('end with the work budget, and let nothing pass unseen', () => {
    const filter = compileFilter({ metadata: { never: { $exists: false } } }, NOW);
    const all = listPassing(store, filter, ROWS);
    const cut = (bytes: number) =>
      runWithin(createWorkBudget({ bytes, deadlineMs: 60_000 }), () => listPassing(store, filter, ROWS));
    expect(all).toHaveLength(ROWS);
    expect(cut(10_000_000)).toEqual(all);
    const some = cut(10_000);
    expect(some).toEqual(all.slice(0, some.length));
    expect(some.length).toBeGreaterThan(0);
    expect(some.length).toBeLessThan(ROWS);
    expect(cut(10_000)).toEqual(some);
    expect(cut(0)).toEqual([]);
  });

  function select(conditions: readonly (readonly [string, ...(string | number)[]])[]): number[] {
    const sql = conditions.map(([condition]) => condition).join(' AND ');
    return store.db
      .prepare(`SELECT m.seq FROM memories m WHERE ${sql} ORDER BY m.seq`)
      .pluck()
      .all(...conditions.flatMap(([, ...values]) => values)) as number[];
  }
});

/** Objects whose keys are all their own, `__proto__` too. */
function ownKeys(values: fc.Arbitrary<Json>): fc.Arbitrary<Metadata> {
  return fc
    .uniqueArray(fc.tuple(key, values), { maxLength: 5, selector: ([name]) => name })
    .map((entries) => Object.fromEntries<Json>(entries));
}
