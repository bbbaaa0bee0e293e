import { expect, test } from 'vitest';
import { STANDING_LIMITS } from '../../../src/engine/types.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';
import { newMemory } from '../../support/new-memory.ts';

const WORDS = 'harbour ferry lighthouse captain anchor compass schooner barnacle mooring starboard';
const about = (query: string) => ({ query, userId: 'ana', filter: {}, given: {}, minScore: 0 });

test('a memory that may answer many queries is compared with some of them at a time, and with each once', async () => {
  const fixture = await openTestEngine();
  const tenant = await fixture.engine.tenant('default');
  const queries = Array.from({ length: 400 }, (_, no) => tenant.createStandingQuery(about(`${WORDS} ${no}`)));
  const ids = (await Promise.all(queries)).map(({ id }) => id);
  await tenant.addMemories([newMemory({ content: `${WORDS} `.repeat(48), userId: 'ana' })]);
  await fixture.drain();
  const tend = async () => tenant.tendStanding(new AbortController().signal);
  const answered = async () => {
    const { items } = await tenant.listStandingQueries({ limit: 1_000, offset: 0 });
    return items.filter(({ answers }) => answers === 1).length;
  };

  expect(await tend()).toBe('busy');
  const first = await answered();
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThan(ids.length);
  while ((await tend()) === 'busy');
  expect(await answered()).toBe(ids.length);
  const { events } = await tenant.listEvents({ limit: 1_000, kinds: ['standing.answered'] });
  expect(events.map(({ standingId }) => standingId).toSorted()).toEqual(ids.toSorted());
  await fixture.close();
});

test('the standing queries of a tenant have a bound in characters, filters included', async () => {
  const fixture = await openTestEngine();
  const tenant = await fixture.engine.tenant('default');
  const long = about('harbour '.repeat(1_000));
  const withFilter = { ...long, filter: { tags: ['x'.repeat(128)] } };
  const count = Math.floor(STANDING_LIMITS.characters / (long.query.length + JSON.stringify(withFilter.filter).length));
  await Promise.all(Array.from({ length: count }, () => tenant.createStandingQuery(withFilter)));
  await expect(tenant.createStandingQuery(long)).rejects.toMatchObject({ code: 'conflict' });
  await tenant.createStandingQuery(about('ferry'));
  await fixture.close();
});

test('what a webhook or a standing query leaves is deleted and tried again in short commits', async () => {
  await using fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  const { engine, tenant, store } = fixture;
  const url = 'http://127.0.0.1:9/hook';
  const commits = async () => {
    const { values } = await engine.metrics.commits.get();
    return values.find(({ metricName }) => metricName?.endsWith('_count'))!.value;
  };
  const during = async (work: () => Promise<unknown>) => {
    const before = await commits();
    await work();
    return (await commits()) - before;
  };
  const fill = (id: string, userId: string | null) =>
    store.write(() =>
      store
        .prepare(
          `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500)
           INSERT INTO deliveries (id, hook_no, at, user_id, event, state, next_at, ended_at)
           SELECT 'msg_' || hook_no || '_' || n, hook_no, 0, ?, '{}', 'dead', 0, 0 FROM numbers, webhooks WHERE id = ?`,
        )
        .run(userId, id),
    );
  const hook = await tenant.createWebhook({ url, kinds: [] });
  fill(hook.id, null);
  expect(await during(async () => expect(await tenant.retryDeliveries(hook.id)).toBe(2_500))).toBe(3);
  expect(await tenant.getWebhook(hook.id)).toMatchObject({ deliveries: { pending: 2_500, dead: 0 } });
  expect(await during(async () => tenant.deleteWebhook(hook.id))).toBe(4);

  const query = await tenant.createStandingQuery({ ...about(WORDS), webhookUrl: url });
  fill(query.webhook!.id, null);
  expect(await during(async () => tenant.deleteStandingQuery(query.id))).toBe(4);

  const own = await tenant.createWebhook({ url, kinds: [], userId: 'ana' });
  const all = await tenant.createWebhook({ url, kinds: [] });
  fill(own.id, 'ana');
  fill(all.id, 'ana');
  expect(await during(async () => tenant.deleteMemories({ userIds: ['ana'] }))).toBeGreaterThan(5);
  const left = fixture.all<{ user_id: string | null; n: number }>(
    'SELECT user_id, count(*) AS n FROM deliveries GROUP BY user_id',
  );
  expect(left).toEqual([{ user_id: null, n: 2_500 }]);
});
