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
    runMostMs: 50,
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
