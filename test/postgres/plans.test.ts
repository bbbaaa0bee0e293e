/**
 * How PostgreSQL reads a filled database: each statement of a query, of a group of adds and of the work on it by
 * indexes, and few rows more than it needs.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createQuestions, createTexts } from '../../bench/load.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { watchPlans, type RunStatement } from '../support/postgres-plans.ts';
import { startPostgres } from '../support/postgres.ts';

/** Number of memories that are added, and of copies of each in the tenant and in each of the other tenants. */
const [ADDED, COPIES, OTHER_TENANTS] = [200, 19, 4];
/** Number of memories of a group that is added and worked off while plans are watched. */
const GROUP = 40;
/** Least number of rows of a table that may not be read whole. */
const LARGE = 3_000;
/** Greatest number of rows that a statement may read beyond two for each one that it returns or changes. */
const SPARE_ROWS = 1_500;
/** Number of mentions of each name that are counted for a list of 500 names. */
const FIRST_MENTIONS = 40;
/** Counts memories above a number, up to which they were counted before: here all copies, made without a count. */
const COUNTS = /^SELECT count\(\*\) AS n FROM/;
/** Number of queries, of which each has other words. More than five, as the server plans the first ones as it likes. */
const QUERIES = 8;

/** Columns of each table that say which row it is, or which memory a row is about: copies have them raised. */
const COPIED: Readonly<Record<string, readonly string[]>> = {
  memories: ['seq'],
  memory_dynamics: ['seq'],
  memory_labels: ['memory'],
  vectors: ['vector_no', 'memory'],
  edges: ['src', 'dst'],
  entity_mentions: ['memory'],
  memory_text_docsize: ['id'],
  word_rows: ['id'],
  jobs: ['seq', 'memory'],
  events: ['event_no', 'memory'],
};

/** Tables of the word index, which has no copies in the tenant itself, as its lists of rows name none. */
const OF_WORDS: ReadonlySet<string> = new Set(['memory_text_docsize', 'word_rows']);

const server = await startPostgres();
describe.skipIf(server === undefined)('plans on a filled database', () => {
  let fixture: TestEngine;
  let url: string;
  let plans: () => RunStatement[];
  const nextQuestion = createQuestions();
  const texts = createTexts(ADDED + 2 * GROUP);
  const memoryOf = (content: string, n: number) =>
    newMemory({ content, userId: 'user', sessionId: n % 2 === 0 ? '' : `s ${n % 14}`, tags: [`t ${n % 9}`] });

  beforeAll(async () => {
    url = await server!.createSchema();
    plans = await watchPlans(server!, url);
    fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url } });
    for (let at = 0; at < ADDED; at += 100) {
      await fixture.tenant.addMemories(texts.slice(at, at + 100).map(memoryOf));
    }
    await fixture.drain();
    await server!.read(url, await copiesOf(url));
  });
  afterAll(async () => {
    await fixture?.close();
    server?.stop();
  });

  async function copiesOf(address: string): Promise<string> {
    const copies = Object.entries(COPIED).map(async ([table, raised]) => {
      const columns = (await server!.read(
        address,
        `SELECT attname FROM pg_attribute WHERE attrelid = '${table}'::regclass AND attnum > 0 AND NOT attisdropped
           AND attgenerated = ''`,
      )) as { attname: string }[];
      const names = columns.map(({ attname }) => `"${attname}"`);
      const values = columns.map(({ attname }) => {
        if (attname === 'tenant') return 'tenant + 1000 * other';
        if (attname === 'id' && !raised.includes('id')) return `id || '-' || copy`;
        if (attname === 'uuid') return `decode(md5(uuid || copy::text::bytea), 'hex')`;
        return raised.includes(attname) ? `"${attname}" + 100000 * copy` : `"${attname}"`;
      });
      return `INSERT INTO ${table} (${names.join()}) SELECT ${values.join()} FROM ${table}
        CROSS JOIN generate_series(0, ${COPIES}) AS c (copy) CROSS JOIN generate_series(0, ${OTHER_TENANTS}) AS o (other)
        WHERE ${OF_WORDS.has(table) ? 'other' : 'copy + other'} > 0`;
    });
    const words = `INSERT INTO word_blocks (tenant, term, block, rows, last, data)
      SELECT tenant + 1000 * other, term || ' ' || copy, block, rows, last, data FROM word_blocks
      CROSS JOIN generate_series(1, ${COPIES}) AS c (copy) CROSS JOIN generate_series(0, ${OTHER_TENANTS}) AS o (other)`;
    // Neither triggers nor foreign keys act on copies, which the other tenants have no row of `tenants` for.
    const numbers = 'UPDATE numbers SET last = last + 10000000';
    const inserts = await Promise.all(copies);
    return ['SET session_replication_role = replica', ...inserts, words, numbers, 'SELECT 1'].join('; ');
  }

  async function work(): Promise<RunStatement[]> {
    plans();
    for (let n = 0; n < QUERIES; n += 1) {
      const { hits } = await fixture.tenant.query({
        ...{ query: nextQuestion(), k: 10, filter: { userIds: ['user'] }, minScore: 0, reinforce: false },
      });
      expect(hits.length).toBeGreaterThan(0);
    }
    await fixture.tenant.addMemories(texts.splice(ADDED, GROUP).map(memoryOf));
    await fixture.drain();
    return plans();
  }

  async function expectFewRows(): Promise<void> {
    const large = (await server!.read(
      url,
      `SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema() AND n_live_tup >= ${LARGE}`,
    )) as { relname: string }[];
    const names = large.map(({ relname }) => relname);
    expect(names).toEqual(expect.arrayContaining([...Object.keys(COPIED).filter((name) => name !== 'edges')]));
    const statements = await work();
    expect(statements.length).toBeGreaterThan(30 * QUERIES);
    expect(statements.filter(({ readWhole }) => readWhole.some((name) => names.includes(name)))).toEqual([]);
    const readsMuch = ({ text, rowsRead, rowsReturned }: RunStatement) =>
      !COUNTS.test(text) && rowsRead > SPARE_ROWS + 2 * rowsReturned;
    expect(statements.filter(readsMuch)).toEqual([]);
  }

  // Without statistics a list of numbers is joined last, so statements read all rows of the tenant.
  test('read by indexes, and few rows, after ANALYZE', async () => {
    for (const table of [...Object.keys(COPIED), 'word_blocks', 'entities', 'users']) {
      await server!.read(url, `ANALYZE ${table}`);
    }
    await expectFewRows();
  });

  test('a list of names reads the first mentions of each name, and not those of all', async () => {
    plans();
    const { items } = await fixture.tenant.listEntities({ prefix: '', userId: undefined }, { limit: 500, offset: 0 });
    const statements = plans().filter(({ text }) => text.includes('entity_mentions'));
    expect(items.length).toBeGreaterThan(20);
    expect(statements.length).toBeGreaterThan(0);
    for (const { rowsRead, pairsDropped } of statements) {
      expect(rowsRead + pairsDropped).toBeLessThanOrEqual(FIRST_MENTIONS * items.length);
    }
  });
});
