import { expect, test } from 'vitest';
import { createSharedReading } from '../../../src/engine/open-engine/shared-reading.ts';
import { SnapshotIsBehind } from '../../../src/engine/shared-memory.ts';
import type { SharedFile } from '../../../src/engine/tenant-file/shared-files.ts';
import type { TenantPool } from '../../../src/engine/tenant-file/tenant-pool.ts';

test('a read in its fourth try accepts later removals, whatever other reads of its thread begin and end', async () => {
  const pool = { get: () => ({ liveModels: null }), evict() {} } as unknown as TenantPool;
  const sharing = createSharedReading({ reader: 1, pool, ask() {}, lose() {} });
  sharing.put('file', { no: 1 } as SharedFile);
  const { reader } = sharing.of('file')!;
  const seen: boolean[] = [];
  let tries = 0;
  const read = async () => {
    tries += 1;
    if (tries < 4) throw new SnapshotIsBehind();
    const other = await sharing.run('file', async () => reader.acceptsLaterRemovals);
    seen.push(other, reader.acceptsLaterRemovals);
  };
  await sharing.run('file', read);
  expect({ tries, seen }).toEqual({ tries: 4, seen: [false, true] });
  expect(reader.acceptsLaterRemovals).toBe(false);
});
