/** One commit holds up the writes of all tenants, so no small request makes it work on much that is stored already. */
import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { LINE_SCHEMAS } from '../../../src/api/schemas/portable.ts';
import { addMemories } from '../../../src/engine/commands/accept.ts';
import { eraseInSlices } from '../../../src/engine/commands/erase.ts';
import { importLines } from '../../../src/engine/commands/import-lines.ts';
import { changeLog } from '../../../src/engine/commands/session-logs.ts';
import type { WriteContext } from '../../../src/engine/commands/write-context.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import type { AddOptions, LogChange, NewMemory, PortableLine } from '../../../src/engine/types.ts';
import { reindexFollowers, reindexWaiting } from '../../../src/engine/store/word-index/waiting-contexts.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { idsWithWord, newMemory, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { runCommand } from '../../support/run-command.ts';

/** Adds memories in batches of a hundred. @returns the kinds of their outcomes, or the codes of their errors */
async function addAll({ tenant }: TestEngine, memories: readonly NewMemory[]): Promise<string[]> {
  const results: string[] = [];
  for (let at = 0; at < memories.length; at += 100) {
    const { outcomes } = await tenant.addMemories(memories.slice(at, at + 100));
    results.push(...outcomes.map((outcome) => (outcome.kind === 'rejected' ? outcome.error.code : outcome.kind)));
  }
  return results;
}

/** Number of commits so far. */
async function commits({ engine }: TestEngine): Promise<number> {
  const { values } = await engine.metrics.commits.get();
  return values.find(({ metricName }) => metricName?.endsWith('_count'))!.value;
}

const inSession = (content: string, day: number) =>
  newMemory({ content, userId: 'ana', sessionId: 's', eventTime: START + day * DAY_MS });

test('memories that many new ones come before are indexed once for all of them', async () => {
  await using fixture = await openTestEngine();
  const late = await fixture.add(inSession('late', 100));
  const latest = await fixture.add(inSession('latest', 101));
  const rewrites = ({ memoryNo }: { memoryNo: number }) =>
    fixture.get<number>('SELECT count(*) FROM text_rewrites WHERE memory = ?', memoryNo);
  const early = Array.from({ length: 50 }, (_, day) => inSession(`early ${day === 49 ? 'heron' : day}`, day));
  expect(new Set(await addAll(fixture, early))).toEqual(new Set(['accepted']));
  expect([rewrites(late), rewrites(latest)]).toEqual([1, 1]);
  expect(idsWithWord(fixture, 'heron', 'context')).toEqual([late.id, latest.id]);
  expect(idsWithWord(fixture, '48', 'context')).toHaveLength(2);
});

test('an add takes no further item in a commit once much text has to be indexed anew for it', async () => {
  await using fixture = await openTestEngine();
  const long = Array.from({ length: 8 }, (_, no) => inSession(`heron ${no} `.repeat(25_000), 2 * no + 1));
  for (const memory of long) await fixture.add(memory);
  const short = Array.from({ length: 8 }, (_, no) => inSession(`short ${no}`, 2 * no));
  const before = await commits(fixture);
  const whole = await fixture.tenant.addMemories(short, { allOrNothing: true });
  expect(whole.outcomes.map(({ kind }) => kind)).toEqual(Array(8).fill('accepted'));
  expect((await commits(fixture)) - before).toBe(4);
  expect(idsWithWord(fixture, 'short', 'context')).toHaveLength(8);
  const others = short.map((memory) => ({ ...memory, content: `other ${memory.content}` }));
  const reply = await fixture.tenant.addMemories(others);
  expect((await commits(fixture)) - before).toBe(9);
  expect(reply.outcomes.map(({ kind }) => kind)).toEqual(Array(8).fill('accepted'));
  const jobNos = reply.outcomes.map((outcome) => (outcome.kind === 'accepted' ? outcome.jobNo : 0));
  expect(reply.token?.split('.').slice(1)).toEqual(
    [Math.min(...jobNos), Math.max(...jobNos)].map((no) => no.toString(36)),
  );
});

