/**
 * Requests to two services, one with a file and one with PostgreSQL: both give the same replies to the same program.
 * Programs are random, made of the description of the API. `CAIRN_TEST_PROGRAMS` runs more of them than usual, from the
 * seed `CAIRN_TEST_SEED`.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import { compare, describeService, type Called } from '../support/two-engines/compare.ts';
import { edgesOfLabels, edgesOfValues } from '../support/two-engines/edges.ts';
import { programsOf, type KnownOperation, type Step } from '../support/two-engines/programs.ts';

/** Operations that are not called, with the reasons. */
export const UNCALLED: Readonly<Record<string, string>> = {
  getConsole: 'a page that no engine stores',
  getConsoleFile: 'a file of that page',
  getConsoleSession: 'sessions of browsers; test/api/console.test.ts',
  openConsoleSession: 'sessions of browsers',
  closeConsoleSession: 'sessions of browsers',
  beginProviderSignIn: 'sessions of browsers, with a provider',
  endProviderSignIn: 'sessions of browsers, with a provider',
  getDocsPage: 'a page that no engine stores',
  getDocsFile: 'a file of that page',
  getDescription: 'says the same of every service',
  getMetrics: 'figures of the process',
  getActivity: 'figures of the process',
  listSettings: 'settings of the process, which differ',
};

/** Small programs, each of which showed a fault. */
const FAULTS: readonly (readonly [fault: string, program: readonly Step[]])[] = [
  ['the order of the relations of a graph', [{ call: 'getUserGraph', path: { id: 'ana' }, query: { limit: 200 } }]],
  [
    'numbers whose difference is too large for a number',
    [
      { call: 'addMemory', body: { content: 'A small number.', metadata: { v: -1e308 } } },
      { call: 'addMemory', body: { content: 'A large number.', metadata: { v: 1e308 } } },
      { call: 'pageMemories', body: { filters: { metadata: { v: { $lt: 1e308 } } } } },
    ],
  ],
  ['the order of the limits of a tenant', [{ call: 'patchLimits', query: {}, body: { queries: 1_000, adds: 1_000 } }]],
];

const runs = Number(process.env.CAIRN_TEST_PROGRAMS ?? 5);
const seed = Number(process.env.CAIRN_TEST_SEED ?? 1);

const server = await startPostgres();
describe.skipIf(server === undefined)('a service with a file and one with PostgreSQL', () => {
  let operations: ReadonlyMap<string, KnownOperation>;
  beforeAll(async () => {
    operations = await describeService();
  });
  afterAll(() => server?.stop());

  const expectAlike = async (program: readonly Step[], called?: Called) =>
    compare([...BEGINNING, ...program], { operations, database: await server!.createSchema(), called });

  test('answer each operation alike', async () => {
    const called: Called = new Map();
    const program = [...operations.values()]
      .filter(({ name }) => UNCALLED[name] === undefined)
      .flatMap(({ requests }) => fc.sample(requests, { numRuns: 2, seed }));
    await expectAlike(program, called);
    const isKnown = (name: string) => called.has(name) || UNCALLED[name] !== undefined;
    expect([...operations.keys()].filter((name) => !isKnown(name))).toEqual([]);
    expect(Object.keys(UNCALLED).filter((name) => !operations.has(name))).toEqual([]);
    const answered = [...called.values()].filter((statuses) => [...statuses].some((status) => status < 300));
    expect(answered.length).toBeGreaterThan(called.size / 2);
  });

  test.each(FAULTS)('agree on %s', async (_, program) => expectAlike(program));

  test('agree on values at the edges', async () => expectAlike(edgesOfValues()));

  test('agree on labels at the edges', async () => expectAlike(edgesOfLabels()));

  test('give the same replies to random programs', async () => {
    const programs = programsOf(operations, { leftOut: new Set(Object.keys(UNCALLED)), length: 40 });
    await fc.assert(
      fc.asyncProperty(programs, async (program) => expectAlike(program)),
      { numRuns: runs, seed },
    );
  });
});

const TEXTS = [
  'Anna moved from Berlin to Hamburg in March. She works at the harbour.',
  'Anna lives in Hamburg now.',
  'The deploy of the billing service failed because the certificate had expired.',
  'The ferry to Altona leaves at noon 🚢, says Zoë.',
];

/** What every program begins with, so that its requests find something. */
export const BEGINNING: readonly Step[] = [
  ...[{ user_id: 'ana' }, { tags: ['home'] }].flatMap((bounds): Step[] => [
    { call: 'createKey', body: { role: 'write', name: 'bound', ...bounds } },
    { advance: 1 },
  ]),
  { call: 'createKey', body: { role: 'add', name: 'add' } },
  ...TEXTS.map((content, no) => ({
    call: 'addMemory',
    body: {
      ...{ content, user_id: no < 3 ? 'ana' : 'bob', session_id: 's1', tags: no % 2 === 0 ? ['work'] : ['home'] },
      ...{ metadata: { n: no, s: 'a' }, external_id: `ext${no}` },
    },
  })),
  {
    call: 'ingestDocument',
    body: { text: '# Runbook\n\nRestart the queue first.\n\n## Rollback\n\nTell Anna.\n', user_id: 'ana' },
  },
  { work: 'drain' },
  { advance: 3_600_000 },
  { call: 'putItem', body: { key: 'k1', namespace: 'settings.editor', user_id: 'ana', value: { n: 1, s: 'a' } } },
  { call: 'putStoreItem', body: { key: 'k1', namespace: ['home'], value: { n: 1, text: 'Anna counts ships.' } } },
  {
    call: 'createStandingQuery',
    body: { query: 'Where does Anna live?', user_id: 'ana', min_score: 0, webhook: { url: 'http://127.0.0.1:9/hook' } },
  },
  { call: 'createWebhook', body: { url: 'http://127.0.0.1:9/hook' } },
  { call: 'putEval', body: { name: 'e1', items: [{ query: 'Where does Anna live?', expected: ['Hamburg'] }] } },
  {
    call: 'addMemories',
    query: { receipt: true },
    body: { items: TEXTS.slice(1, 3).map((content) => ({ content, user_id: 'ana', session_id: 's2' })) },
  },
  { call: 'appendToLog', path: { id: 's1' }, body: { user_id: 'ana', items: [1, 'a'] } },
  { call: 'queryMemories', body: { query: 'Where does Anna live?', user_id: 'ana', min_score: 0 } },
  { call: 'exportData', query: {} },
  { work: 'drain' },
];
