import { expect, test } from 'vitest';
import { keepActivity } from '../src/activity.ts';
import { createMetrics } from '../src/engine/index.ts';
import { joinMetrics } from '../src/join-metrics.ts';
import { startApi } from './support/start-api.ts';
import { tempFolder } from './support/temp-folder.ts';

test('a minute holds what the metrics of all processes rose by, with quantiles and the breakers', async () => {
  const [own, other] = [await createMetrics(), await createMetrics()];
  const read = async () => joinMetrics(own.registry, [await other.registry.getMetricsAsJSON()]);
  own.httpDurations.observe({ kind: 'add' }, 9);
  let now = 1_000;
  const activity = keepActivity(read, () => now);
  await expect.poll(async () => (await activity.read()).minutes.length).toBe(1);
  for (const metrics of [own, other]) {
    metrics.httpDurations.observe({ kind: 'query' }, 0.25);
    for (let number = 0; number < 10; number++) metrics.queryDuration.observe(0.004);
    metrics.finishedJobs.inc({ state: 'done' });
    metrics.providerTokens.inc({ purpose: 'query' }, 5);
  }
  own.watchBreaker({ service: 'embedding' }, () => true);
  own.providerHeldBack.inc({ service: 'embedding', reason: 'breaker' }, 3);
  now = 31_000;
  const { minutes, providers } = await activity.read();
  activity.stop();
  expect(minutes).toMatchObject([
    {
      at: 31_000,
      ms: 30_000,
      requests: { query: { count: 2, meanMs: 250 }, add: { count: 0, meanMs: null } },
      jobsDone: 2,
      tokens: 10,
    },
  ]);
  // All twenty queries are in the bucket from 0 to 5 ms.
  expect(minutes[0]!.queryP50Ms).toBeCloseTo(2.5);
  expect(minutes[0]!.queryP95Ms).toBeCloseTo(4.75);
  expect(providers).toEqual([{ service: 'embedding', sector: null, isOpen: true, heldBack: { breaker: 3 } }]);
});

test('operators see the activity and all settings, whose secrets are kept back; others are refused', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_DECAY_LAMBDA: '0.01' } });
  await api.add({ content: 'The kiln is fired on Fridays.', user_id: 'ana' });
  const activity = await api.request('GET', '/admin/activity');
  expect(activity.status, activity.text).toBe(200);
  const [minute] = activity.body['minutes'] as [{ requests: { add: { count: number } } }];
  expect(minute.requests.add.count).toBe(1);
  const { text, body } = await api.request('GET', '/admin/settings');
  const byName = new Map((body['items'] as unknown as { name: string }[]).map((item) => [item.name, item]));
  expect(byName.get('OM_DECAY_LAMBDA')).toMatchObject({ value: '0.01', origin: 'environment', hidden: false });
  expect(byName.get('OM_ARCHIVE_BELOW')).toMatchObject({ origin: 'default' });
  expect(byName.get('OM_API_KEY')).toMatchObject({ value: null, hidden: true, origin: 'environment' });
  expect(text).not.toContain(api.engine.config.OM_API_KEY);
  api.engine.control.createTenant('acme');
  const { secret } = api.engine.control.createKey({ tenantId: 'acme', role: 'admin' });
  for (const path of ['/admin/activity', '/admin/settings'])
    expect((await api.request('GET', path, { key: secret })).status).toBe(403);
});