test('long memories that follow a new or a changed one are indexed anew in commits of their own', async () => {
  await using fixture = await openTestEngine();
  const text = '港町の灯台は船を数える。'.repeat(4_000);
  for (const day of [1, 2]) await fixture.add(inSession(`${text}${day}`, day));
  const commitsOf = async <T>(work: () => Promise<T>) => {
    const before = await commits(fixture);
    const result = await work();
    return [(await commits(fixture)) - before, result] as const;
  };
  const [ofAdd, { id }] = await commitsOf(() => fixture.add(inSession('ibis', 0)));
  // The context of the second one has no room for more than the first one.
  expect([ofAdd, idsWithWord(fixture, 'ibis', 'context').length]).toEqual([2, 1]);
  const [ofPatch] = await commitsOf(() => fixture.tenant.patchMemory(id, { content: 'heron' }));
  expect([ofPatch, idsWithWord(fixture, 'heron', 'context').length]).toEqual([2, 1]);
  expect(idsWithWord(fixture, 'ibis')).toEqual([]);
});

/** Five memories, each of which repeats a word. */
const five = (word: string, times: number) =>
  Array.from({ length: 5 }, (_, no) => newMemory({ content: `${no} ${`${word} `.repeat(times)}` }));

test('an add takes no further item in a commit once much text has to be indexed for it', async () => {
  await using fixture = await openTestEngine();
  const commitsOf = async (items: readonly NewMemory[], options: AddOptions = {}) => {
    const before = await commits(fixture);
    const { outcomes, taken } = await fixture.tenant.addMemories(items, options);
    expect([outcomes.map(({ kind }) => kind), taken]).toEqual([items.map(() => 'accepted'), undefined]);
    return (await commits(fixture)) - before;
  };
  expect(await commitsOf(five('heron', 30_000))).toBe(2);
  expect(await commitsOf(five('été', 9_000))).toBe(2);
  expect(await commitsOf(five('ibis', 18_000))).toBe(1);
  expect(await commitsOf(five('owl', 45_000), { allOrNothing: true })).toBe(1);
  expect(await commitsOf(Array.from({ length: 100 }, (_, no) => newMemory({ content: `${no} wren` })))).toBe(1);
});

const claim = { key: 'k', route: 'POST /memory/add/batch', bodyHash: Buffer.alloc(32) };

test('an add with an Idempotency-Key is divided, and goes on where it broke off when it is repeated', async () => {
  await using fixture = await openTestEngine();
  const items = five('heron', 30_000);
  const add = () => fixture.tenant.addMemories(items, { idempotency: claim });
  // As if the process had ended after the first commit.
  const begun = runCommand(fixture, (context) => addMemories(context, { items, options: { idempotency: claim } }));
  expect(begun).toMatchObject({ taken: 3, replayed: false });
  expect(begun.outcomes).toHaveLength(3);
  const reply = await add();
  expect(reply).toMatchObject({ replayed: false });
  expect([reply.outcomes.map(({ kind }) => kind), reply.taken]).toEqual([items.map(() => 'accepted'), undefined]);
  expect(reply.outcomes.slice(0, 3)).toEqual(begun.outcomes.slice(0, 3));
  expect(await add()).toEqual({ ...reply, replayed: true });
  expect(fixture.get('SELECT count(*) FROM memories')).toBe(5);
  // One that was deleted is enough for the whole request, whichever of its writes has stored it.
  await fixture.tenant.deleteMemory((reply.outcomes[4] as { readonly id: string }).id);
  await expect(add()).rejects.toMatchObject({ code: 'conflict' });
});

test('an add with an Idempotency-Key fails with the write that failed, so that it can be repeated', async () => {
  await using fixture = await openTestEngine({ settings: { OM_TENANT_MAX_MB: '1' } });
  const add = fixture.tenant.addMemories(five('heron', 40_000).slice(1), { idempotency: claim });
  await expect(add).rejects.toMatchObject({ code: 'storage_full' });
  expect(fixture.get('SELECT count(*) FROM memories')).toBeGreaterThan(0);
});

