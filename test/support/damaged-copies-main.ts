/**
 * A process that works with the damaged file of a tenant as a server and a worker would. It prints one line for each
 * operation, with its result. Its arguments are paths of the default tenant's file in copies of a data folder.
 */
import { v7 as uuidv7 } from 'uuid';
import { runBatch } from '../../src/engine/batches/run-batch.ts';
import { runNextDocument } from '../../src/engine/batches/run-document.ts';
import { readConfig } from '../../src/engine/config.ts';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { openParts } from '../../src/engine/parts/engine-parts.ts';
import { silentLogger, systemClock } from '../../src/engine/ports.ts';
import { cleanAfterErase } from '../../src/engine/upkeep/clean-after-erase.ts';
import { runDueSchedules } from '../../src/engine/upkeep/schedules.ts';
import type { CopyReport } from './damaged-copies.ts';
import { newMemory } from './new-memory.ts';

const NO_FILTER = {};
const PAGE = { limit: 100, offset: 0 };

for (const [copy, file] of process.argv.slice(2).entries()) await use(copy, file);

async function use(copy: number, file: string): Promise<void> {
  const config = readConfig({
    OM_DB_PATH: file,
    OM_VEC_DIM: '256',
    OM_LOG_LEVEL: 'silent',
    OM_ENCRYPTION_KEY: process.env.OM_ENCRYPTION_KEY,
  });
  const attempt = async <T>(ask: string, work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      const answer = await work();
      report({ copy, ask, said: JSON.stringify(answer) ?? '' });
      return answer;
    } catch (error) {
      const { name, message, stack = '' } = error as Error;
      report({ copy, ask, error: { name, code: (error as { code?: string }).code, message, stack } });
      return undefined;
    }
  };

  const engine = await attempt('open', async () => {
    const opened = await openEngine({ config, writer: 'inline' });
    return { ...opened, toJSON: () => 'open' };
  });
  if (engine === undefined) return report({ copy, ask: 'end' });
  for (const id of ['default', 'other']) {
    const tenant = await attempt(`tenant ${id}`, async () => ({ ...(await engine.tenant(id)), toJSON: () => id }));
    if (tenant !== undefined) await askAll(id, tenant);
  }
  await work();
  await attempt('close', () => engine.close());
  report({ copy, ask: 'end' });

  async function askAll(id: string, tenant: Tenant): Promise<void> {
    const ask = <T>(name: string, asked: () => Promise<T>) => attempt(`${id}: ${name}`, asked);
    await ask('stats', () => tenant.stats());
    await ask('sectors', () => tenant.sectorStats());
    const listed = (await ask('list', () => tenant.listMemories(NO_FILTER, PAGE))) ?? [];
    const { hits = [] } =
      (await ask('query', () => tenant.query({ query: 'ferry harbour canary', k: 20, filter: NO_FILTER }))) ?? {};
    await ask('query of a user', () => tenant.query({ query: 'heron', k: 5, filter: { userIds: ['ann'] } }));
    for (const memory of [...listed.slice(0, 3), ...hits.slice(0, 2).map((hit) => hit.memory)]) {
      await ask('get', () => tenant.getMemory(memory.id));
      await ask('links', () => tenant.listLinks(memory.id));
      await ask('revisions', () => tenant.listRevisions(memory.id));
      await ask('timeline', () => tenant.timeline(memory.id, { before: 3, after: 3, sameSession: false }));
      await ask('explain', () => tenant.explain({ query: 'ferry', k: 5, filter: NO_FILTER }, memory.id));
    }
    await ask('documents', () => tenant.listDocuments(NO_FILTER, PAGE));
    await ask('entities', () => tenant.listEntities({ prefix: '', userId: 'ann' }, PAGE));
    await ask('jobs', () => tenant.listJobs({ ...PAGE }));
    await ask('add', () => tenant.addMemories([newMemory({ content: `A new one of ${id}.` })]));
    if (listed[4]) await ask('patch', () => tenant.patchMemory(listed[4]!.id, { content: `Patched of ${id}.` }));
    if (listed[5]) await ask('delete', () => tenant.deleteMemory(listed[5]!.id));
    await ask('erase', () => tenant.deleteMemories({ userIds: ['bob'] }));
  }

  /** Does the work of a worker, with a clock two days later. */
  async function work(): Promise<void> {
    const metrics = createMetrics();
    const clock = { now: () => systemClock.now() + 2 * DAY_MS };
    const parts = openParts({ config, clock, metrics, role: 'worker', onCall: () => {} });
    const said: unknown[] = [];
    const logger = { ...silentLogger, error: (fields: object, event: string) => void said.push({ event, ...fields }) };
    const open = () => parts.pool.get(file);
    const common = { open, config, clock, metrics, logger };
    const batch = { ...common, ...parts, newId: uuidv7, owner: 'a worker' };
    await attempt('read documents', () => runNextDocument(batch, { alone: false, onClaimed: () => {} }));
    for (let claimed = 1, runs = 0; claimed > 0 && runs < 20; runs++) {
      claimed = (await attempt('work', () => runBatch(batch, 64)))?.claimed ?? 0;
    }
    await attempt('schedules', () => runDueSchedules(common));
    await attempt('clean', () => cleanAfterErase(common));
    for (const { error } of said as { error?: { name?: string; code?: string; message: string } }[]) {
      if (error)
        report({
          copy,
          ask: 'logged',
          error: { name: 'EngineError', code: error.code, stack: '', message: error.message },
        });
    }
    await parts.documentParser?.close();
    await parts.pageFetcher?.close();
    await attempt('close the worker', () => {
      parts.pool.close();
      parts.budget.close();
    });
  }
}

function report(line: CopyReport): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
