import { expect, test } from 'vitest';
import { EngineError } from '../../../src/engine/errors.ts';
import type { TenantPool } from '../../../src/engine/tenant-file/tenant-pool.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';
import { startLedgerWorker } from '../../support/ledger-worker.ts';

test('jobs of a batch whose end could not be written are taken up again, although their worker lives on', async () => {
  let failures = 0;
  const failedTwice = Promise.withResolvers<void>();
  await using fixture = await openTestEngine({ settings: { OM_LEASE_MS: '5000' } });
  const { token } = await fixture.tenant.addMemories([newMemory({ content: 'a' }), newMemory({ content: 'b' })]);
  // Neither the commit nor the note of its failure gets through, as when the disk is full.
  const pool: TenantPool = {
    get() {
      if (fixture.get(`SELECT count(*) FROM jobs WHERE state = 'active'`) === 2 && failures < 2) {
        failures += 1;
        if (failures === 2) failedTwice.resolve();
        throw new EngineError('storage_full', 'the disk that holds the database is full');
      }
      return fixture.batch.open();
    },
    evict() {},
    openPaths: () => [fixture.file],
    close() {},
  };
  const worker = startLedgerWorker({ ...fixture.batch, pool, listPaths: () => [fixture.file] });
  await failedTwice.promise;
  expect(await fixture.tenant.waitFor(token!, 0)).toBe(false);
  fixture.clock.advance(5_000);
  expect(await fixture.tenant.waitFor(token!, 120_000)).toBe(true);
  expect(await fixture.tenant.countJobs()).toMatchObject({ done: 2 });
  await worker.drain();
});