test('the items of a divided add that could not be written have the error of their write', async () => {
  await using fixture = await openTestEngine({ settings: { OM_TENANT_MAX_MB: '1' } });
  const items = [
    ...five('heron', 40_000).slice(1),
    { kind: 'rejected', error: { code: 'invalid', message: 'no' } },
  ] as const;
  const { outcomes } = await fixture.tenant.addMemories(items);
  const codes = outcomes.map((outcome) => (outcome.kind === 'rejected' ? outcome.error.code : outcome.kind));
  expect(codes.slice(0, 2)).toEqual(['accepted', 'accepted']);
  expect(codes.slice(-2)).toEqual(['storage_full', 'invalid']);
});

test('adds share no further commit once much text has to be indexed for them', async () => {
  await using fixture = await openTestEngine();
  const before = await commits(fixture);
  const replies = await Promise.all(five('heron', 30_000).map((memory) => fixture.tenant.addMemories([memory])));
  expect(replies.map(({ outcomes }) => outcomes[0]!.kind)).toEqual(Array(5).fill('accepted'));
  expect((await commits(fixture)) - before).toBe(2);
  await Promise.all(five('ibis', 300).map((memory) => fixture.tenant.addMemories([memory])));
  expect((await commits(fixture)) - before).toBe(3);
});

/** A line of an import with a long text of the session `s`, which is found by the word `name`. */
const longLine = (name: string, day: number) =>
  LINE_SCHEMAS.memory.parse({
    ...{ type: 'memory', id: randomUUID(), user_id: 'ana', session_id: 's' },
    ...{ content: `${'heron '.repeat(120_000)}${name}`, event_time: new Date(START + day * DAY_MS).toISOString() },
  }) as PortableLine;

/** Ids of the memories in whose context each word is. */
const inContexts = (fixture: TestEngine, words: readonly string[]) =>
  words.map((word) => idsWithWord(fixture, word, 'context').sort());

test('an import indexes one long line in a commit, and the memories that follow it in later ones', async () => {
  await using fixture = await openTestEngine();
  const [late, middle, early] = [longLine('late', 3), longLine('middle', 2), longLine('early', 1)] as const;
  const [idLate, idMiddle] = [late, middle].map((line) => (line as { id: string }).id);
  const run = (line: PortableLine) => runCommand(fixture, (context) => importLines(context, { lines: [line] }));
  expect(run(late)).toEqual({ outcomes: [{ kind: 'stored' }] });
  expect(run(middle)).toEqual({ outcomes: [{ kind: 'stored' }] });
  expect(inContexts(fixture, ['middle', 'early'])).toEqual([[], []]);
  run(early);
  expect(inContexts(fixture, ['middle', 'early'])).toEqual([[], []]);
  const reindex = () => runCommand(fixture, (context) => reindexWaiting(context.store));
  expect([reindex(), reindex()]).toEqual([true, false]);
  expect(inContexts(fixture, ['middle', 'early'])).toEqual([[idLate], [idMiddle]]);
  expect(reindex()).toBe(false);
});

test('after an import every context is indexed, whatever the order of its lines', async () => {
  await using fixture = await openTestEngine();
  const lines = [longLine('late', 3), longLine('middle', 2), longLine('early', 1)];
  const before = await commits(fixture);
  const outcomes = await fixture.tenant.importLines(lines);
  expect(outcomes).toEqual(Array(3).fill({ kind: 'stored' }));
  expect((await commits(fixture)) - before).toBe(6);
  const [idLate, idMiddle] = lines.map((line) => (line as { id: string }).id);
  expect(inContexts(fixture, ['middle', 'early'])).toEqual([[idLate], [idMiddle]]);
  expect(fixture.get(`SELECT count(*) FROM store_info WHERE key = 'contexts_waiting'`)).toBe(0);
});

