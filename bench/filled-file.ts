import { v7 as uuidv7 } from 'uuid';
import type { BatchContext } from '../src/engine/batches/batch-context.ts';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { readConfig } from '../src/engine/config.ts';
import type { Tenant } from '../src/engine/engine.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { silentLogger, systemClock } from '../src/engine/ports.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { createTexts } from './load.ts';

const ADDED_AT_ONCE = 1_000;

/**
 * Stores natural texts in a new file, and works on them until all have vectors and links.
 * @param more what else is stored; it is called with the tenant and a worker on its file
 */
export async function fillFile(
  file: string,
  memories: number,
  more: (tenant: Tenant, worker: BatchContext) => Promise<void> = async () => {},
): Promise<void> {
  const config = readConfig({ OM_DB_PATH: file });
  const engine = await openEngine({ config, writer: 'inline' });
  const tenant = await engine.tenant('default');
  const surroundings = { config, clock: systemClock, metrics: createMetrics(), logger: silentLogger };
  const parts = openParts({ ...surroundings, role: 'worker', onCall: () => {} });
  const worker = { ...surroundings, ...parts, open: () => parts.pool.get(file), newId: uuidv7, owner: 'bench' };
  const texts = createTexts(memories);
  for (let at = 0; at < memories; at += ADDED_AT_ONCE) {
    await tenant.addMemories(texts.slice(at, at + ADDED_AT_ONCE).map((content) => newMemory({ content })));
    while ((await runBatch(worker, 256)).claimed > 0);
  }
  await more(tenant, worker);
  await engine.close();
  await Promise.all([parts.documentParser?.close(), parts.pageFetcher?.close()]);
  parts.pool.close();
}
