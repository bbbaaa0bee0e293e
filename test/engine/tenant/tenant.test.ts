import path from 'node:path';
import { expect, test } from 'vitest';
import { createManualClock, newMemory, openTestEngine, START } from '../../support/engine-fixture.ts';
import { readConfig } from '../../../src/engine/config.ts';
import type { Tenant } from '../../../src/engine/engine.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const invalid = { code: 'invalid' };

test('a token tells when the writes behind it are finished', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const first = await tenant.addMemories(['a', 'b'].map((content) => newMemory({ content })));
  expect(await tenant.waitFor(first.token!, 0)).toBe(false);
  await fixture.runBatch(1);
  expect(await tenant.waitFor(first.token!, 0), 'one of two').toBe(false);
  const waiting = tenant.waitFor(first.token!, 120_000);
  await fixture.drain();
  expect(await waiting).toBe(true);
  const second = await tenant.addMemories([newMemory({ content: 'c' })]);
  await tenant.cancelJob((second.outcomes[0] as { jobId: string }).jobId);
  expect(await tenant.waitFor(second.token!, 0), 'what failed for good is no longer waited for').toBe(true);
  const stop = AbortSignal.abort();
  const third = await tenant.addMemories([newMemory({ content: 'd' })]);
  expect(await tenant.waitFor(third.token!, 60_000, stop)).toBe(false);
});

test('a token that names very many jobs is answered in many turns', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const { token } = await tenant.addMemories([newMemory({ content: 'a' })]);
  await fixture.drain();
  store.write(() =>
    store
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
         INSERT INTO jobs (uuid, kind, memory, step, state, run_at, created_at, updated_at, finished_at)
         SELECT randomblob(16), 'memory', 1, 'done', 'done', 0, 0, 0, 1 FROM numbers`,
      )
      .run(),
  );
  let turns = 0;
  let isCounting = true;
  const count = () => {
    turns += 1;
    if (isCounting) setImmediate(count);
  };
  setImmediate(count);
  expect(await tenant.waitFor(`${token!.split('.')[0]!}.1.zzzzzzzzzz`, 60_000)).toBe(true);
  isCounting = false;
  expect(turns).toBeGreaterThan(10);
});

test.each(['', 'x', 'zzzzzzzz.1.2', '.1.1', '00000000.1.1', '00000000.1.0'])(
  'the token %j is refused',
  async (token) => {
    await using fixture = await openTestEngine();
    await expect(fixture.tenant.waitFor(token, 0)).rejects.toMatchObject(invalid);
  },
);

test('tenants share nothing: ids, tokens, duplicates and files, even with one file open at a time', async () => {
  const config = readConfig({
    OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'),
    OM_EMBEDDINGS: 'none',
    OM_OPEN_TENANTS: '1',
  });
  const engine = await openEngine({ config, clock: createManualClock(), writer: 'inline' });
  engine.control.createTenant('other');
  const tenants: Tenant[] = [await engine.tenant('default'), await engine.tenant('other')];
  const tokens: string[] = [];
  const ids: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    for (const tenant of tenants) {
      const { outcomes, token } = await tenant.addMemories([
        newMemory({ content: `quokka ${round}`, externalId: `x${round}` }),
      ]);
      ids.push((outcomes[0] as { id: string }).id);
      tokens.push(token!);
    }
  }
  for (const [n, tenant] of tenants.entries()) {
    expect(await tenant.stats()).toMatchObject({ memories: 3, jobs: { queued: 3 } });
    expect((await tenant.query({ query: 'quokka', k: 10, filter: {} })).hits).toHaveLength(3);
    await expect(tenant.getMemory(ids[1 - n]!)).rejects.toThrow(
      expect.objectContaining({ code: 'not_found' }) as Error,
    );
    await expect(tenant.waitFor(tokens[1 - n]!, 0)).rejects.toMatchObject(invalid);
  }
  await expect(engine.tenant('nobody')).rejects.toThrow(expect.objectContaining({ code: 'not_found' }) as Error);
  await engine.close();
});

test('lists are newest first, in pages, and know their filters', async () => {
  await using fixture = await openTestEngine();
  for (let n = 0; n < 5; n += 1) {
    await fixture.add({
      content: `note ${n}`,
      userId: n % 2 === 0 ? 'even' : 'odd',
      tags: [`t${n}`],
      eventTime: START + n,
    });
  }
  const list = async (filter: Parameters<Tenant['listMemories']>[0], limit = 10, offset = 0) =>
    (await fixture.tenant.listMemories(filter, { limit, offset })).map(({ content }) => content.slice(-1));
  expect(await list({})).toEqual(['4', '3', '2', '1', '0']);
  expect(await list({}, 2, 1)).toEqual(['3', '2']);
  expect(await list({ userIds: ['odd'] })).toEqual(['3', '1']);
  expect(await list({ tags: ['t2'] })).toEqual(['2']);
  expect(await list({ eventFrom: START + 1, eventTo: START + 3 })).toEqual(['2', '1']);
});

test('statistics count what is there', async () => {
  await using fixture = await openTestEngine();
  await fixture.add({ content: 'The wallaby hops across the road.' });
  await fixture.add({ content: 'The wallaby hops across the long road.' });
  await fixture.drain();
  const { jobId } = await fixture.add({ content: 'A third.' });
  await fixture.tenant.cancelJob(jobId);
  await fixture.add({ content: 'A fourth.' });
  expect(await fixture.tenant.stats()).toMatchObject({
    memories: 4,
    byState: { ready: 2, failed: 1, queued: 1 },
    vectors: 2,
    waypoints: 2,
    jobs: { done: 2, cancelled: 1, queued: 1 },
    databaseBytes: expect.any(Number) as number,
  });
});

test('objects of tenants that were not used lately are made anew, and share what exists once', async () => {
  await using fixture = await openTestEngine({ settings: { OM_UPLOADS_MAX_MB: '1' } });
  const { engine, tenant: first } = fixture;
  expect(await engine.tenant('default')).toBe(first);
  for (let no = 0; no < 1_000; no += 1) first.as(`key ${no}`);
  const second = await engine.tenant('default');
  expect(second).not.toBe(first);
  expect(second.as('key 999')).toBe(first.as('key 999'));
  const upload = await first.createUpload(700_000);
  await expect(second.createUpload(700_000)).rejects.toMatchObject({ code: 'unavailable' });
  await upload.discard();
  await (await second.createUpload(700_000)).discard();
});