/** A document of an export with this number of chunks, and its memories from the index `from` on, the root first. */
function documentLines(chunks: number, from = -1): PortableLine[] {
  const [id, at] = [randomUUID(), new Date(START).toISOString()];
  const times = { created_at: at, updated_at: at, read_at: at };
  const part = (index: number) => ({
    ...{ type: 'memory', id: randomUUID(), content: `part ${index} of ${id}` },
    document: { id, index, start_offset: 20 * Math.max(0, index), end_offset: 20 * (index + 1) },
  });
  const parts = Array.from({ length: chunks - from }, (_, at) => LINE_SCHEMAS.memory.parse(part(from + at)));
  return [LINE_SCHEMAS.document.parse({ type: 'document', id, source: 'upload', chunks, ...times }), ...parts];
}

test('an import counts the parts of a document once in a commit, and shows it with the last one', async () => {
  await using fixture = await openTestEngine();
  const [document, ...parts] = documentLines(40);
  const other = documentLines(2);
  using prepare = vi.spyOn(fixture.store, 'prepare');
  const run = (lines: readonly PortableLine[]) => {
    prepare.mockClear();
    const { outcomes } = runCommand(fixture, (context) => importLines(context, { lines }));
    expect(outcomes.map(({ kind }) => kind)).toEqual(lines.map(() => 'stored'));
    return prepare.mock.calls.filter(([sql]) => /count\(\*\)[^]*\bchunks\b/.test(sql)).length;
  };
  const states = () =>
    fixture.all('SELECT o.state, g.hidden FROM documents o JOIN document_generations g USING (document_no)');
  expect(run([document!, ...parts.slice(0, 30)])).toBe(1);
  expect(states()).toEqual([{ state: 'processing', hidden: 1 }]);
  expect(run([...parts.slice(30, 40), ...other])).toBe(2);
  expect(states()).toEqual([
    { state: 'processing', hidden: 1 },
    { state: 'ready', hidden: 0 },
  ]);
  expect(run(parts.slice(40))).toBe(1);
  expect(states()).toEqual(Array(2).fill({ state: 'ready', hidden: 0 }));
});

test('text that is not ASCII counts four times in each commit that indexes it', async () => {
  await using fixture = await openTestEngine();
  const text = '港町の灯台は船を数える。'.repeat(1_600);
  const lines = Array.from({ length: 5 }, (_, no) => ({ ...longLine('', 2 * no + 1), content: `${text}${no}` }));
  const stored = () => runCommand(fixture, (context) => importLines(context, { lines: lines }));
  expect(stored().outcomes).toHaveLength(2);
  expect(await fixture.tenant.importLines(lines as PortableLine[])).toHaveLength(5);

  const memoryNos = fixture.all<{ seq: number }>('SELECT seq FROM memories').map(({ seq }) => seq);
  runCommand(fixture, ({ store }) => reindexFollowers(store, memoryNos));
  expect(fixture.get(`SELECT json_array_length(value) FROM store_info WHERE key = 'contexts_waiting'`)).toBe(3);
  const waits = () => runCommand(fixture, ({ store }) => reindexWaiting(store));
  expect([waits(), waits()]).toEqual([true, false]);

  const commitsOf = async (work: () => Promise<unknown>) => {
    const before = await commits(fixture);
    await work();
    return (await commits(fixture)) - before;
  };
  const short = Array.from({ length: 4 }, (_, no) => ({ ...inSession(`ibis ${no}`, 2 * no), tags: ['short'] }));
  expect(await commitsOf(() => fixture.tenant.addMemories(short))).toBe(4);
});

test('what an import that broke off has left to index is indexed in the background', async () => {
  await using fixture = await openTestEngine();
  for (const line of [longLine('late', 3), longLine('middle', 2), longLine('early', 1)])
    runCommand(fixture, (context) => importLines(context, { lines: [line] }));
  expect(inContexts(fixture, ['early'])).toEqual([[]]);
  expect(await runDueSchedules(fixture.maintenance)).toContain('words');
  expect(idsWithWord(fixture, 'early', 'context')).toHaveLength(1);
});

