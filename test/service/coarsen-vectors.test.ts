import { onTestFinished, expect, test } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { cosine } from '../../src/engine/store/vector-encoding.ts';
import { withStore } from '../support/add-checker.ts';
import { createManualClock, expectNoOrphans, openTestEngine } from '../support/engine-fixture.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { databaseFile, spawnService, startServiceProcess } from '../support/running-service.ts';
import { storeAsBefore } from '../support/store-as-before.ts';
import { storedVectors } from '../support/stored-vectors.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MEMORIES = 450;

test('a service that is killed while it coarsens vectors loses none, and the next one goes on', async () => {
  const folder = tempFolder();
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const settings = {
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_VEC_DIM: '256',
    OM_VECTOR_PRECISION: 'int8',
  };
  const fixture = await openTestEngine({
    file: databaseFile(folder),
    settings: { ...settings, OM_VECTOR_PRECISION: 'float32', OM_EMBED_LINGER_MS: '0' },
    clock: createManualClock(Date.now()),
  });
  for (let count = 0; count < MEMORIES; count += 1) await fixture.add({ content: `Ferry ${count} leaves for Bergen` });
  await fixture.drain();
  storeAsBefore(fixture.store);
  await fixture.close();
  const before = withStore(folder, ({ db }) => storedVectors(db));
  expect(before).toHaveLength(MEMORIES);

  const doomed = spawnService({
    folder,
    settings: { ...settings, NODE_ENV: 'test', CAIRN_FAILPOINT: 'during-coarsen:kill:2' },
  });
  expect(await doomed.exited).toMatchObject({ signal: 'SIGKILL' });
  const counts = () =>
    withStore(folder, ({ db }) => db.prepare('SELECT precision, count(*) AS n FROM vectors GROUP BY 1').all());
  expect(counts()).toEqual([
    { precision: 0, n: MEMORIES - 400 },
    { precision: 3, n: 400 },
  ]);
  withStore(folder, expectNoOrphans);

  const service = await startServiceProcess({ folder, settings });
  const isDone = () =>
    withStore(folder, ({ db }) => db.prepare('SELECT 1 FROM cached_copies LIMIT 1').get() === undefined);
  while (!isDone()) await pause(50);
  const { body } = await service.request('POST', '/memory/query', {
    body: { query: 'Ferry 7 leaves for Bergen', k: 1 },
  });
  expect(body).toMatchObject({ matches: [{ content: 'Ferry 7 leaves for Bergen' }] });
  await service.end('SIGTERM');
  expect(counts()).toEqual([{ precision: 3, n: MEMORIES }]);
  const after = withStore(folder, ({ db }) => storedVectors(db));
  for (const [place, { vectorNo, embedding }] of after.entries()) {
    expect(vectorNo).toBe(before[place]!.vectorNo);
    expect(cosine(embedding, before[place]!.embedding)).toBeGreaterThan(0.9999);
  }
  // Rows that became short share pages: 450 took 150 pages.
  const bytes = withStore(folder, ({ db }) =>
    db.prepare(`SELECT sum(pgsize) FROM dbstat WHERE name = 'vectors'`).pluck().get(),
  );
  expect(bytes).toBeLessThan(100 * MEMORIES);
  withStore(folder, expectNoOrphans);
});
