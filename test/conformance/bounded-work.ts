/** One commit does a bounded amount of work, since the writes of all tenants wait for it. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { LINE_SCHEMAS } from '../../src/api/schemas/portable.ts';
import { addMemories } from '../../src/engine/commands/accept.ts';
import { deleteExpired } from '../../src/engine/commands/erase.ts';
import { importLines } from '../../src/engine/commands/import-lines.ts';
import { patchMemory } from '../../src/engine/commands/patch.ts';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import { closeErasure } from '../../src/engine/store/erasures.ts';
import { firstExpiry } from '../../src/engine/store/expiry.ts';
import type { PortableLine } from '../../src/engine/types.ts';
import { purgeFinished } from '../../src/engine/upkeep/purge-finished.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { runCommand } from '../support/run-command.ts';

/** What a check needs: a tenant without data, and the store on which single commands run. */
export type WorkFixture = Pick<TestEngine, 'tenant' | 'batch' | 'clock' | 'maintenance'> & {
  readonly store: WriteContext['store'];
};

const run = <T>(fixture: WorkFixture, command: (context: WriteContext) => T): T =>
  runCommand(fixture as unknown as TestEngine, command);

const ask = ({ store }: WorkFixture, sql: string): unknown => store.prepare(sql).pluck().get();

/** Adds a chain of 510 memories. @returns their ids, from the oldest on, of which the last is the live end */
async function addChain({ tenant, store }: WorkFixture, name: string): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < 510; at += 102) {
    const some = Array.from({ length: 102 }, (_, no) => newMemory({ content: `${name} ${at + no}` }));
    const { outcomes } = await tenant.addMemories(some);
    ids.push(...outcomes.map((outcome) => (outcome as { readonly id: string }).id));
  }
  store.write(() => {
    const [first, last] = [ids[0]!, ids.at(-1)!].map((id) =>
      store.prepare('SELECT seq FROM memories WHERE id = ?').pluck().get(id),
    ) as [number, number];
    store
      .prepare(
        `INSERT INTO edges (src, dst, type, automatic, weight, created_at, updated_at)
         SELECT seq + 1, seq, 'supersedes', 0, 1, 1, 1 FROM memories WHERE seq >= ? AND seq < ?`,
      )
      .run(first, last);
    const { lastInsertRowid } = store.prepare('INSERT INTO chains (live_end) VALUES (?)').run(last);
    store
      .prepare('UPDATE memory_dynamics SET chain_no = ? WHERE seq >= ? AND seq <= ?')
      .run(Number(lastInsertRowid), first, last);
  });
  return ids;
}

/** Checks links and adds between two long chains, which are refused after a walk along both. */
export async function walksFewChains(fixture: WorkFixture): Promise<void> {
  const dst = (await addChain(fixture, 'heron')).at(-1)!;
  const newer = await addChain(fixture, 'ibis');
  const lines = newer
    .slice(0, 128)
    .map((src) => LINE_SCHEMAS.link.parse({ type: 'link', link_type: 'supersedes', src, dst })) as PortableLine[];
  const { outcomes } = run(fixture, (context) => importLines(context, { lines }));
  expect(outcomes.map(({ kind }) => kind)).toEqual(Array(outcomes.length).fill('refused'));
  expect(outcomes.length).toBeLessThan(40);
  expect(outcomes.length).toBeGreaterThan(1);

  const items = Array.from({ length: 100 }, (_, no) => newMemory({ content: `ibis ${no}`, supersedes: dst }));
  const { taken } = run(fixture, (context) => addMemories(context, { items, options: {} }));
  expect(taken).toBeLessThan(40);
  const whole = await fixture.tenant.addMemories(items);
  expect(whole.outcomes.map(({ kind }) => kind)).toEqual(Array(100).fill('rejected'));
}