test('what follows erased memories in their sessions is indexed anew in commits of some texts', async () => {
  await using fixture = await openTestEngine();
  const long = Array.from({ length: 9 }, (_, no) => inSession(`heron ${no} `.repeat(25_000), 2 * no + 1));
  const short = long.map((_, no) => ({ ...inSession(`ibis ${no}`, 2 * no), tags: ['short'] }));
  for (const memory of [...short, ...long]) await fixture.add(memory);
  expect(idsWithWord(fixture, 'ibis', 'context')).toHaveLength(9);
  const numbers = fixture.all<{ seq: number }>("SELECT seq FROM memories WHERE content LIKE 'ibis%'");
  const erase = (context: WriteContext) =>
    eraseInSlices(
      context,
      numbers.map(({ seq }) => seq),
    );
  expect(runCommand(fixture, erase)).toMatchObject({ isDone: true, receipt: { memories: 9 } });
  // Two texts of 200 kB are written in a commit.
  for (const left of [7, 5, 3, 1, 0]) {
    expect(idsWithWord(fixture, 'ibis')).toHaveLength(left);
    expect(runCommand(fixture, (context) => reindexWaiting(context.store))).toBe(left > 2);
  }
  expect(idsWithWord(fixture, 'heron')).toHaveLength(9);
});

test('of the memories with the same text in a session the newest 500 are compared with a new one', async () => {
  await using fixture = await openTestEngine();
  const copies = Array.from({ length: 600 }, (_, day) => inSession('the same words', day));
  expect(new Set(await addAll(fixture, copies))).toEqual(new Set(['accepted']));
  expect(await addAll(fixture, copies.slice(100, 102))).toEqual(['duplicate', 'duplicate']);
  expect(await addAll(fixture, copies.slice(99, 100))).toEqual(['accepted']);
});

const place = { userId: 'ana', sessionId: 's' };

/** Fills the log with 40 items of 250,000 bytes. */
async function fillLog({ tenant }: TestEngine): Promise<void> {
  for (let n = 0; n < 10; n += 1) await tenant.changeLog(place, { items: Array(4).fill('x'.repeat(250_000)) });
}

test('a change of a session log replaces at most 8 MiB of items, or one', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  await fillLog(fixture);
  const replace = async (from: number) => tenant.changeLog(place, { items: [from], replaces: { from } });
  await expect(replace(0)).rejects.toMatchObject({ code: 'invalid', message: /10000080 bytes .* at most 8388608/ });
  expect(await replace(10)).toMatchObject({ removed: 30, total: 11 });
});

test('items of a session log that cannot be the expected ones are not read', async () => {
  await using fixture = await openTestEngine();
  await fillLog(fixture);
  const { store } = fixture;
  const statements: string[] = [];
  const spied = { ...store, prepare: (sql: string) => (statements.push(sql), store.prepare(sql)) };
  const context = { store: spied, now: START, writtenBy: null } as unknown as WriteContext;
  const change = (expected: LogChange['items']) => () =>
    store.write(() => changeLog(context, { place, change: { items: [], replaces: { expected } } }));
  const readsItems = () => statements.some((sql) => sql.includes('created_at AS createdAt, item'));
  expect(change(Array(40).fill('x'))).toThrow(expect.objectContaining({ code: 'conflict' }));
  expect(readsItems()).toBe(false);
  expect(change(['x'.repeat(249_999)])).toThrow(expect.objectContaining({ code: 'conflict' }));
  expect(readsItems()).toBe(true);
});

test('the items of a cleared session log are erased in commits of a few', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  await fillLog(fixture);
  const before = await commits(fixture);
  expect(await tenant.clearLog(place)).toBe(40);
  expect((await commits(fixture)) - before).toBeGreaterThanOrEqual(6);
  expect(fixture.get('SELECT count(*) FROM session_log_items')).toBe(0);
  expect(fixture.get('SELECT count(*) FROM session_logs WHERE user_id IS NULL')).toBe(0);
});
