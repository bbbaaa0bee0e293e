import { expect, test } from 'vitest';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
import { startLedgerWorker } from '../support/ledger-worker.ts';

test('a step that never ends its await is given up: its jobs are taken back, and the others go on', async () => {
  const neverEnding = new Set<string>(['b']);
  const stuck = Promise.withResolvers<void>();
  await using fixture = await openTestEngine({
    settings: { OM_LEASE_MS: '5000' },
    embedder: (embedder) => ({
      ...embedder,
      embed(texts, options) {
        if (!texts.some((text) => neverEnding.has(text))) return embedder.embed(texts, options);
        stuck.resolve();
        return new Promise(() => {});
      },
    }),
  });
  const { token } = await fixture.tenant.addMemories(['a', 'b', 'c'].map((content) => newMemory({ content })));
  const events: string[] = [];
  const logger = { ...fixture.batch.logger, error: (_: object, event: string) => void events.push(event) };
  const worker = startLedgerWorker({
    ...fixture.batch,
    logger,
    pool: { get: fixture.batch.open, evict() {}, openPaths: () => [fixture.file], close() {} },
    listPaths: () => [fixture.file],
    runMostMs: 5_000,
  });
  await stuck.promise;
  neverEnding.clear();
  // As no other batch is renewed in its place, its leases lapse.
  while (!events.includes('run_given_up')) await new Promise((resolve) => setTimeout(resolve, 5));
  fixture.clock.advance(5_000);
  expect(await fixture.tenant.waitFor(token!, 120_000)).toBe(true);
  expect(await fixture.tenant.countJobs()).toMatchObject({ done: 3, dead: 0 });
  await worker.drain();
});

test('a run that is given up calls no provider any more, and its jobs run again as suspects at once', async () => {
  const aborted = Promise.withResolvers<void>();
  let isStuck = true;
  await using fixture = await openTestEngine({
    embedder: (embedder) => ({
      ...embedder,
      embed(texts, options) {
        if (!isStuck) return embedder.embed(texts, options);
        return new Promise((_, reject) => {
          options.signal!.addEventListener('abort', () => {
            isStuck = false;
            aborted.resolve();
            reject(options.signal!.reason as Error);
          });
        });
      },
    }),
  });
  const { token } = await fixture.tenant.addMemories([
    newMemory({ content: 'slow' }),
    newMemory({ content: 'slower' }),
  ]);
  const worker = startLedgerWorker({
    ...fixture.batch,
    pool: { get: fixture.batch.open, evict() {}, openPaths: () => [fixture.file], close() {} },
    listPaths: () => [fixture.file],
    runMostMs: 5_000,
  });
  await aborted.promise;
  expect(await fixture.tenant.waitFor(token!, 120_000)).toBe(true);
  const { items } = await fixture.tenant.listJobs({ limit: 9, offset: 0 });
  for (const { timeline } of items) expect(timeline.map(({ event }) => event)).toContain('crashed');
  await worker.drain();
});
