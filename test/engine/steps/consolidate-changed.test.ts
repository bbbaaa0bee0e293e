import { expect, onTestFinished, test } from 'vitest';
import { patchMemory } from '../../../src/engine/commands/patch.ts';
import { writeContextOf } from '../../../src/engine/steps/step-context.ts';
import { proposeConsolidations } from '../../../src/engine/readers/propose-consolidations.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';

const POOL = [
  'Ana swims every Monday morning at the city pool before work.',
  'Ana swims every Monday morning at the city pool before work, and in winter too.',
];

test.each([
  ['metadata', { metadata: { visibility: 'private' } }],
  ['tags', { tags: ['private'] }],
])('memories of which one gets other %s while a language model writes are not gathered', async (_, patch) => {
  const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
  onTestFinished(close);
  const fixture = await openTestEngine({ settings: { OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: url } });
  onTestFinished(() => fixture.close());
  const ids: string[] = [];
  for (const content of POOL) ids.push((await fixture.add({ content, userId: 'ana' })).id);
  await fixture.drain();
  chat.say(() => {
    fixture.store.write(() => patchMemory(writeContextOf(fixture.batch), { id: ids[0]!, patch }));
    return JSON.stringify({ text: 'Ana swims at the city pool on Monday mornings before work.' });
  });
  const { jobId } = await fixture.tenant.consolidate({ userId: 'ana', again: false });
  for (let round = 0; (await fixture.askQuestions()).claimed > 0; round++) expect(round).toBeLessThan(100);
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'done' });
  expect(chat.calls).toHaveLength(1);
  expect(await fixture.tenant.listConsolidations({ limit: 10 })).toEqual([]);
});

test('what was made of memories of a later time, from before the clock was set back, is not made over and over', async () => {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  const { tenant, clock } = fixture;
  clock.advance(3_600_000);
  for (const content of POOL) await fixture.add({ content, userId: 'ana' });
  await fixture.drain();
  clock.advance(-3_600_000);
  const made: string[][] = [];
  for (let run = 0; run < 3; run += 1) {
    await tenant.consolidate({ userId: 'ana', again: false });
    for (let round = 0; (await fixture.askQuestions()).claimed > 0; round++) expect(round).toBeLessThan(100);
    made.push((await tenant.listConsolidations({ limit: 10 })).map(({ id }) => id));
  }
  expect(made[0]).toHaveLength(1);
  expect(made).toEqual([made[0], made[0], made[0]]);
});

test('a run that has many outdated memories to erase lets others in, and stops when it is told to', async () => {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  const { tenant, store } = fixture;
  const long = 'x'.repeat(20_000);
  for (let no = 0; no < 6; no += 1) await fixture.add({ content: `${no} ${long}`, userId: 'ana' });
  await fixture.drain();
  const { jobId } = await tenant.consolidate({ userId: 'ana', again: false });
  store.write(() => {
    store
      .prepare(
        `INSERT INTO consolidations (id, run_id, user_no, memory, method, created_at)
         SELECT 'gathered ' || seq, 'run', user_no, seq, 'sentences', 0 FROM memories`,
      )
      .run();
    store.prepare(`UPDATE memory_dynamics SET status = 'archived'`).run();
  });
  const left = () => fixture.get<number>('SELECT count(*) FROM memories');
  const stop = new AbortController();
  const done = fixture.askQuestions({ signal: stop.signal });
  setImmediate(() => stop.abort());
  await done;
  expect(left()).toBeGreaterThanOrEqual(4);
  expect(await tenant.getJob(jobId)).toMatchObject({ state: 'queued' });
  for (let round = 0; (await fixture.askQuestions()).claimed > 0; round++) expect(round).toBeLessThan(100);
  expect(left()).toBe(0);
  expect(await tenant.getJob(jobId)).toMatchObject({ state: 'done' });
});

/** Two pairs of near lists, each list with more sentences than are gathered. */
async function withLongLists() {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  for (const subject of ['Harbour ferry', 'Winter garden'])
    for (const last of ['', 'Last']) {
      const list = Array.from({ length: 45 }, (_, no) => `${subject} ${no}`).join('\n');
      await fixture.add({ content: `${list}\n${last}`, userId: 'ana' });
    }
  await fixture.drain();
  return fixture;
}

test('a run lets others in also between similar memories of which nothing is made, and stops when told to', async () => {
  const fixture = await withLongLists();
  const { jobId } = await fixture.tenant.consolidate({ userId: 'ana', again: false });
  const stop = new AbortController();
  const done = fixture.askQuestions({ signal: stop.signal });
  setImmediate(() => stop.abort());
  await done;
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'queued' });
  for (let round = 0; (await fixture.askQuestions()).claimed > 0; round++) expect(round).toBeLessThan(100);
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'done' });
  expect(await fixture.tenant.listConsolidations({ limit: 10 })).toEqual([]);
});

test('proposals end within the work of one request, also between the threads of a page', async () => {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  for (const subject of ['Ana swims', 'Ben bakes bread', 'Eve repairs bicycles'])
    for (const text of POOL) await fixture.add({ content: text.replace('Ana swims', subject), userId: 'ana' });
  await fixture.drain();
  const { batch } = fixture;
  const asked = { scope: { userId: 'ana', again: false }, limit: 10 };
  const propose = (bytes: number) =>
    proposeConsolidations(
      {
        ...batch,
        tracing: null,
        querySourceOf: () => null,
        threads: 1,
        config: { ...batch.config, OM_QUERY_WORK_MB: bytes / 1_048_576 },
      },
      asked,
    );
  const { proposals, isCut } = propose(1_048_576);
  expect([proposals.length, isCut]).toEqual([3, false]);
  expect(propose(3_500)).toEqual({ proposals: proposals.slice(0, 2), isCut: true });
});