/** Checks that long reflections on a memory whose text changes are archived a few in a commit. */
export async function archivesFew(fixture: WorkFixture): Promise<void> {
  const { tenant } = fixture;
  const { outcomes } = await tenant.addMemories([newMemory({ content: 'the source' })]);
  const { id } = outcomes[0] as { readonly id: string };
  for (let no = 0; no < 12; no += 1) {
    const memory = newMemory({ content: `${no} ${'x'.repeat(250_000)}` });
    await tenant.addMemories([memory], { derived: [{ item: 0, from: [id] }] });
  }
  const patch = () => run(fixture, (context) => patchMemory(context, { id, patch: { content: 'another source' } }));
  const archived = () => ask(fixture, "SELECT count(*) FROM memory_dynamics WHERE status = 'archived'");
  expect([patch(), archived()]).toEqual([undefined, 8]);
  expect([patch(), archived()]).toMatchObject([{ memory: { content: 'another source' } }, 12]);
}

/** Checks that old receipts of erasures are deleted 50 in a commit. */
export async function purgesFewReceipts(fixture: WorkFixture): Promise<void> {
  const { store, clock, maintenance } = fixture;
  store.write(() => {
    for (let no = 0; no < 120; no += 1) {
      const erasure = { id: `receipt ${no}`, kind: 'memory', salt: 'a salt' } as const;
      closeErasure(store, erasure, { by: [], counts: {}, searched: [] }, { keyId: null, now: START });
    }
  });
  clock.advance(10_000 * DAY_MS);
  const left: unknown[] = [];
  await purgeFinished({ ...maintenance, onPause: () => left.push(ask(fixture, 'SELECT count(*) FROM erasures')) });
  expect(left).toEqual([70, 20]);
  expect(ask(fixture, 'SELECT count(*) FROM erasures')).toBe(0);
}

/** Checks that a search for what has expired passes no document that is hidden already. */
export async function passesNoHidden(fixture: WorkFixture): Promise<void> {
  const { tenant, store, clock } = fixture;
  for (let no = 0; no < 5; no += 1)
    await tenant.addDocument(newDocument(await upload(tenant, `# Heron ${no}`), { expiresAt: START + 1_000 }));
  clock.advance(2_000);
  const listed = () => ask(fixture, 'SELECT count(*) FROM document_generations WHERE expires_at > 0');
  const expire = () => run(fixture, (context) => deleteExpired(context, { limit: 2 }).isDone);
  expect([expire(), listed(), expire(), listed(), expire(), listed()]).toEqual([false, 3, false, 1, true, 0]);
  expect([firstExpiry(store), ask(fixture, 'SELECT count(*) FROM documents')]).toEqual([Infinity, 5]);
}

/** A line of an import with a short text and long labels. */
const labelled = (no: number) =>
  LINE_SCHEMAS.memory.parse({
    ...{ type: 'memory', id: randomUUID(), content: `heron ${no}`, title: '\u9e6d'.repeat(4_096) },
    ...{ files: Array.from({ length: 64 }, (_, file) => `${no}/${file}/${'\u9e6d'.repeat(840)}`) },
  }) as PortableLine;

/** Checks that an import counts all that it indexes of a line, and that titles and gists have their bounds. */
export async function importsByWork(fixture: WorkFixture): Promise<void> {
  const lines = Array.from({ length: 3 }, (_, no) => labelled(no));
  const { outcomes } = run(fixture, (context) => importLines(context, { lines }));
  expect(outcomes).toEqual([{ kind: 'stored' }]);
  expect(await fixture.tenant.importLines(lines.slice(1))).toEqual(Array(2).fill({ kind: 'stored' }));
  const line = { type: 'memory', id: randomUUID(), content: 'x' };
  const isAllowed = (more: object) => LINE_SCHEMAS.memory.safeParse({ ...line, ...more }).success;
  expect([4_096, 4_097].map((length) => isAllowed({ title: 'x'.repeat(length) }))).toEqual([true, false]);
  expect([16_384, 16_385].map((length) => isAllowed({ gist: 'x'.repeat(length) }))).toEqual([true, false]);
}
