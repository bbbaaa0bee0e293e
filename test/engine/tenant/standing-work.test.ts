import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { handEvents } from '../../../src/engine/store/hand-events.ts';
import { listQueryNos, readComparedQueries } from '../../../src/engine/store/standing.ts';
import { claimDeliveries } from '../../../src/engine/store/webhooks.ts';
import { type ClaimedDelivery, STANDING_LIMITS } from '../../../src/engine/types.ts';
import { openTestEngine, START } from '../../support/engine-fixture.ts';
import { startFakeServer } from '../../support/fake-server.ts';
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

test('a clock that is set back does not prolong the pause after a failure of the provider', async () => {
  let isDown = false;
  await using provider = await startFakeServer((response, { text }) => {
    if (isDown) return void response.writeHead(400, { 'content-type': 'application/json' }).end('{}');
    const { input } = JSON.parse(text) as { readonly input: readonly string[] };
    const embedding = Array.from({ length: 1_536 }, (_, at) => Math.sin(at + 1));
    const data = input.map((_, index) => ({ object: 'embedding', index, embedding }));
    const body = { object: 'list', model: 'm', data, usage: { prompt_tokens: 1, total_tokens: 1 } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const model = { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url, OM_OPENAI_MODEL: 'm', OM_VEC_DIM: '1536' };
  await using fixture = await openTestEngine({ settings: { ...model, OPENAI_API_KEY: 'key' } });
  const { tenant, clock } = fixture;
  await tenant.createStandingQuery(about('harbour ferry'));
  const tell = async (content: string, isFailing: boolean) => {
    await fixture.add({ content, userId: 'ana' });
    await fixture.drain();
    isDown = isFailing;
    while ((await tenant.tendStanding(new AbortController().signal)) === 'busy');
    isDown = false;
    return fixture.get<number>('SELECT count(*) FROM standing_vectors');
  };
  expect(await tell('The ferry leaves the harbour at noon.', true)).toBe(0);
  expect(await tell('The ferry is late.', false)).toBe(0);
  clock.set(START - 86_400_000);
  expect(await tell('The ferry is back in the harbour.', false)).toBe(1);
});

test('the standing queries of a tenant have a bound in characters, filters included', async () => {
  const fixture = await openTestEngine();
  const tenant = await fixture.engine.tenant('default');
  const long = { ...about('harbour '.repeat(1_000)), userId: undefined };
  const withFilter = { ...long, filter: { tags: ['x'.repeat(128)] } };
  const count = Math.floor(STANDING_LIMITS.characters / (long.query.length + JSON.stringify(withFilter.filter).length));
  await Promise.all(Array.from({ length: count }, () => tenant.createStandingQuery(withFilter)));
  await expect(tenant.createStandingQuery(long)).rejects.toMatchObject({ code: 'conflict' });
  await tenant.createStandingQuery(about('ferry'));
  await fixture.close();
});

test('a standing query counts by all of its characters, also by those behind a U+0000', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const query = `\0${'harbour '.repeat(1_000)}`;
  const add = () => tenant.createStandingQuery(about(query));
  const count = Math.floor(STANDING_LIMITS.charactersOfUser / (query.length + 2));
  await Promise.all(Array.from({ length: count }, add));
  await expect(add()).rejects.toMatchObject({ code: 'conflict', message: /of a user .* 200000 characters/ });
  expect(readComparedQueries(store, listQueryNos(store)).map(({ characters }) => characters)).toEqual(
    Array(count).fill(query.length + 2),
  );
});

test('one user has a tenth of the standing queries, by their number and by their characters', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const fill = (count: number, userId: string, length: number) =>
    store.write(() =>
      store
        .prepare(
          `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
           INSERT INTO standing_queries (id, user_id, query, filter, given, created_at)
           SELECT ? || n, ?, printf('%.*c', ?, 'x'), '{}', '{}', 0 FROM numbers`,
        )
        .run(count, userId, userId, length),
    );
  fill(STANDING_LIMITS.queriesOfUser, 'ana', 5);
  fill(100, 'ben', STANDING_LIMITS.charactersOfUser / 100 - 2);
  const ofUser = (userId?: string) => tenant.createStandingQuery({ ...about('ferry'), userId });
  await expect(ofUser('ana')).rejects.toMatchObject({ code: 'conflict', message: /a user has at most 2000/ });
  await expect(ofUser('ben')).rejects.toMatchObject({ code: 'conflict', message: /of a user .* 200000 characters/ });
  await ofUser('cem');
  await ofUser();
  await tenant.deleteStandingQuery('ana1');
  await ofUser('ana');
});

test('what ended before the clock was set back is tried again', async () => {
  await using fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  const { tenant, store, clock } = fixture;
  const hook = await tenant.createWebhook({ url: 'http://127.0.0.1:9/hook', kinds: [] });
  store.write(() =>
    store
      .prepare(
        `INSERT INTO deliveries (id, hook_no, at, event, state, next_at, ended_at)
         SELECT 'msg', hook_no, 0, '{}', 'dead', 0, ? FROM webhooks`,
      )
      .run(clock.now() + 3_600_000),
  );
  expect(await tenant.retryDeliveries(hook.id)).toBe(1);
  expect(await tenant.getWebhook(hook.id)).toMatchObject({ deliveries: { pending: 1, dead: 0 } });
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

test('an event is told to at most a hundred webhooks of all users, and to as many of its user', async () => {
  await using fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  const { tenant } = fixture;
  const url = 'http://127.0.0.1:9/hook';
  const create = async (count: number, userId?: string) => {
    for (let n = 0; n < count; n += 1) await tenant.createWebhook({ url, kinds: [], userId });
  };
  const most = STANDING_LIMITS.ofSameEvents;
  await create(most);
  await expect(create(1)).rejects.toMatchObject({ code: 'conflict', message: /of the events of all users/ });
  await create(most, 'ana');
  await expect(create(1, 'ana')).rejects.toMatchObject({ code: 'conflict', message: /of the events of one user/ });
  for (let user = 2; user < STANDING_LIMITS.ofEvents / most; user += 1) await create(most, `user ${user}`);
  await expect(create(1, 'ben')).rejects.toMatchObject({ code: 'conflict', message: /no standing query's/ });
  await tenant.createStandingQuery({ ...about(WORDS), webhookUrl: url });
});

test('events are made deliveries of in commits of some thousand, each event once', async () => {
  await using fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  const { tenant, store } = fixture;
  const hooks = STANDING_LIMITS.ofSameEvents;
  for (let n = 0; n < hooks; n += 1)
    await tenant.createWebhook({ url: 'http://127.0.0.1:9/hook', kinds: ['memory.stored'] });
  await tenant.addMemories(Array.from({ length: 33 }, (_, n) => newMemory({ content: `note ${n}`, userId: 'ana' })));
  const hand = () => store.write(() => handEvents(store, { limit: 500, now: START, newId: randomUUID })).made;
  expect([hand(), hand(), hand(), hand(), hand()]).toEqual([1_000, 1_000, 1_000, 300, 0]);
  const counts = fixture.all<{ n: number }>('SELECT count(*) AS n FROM deliveries GROUP BY hook_no, event');
  expect(counts).toEqual(Array(33 * hooks).fill({ n: 1 }));
});

test('the webhook of a user whose name is erased is told of it, and those of others are not', async () => {
  await using fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  const { tenant, store } = fixture;
  const hookOf = async (userId: string) =>
    (await tenant.createWebhook({ url: 'http://127.0.0.1:9/hook', kinds: ['memory.deleted'], userId })).id;
  const [ana] = [await hookOf('ana'), await hookOf('ben'), await hookOf('nobody')];
  const { id } = await fixture.add({ content: 'only one', userId: 'ana' });
  await fixture.add({ content: 'another', userId: 'ben' });
  await tenant.deleteMemory(id);
  store.write(() => handEvents(store, { limit: 500, now: START, newId: randomUUID }));
  const told = fixture.all('SELECT h.id FROM deliveries d JOIN webhooks h ON h.hook_no = d.hook_no');
  expect(told).toEqual([{ id: ana }]);
});

test('a claim looks at some of the webhooks with deliveries that wait, and the next claim at the others', async () => {
  await using fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  const { tenant, store } = fixture;
  await tenant.createWebhook({ url: 'http://127.0.0.1:9/hook', kinds: [] });
  store.write(() => {
    store
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 299)
         INSERT INTO webhooks (id, query_no, user_id, url, kinds, secret, since_no, created_at)
         SELECT id || n, query_no, user_id, url, kinds, secret, since_no, created_at FROM webhooks, numbers`,
      )
      .run();
    store
      .prepare(
        `INSERT INTO deliveries (id, hook_no, at, event, next_at) SELECT 'msg' || hook_no, hook_no, 0, '{}', 0
         FROM webhooks`,
      )
      .run();
  });
  const claim = (after: number) =>
    store.write(() =>
      claimDeliveries(store, {
        ...{ now: START, leaseMs: 1_000, limit: 1_000, ofUser: 1, ofAll: 1_000, after },
        underWay: [{ hookNo: after + 1, hookUserId: null }],
      }),
    );
  const first = claim(0);
  expect(first.next).toBe(256);
  const second = claim(first.next);
  expect(second.next).toBe(0);
  const hooks = [first, second].map(({ claimed }) => claimed.map(({ hookNo }) => hookNo));
  const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
  expect(hooks).toEqual([numbers(2, 256), numbers(258, 300)]);
  expect(claim(0).claimed.map(({ hookNo }) => hookNo)).toEqual([]);
});

test('the webhooks of a user that do not answer leave room for those of other users', async () => {
  await using fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  const { tenant, store } = fixture;
  const url = 'http://127.0.0.1:9/hook';
  const create = async (userId?: string) => (await tenant.createWebhook({ url, kinds: [], userId })).id;
  for (let no = 0; no < 40; no += 1) await create('ana');
  const [ofBen, ofAll] = [await create('ben'), await create()];
  const due = store.prepare(
    `INSERT INTO deliveries (id, hook_no, at, event, next_at) SELECT ? || hook_no, hook_no, 0, '{}', ? FROM webhooks`,
  );
  store.write(() => {
    for (let no = 0; no < 6; no += 1) due.run(`msg ${no} `, no);
  });
  const hookNoOf = (id: string) => fixture.get<number>('SELECT hook_no FROM webhooks WHERE id = ?', id);
  const underWay: ClaimedDelivery[] = [];
  const claim = (limit = 32 - underWay.length) => {
    const { claimed } = store.write(() =>
      claimDeliveries(store, { now: START, leaseMs: 1_000, limit, ofUser: 16, ofAll: 28, underWay, after: 0 }),
    );
    underWay.push(...claimed);
    return Object.fromEntries(
      [...Map.groupBy(claimed, ({ hookUserId }) => String(hookUserId))].map(([user, own]) => [user, own.length]),
    );
  };
  // Theirs are newer than all of the other user.
  store.write(() => {
    const later = store.prepare('UPDATE deliveries SET next_at = 100 WHERE hook_no = ?');
    for (const id of [ofBen, ofAll]) later.run(hookNoOf(id));
  });
  expect(claim(6)).toEqual({ ana: 2, ben: 2, null: 2 });
  expect(claim()).toEqual({ ana: 14 });
  expect(claim()).toEqual({});
  underWay.splice(0, underWay.length, ...underWay.filter(({ hookUserId }) => hookUserId === 'ana'));
  expect(claim()).toEqual({ ben: 4, null: 4 });
});
