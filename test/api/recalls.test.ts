import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createManualClock, type ManualClock, START } from '../support/engine-fixture.ts';
import { type Reply, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const DAY = 86_400_000;
const MAIL = 'zoe.adler@kestrel-mail.de';

interface Match {
  readonly id: string;
  readonly score: number;
  readonly content: string;
}
interface Replay {
  readonly matches: readonly Match[];
  readonly query: string | null;
  readonly missing: readonly string[];
  readonly not_kept: readonly string[];
  readonly moved: readonly { readonly id: string; readonly why: readonly { readonly what: string }[] }[];
  readonly gone: readonly { readonly id: string; readonly why: string }[];
  readonly new: readonly { readonly id: string; readonly why: string }[];
}

let api: TestApi;
let clock: ManualClock;
let folder: string;
const start = async (settings: Readonly<Record<string, string>> = {}) => {
  folder = tempFolder();
  clock = createManualClock(START);
  api = await startApi({ folder, clock, settings });
};
beforeEach(() => start());
afterEach(() => api.stop());

const add = async (content: string, fields: object = {}): Promise<string> =>
  (await api.add({ content, user_id: 'ana', ...fields })).id;
const post = (path: string, body?: object, key?: string) =>
  api.request('POST', path, { ...(body === undefined ? {} : { body }), ...(key === undefined ? {} : { key }) });
const get = (id: string, key?: string) => api.request('GET', `/recalls/${id}`, key === undefined ? {} : { key });

async function ask(body: object, key?: string): Promise<{ recallId: string; matches: readonly Match[] }> {
  const reply = await post('/memory/query', body, key);
  expect(reply.status, reply.text).toBe(200);
  return { recallId: reply.body['recall_id'] as string, matches: reply.body.matches };
}
async function replay(id: string, body?: object, key?: string): Promise<Replay> {
  const reply = await post(`/recalls/${id}/replay`, body, key);
  expect(reply.status, reply.text).toBe(200);
  return reply.body as unknown as Replay;
}
const listed = ({ body }: Reply, name: string) => body[name] as readonly { readonly id: string }[];
const idsOf = (matches: readonly { readonly id: string }[]) => matches.map(({ id }) => id);

describe('a replay of the state of then', () => {
  test('gives equal matches after changes, supersessions, recalls, further memories and a clock that moved', async () => {
    const ids = [];
    for (const day of ['Monday', 'Tuesday', 'Wednesday']) {
      ids.push(await add(`The harbour ferry leaves on ${day} at nine.`, { tags: [day], session_id: 'trip' }));
      clock.advance(DAY);
    }
    const old = await add('The harbour ferry costs five euros.');
    await post('/memory/supersede', { old_id: old, new_id: await add('The harbour ferry costs six euros.') });
    await post('/memory/link', { src: ids[0], dst: await add('Lunch is served on deck.'), weight: 1 });
    const rival = await add('The harbour ferry is green.');
    await post('/memory/contradict', { a: rival, b: await add('The harbour ferry is blue.') });

    const asked: readonly object[] = [
      { query: 'harbour ferry', user_id: 'ana', k: 5 },
      { query: 'when does the harbour ferry leave?', k: 3, profile: 'activation', min_score: 0 },
      { query: 'harbour ferry', k: 4, profile: 'retention', weights: { alpha: 0.9 }, deep_recall: true },
      { query: 'harbour ferry', k: 20, profile: 'fusion', cut: 'relative' },
      { query: 'harbour ferry', k: 4, filters: { tags: ['Tuesday'] }, rerank: 'none' },
    ];
    const answers = [];
    for (const body of asked) answers.push(await ask(body));
    expect(answers.every(({ matches }) => matches.length > 0)).toBe(true);

    clock.advance(3 * DAY);
    await api.request('PATCH', `/memory/${ids[0]}`, { body: { content: 'Nothing leaves on Monday.', tags: ['off'] } });
    await api.request('PATCH', `/memory/${ids[1]}`, { body: { importance: 1 } });
    await post('/memory/supersede', { old_id: ids[2], new_id: await add('The harbour ferry leaves on Thursday.') });
    for (let n = 0; n < 5; n += 1) await ask({ query: 'harbour ferry', user_id: 'ana' });
    clock.advance(-DAY);

    for (const { recallId, matches } of answers) {
      const again = await replay(recallId);
      expect(again.matches).toEqual(matches);
      expect(again).toMatchObject({ missing: [], not_kept: [], moved: [], gone: [], new: [] });
    }
  });

  test('scores the kept candidates by other weights, and says by which numbers they moved', async () => {
    const fresh = await add('The harbour ferry.', { importance: 0.1 });
    const salient = await add('The harbour ferry goes where the harbour ends and the open sea begins.', {
      importance: 1,
    });
    const { recallId, matches } = await ask({ query: 'harbour ferry', k: 2 });
    expect(idsOf(matches)).toEqual([fresh, salient]);
    const weights = { similarity: 0, salience: 1, recency: 0, waypoint: 0 };
    const again = await replay(recallId, { weights });
    expect(idsOf(again.matches)).toEqual([salient, fresh]);
    expect(again.moved.map(({ id }) => id).toSorted()).toEqual([fresh, salient].toSorted());
    expect(again.moved[0]!.why.map(({ what }) => what)).toContain('weights.salience');
    expect(idsOf((await replay(recallId, { weights, k: 1 })).gone)).toEqual([fresh]);

    const refused = await post(`/recalls/${recallId}/replay`, { user_id: 'ben' });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('state of then');
    const foreign = await post(`/recalls/${recallId}/replay`, { weights: { alpha: 1 } });
    expect(foreign.status).toBe(400);
  });
});

test('a replay of then holds for parts of a document, until the document is replaced', async () => {
  await using served = await startApi({ folder: tempFolder(), workers: true });
  const send = (method: string, path: string, body?: object) =>
    served.request(method, path, body === undefined ? {} : { body });
  const text = Array.from({ length: 60 }, (_, n) => `Chapter ${n}. The harbour ferry sails at ${n} past nine.`);
  const { body } = await send('POST', '/memory/ingest', { text: text.join('\n\n'), title: 'Timetable' });
  const id = body['document_id'] as string;
  await vi.waitFor(async () => expect((await send('GET', `/documents/${id}`)).body.state).toBe('ready'), {
    timeout: 120_000,
  });
  const asked = await send('POST', '/memory/query', { query: 'harbour ferry chapter', k: 5 });
  expect(asked.body.matches.length).toBeGreaterThan(0);
  const again = () => send('POST', `/recalls/${asked.body['recall_id'] as string}/replay`);
  await send('POST', '/memory/query', { query: 'harbour ferry chapter', k: 5 });
  expect((await again()).body.matches).toEqual(asked.body.matches);
  await send('DELETE', `/documents/${id}`);
  expect((await again()).body).toMatchObject({ matches: [], missing: idsOf(asked.body.matches) });
});

test('a replay of then holds after the sector of a memory was corrected', async () => {
  await using served = await startApi({ folder: tempFolder(), workers: true });
  const { id } = await served.add({ content: 'I rode the harbour ferry to Bergen yesterday.' });
  const ready = (sector: string) =>
    vi.waitFor(
      async () => {
        const { body } = await served.request('GET', `/memory/${id}`);
        expect(body).toMatchObject({ state: 'ready', primary_sector: sector });
      },
      { timeout: 120_000 },
    );
  await ready('episodic');
  const asked = await served.request('POST', '/memory/query', { body: { query: 'harbour ferry' } });
  expect(idsOf(asked.body.matches)).toEqual([id]);
  await served.request('PATCH', `/memory/${id}`, { body: { metadata: { sector: 'procedural' } } });
  await ready('procedural');
  const again = await served.request('POST', `/recalls/${asked.body['recall_id'] as string}/replay`);
  expect(again.body.matches).toEqual(asked.body.matches);
});

test('a replay of today shows what moved, came and went, and why, and changes nothing', async () => {
  const stays = await add('The harbour ferry leaves at nine.');
  const superseded = await add('The harbour ferry costs five.');
  const erased = await add('The harbour ferry is late.');
  const { recallId, matches } = await ask({ query: 'harbour ferry', user_id: 'ana' });
  expect(matches).toHaveLength(3);
  clock.advance(5 * DAY);
  const added = await add('The harbour ferry has a bar.');
  const successor = await add('The harbour ferry costs six.');
  await post('/memory/supersede', { old_id: superseded, new_id: successor });
  await api.request('DELETE', `/memory/${erased}`);
  await api.request('PATCH', `/memory/${stays}`, { body: { importance: 1 } });

  const now = await replay(recallId, { state: 'now' });
  expect(idsOf(now.matches).toSorted()).toEqual([stays, added, successor].toSorted());
  expect(Object.fromEntries(now.gone.map(({ id, why }) => [id, why]))).toEqual({
    [erased]: 'erased',
    [superseded]: 'superseded',
  });
  expect(Object.fromEntries(now.new.map(({ id, why }) => [id, why]))).toEqual({
    [added]: 'added',
    [successor]: 'added',
  });
  expect(now.missing).toEqual([erased]);
  const [moved] = now.moved;
  expect(moved!.id).toBe(stays);
  expect(moved!.why.map(({ what }) => what)).toEqual(expect.arrayContaining(['salience', 'version']));

  const before = (await api.request('GET', `/memory/${stays}`)).body;
  expect(idsOf((await replay(recallId, { state: 'now', query: 'bar', k: 1 })).matches)).toEqual([added]);
  expect((await api.request('GET', `/memory/${stays}`)).body).toEqual(before);
});

test('a recall tells the namespace that was asked, and the conditions on the value of items', async () => {
  const item = { key: 'editor', namespace: ['settings'], value: { theme: 'dark' } };
  expect((await api.request('PUT', '/store/items', { body: item })).status).toBe(204);
  const search = { namespace_prefix: ['settings'], query: 'dark theme', filter: { theme: 'dark' } };
  await post('/store/items/search', search);
  const recalls = async () =>
    (await api.request('GET', '/recalls')).body['items'] as readonly unknown[] as readonly { recall_id: string }[];
  await expect.poll(recalls).toMatchObject([{ query: 'dark theme' }]);
  expect((await get((await recalls())[0]!.recall_id)).body).toMatchObject({
    filters: { namespace: 'settings', value: { theme: 'dark' } },
  });
});

test('a recall tells what was asked, what came and what was cut, and keeps the feedback on it', async () => {
  for (let n = 1; n <= 5; n += 1) await add(`Ferry ${'number '.repeat(n)} sails.`);
  const { recallId, matches } = await ask({ query: 'ferry', user_id: 'ana', k: 2, filters: { types: undefined } });
  const { status, body } = await get(recallId);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    recall_id: recallId,
    at: clock.now(),
    query: 'ferry',
    query_kept: 'whole',
    filters: { users: ['ana'] },
    k: 2,
    profile: 'composite',
    missing: [],
    feedback: [],
  });
  expect(listed({ body } as Reply, 'matches')).toMatchObject(matches.map(({ id, score }) => ({ id, score })));
  expect((body['left_out'] as readonly unknown[]).length).toBeGreaterThan(0);

  const [first] = idsOf(matches);
  await post(`/recalls/${recallId}/feedback`, { verdict: 'wrong', memory_ids: [first] });
  const given = await post(`/recalls/${recallId}/feedback`, { verdict: 'used', memory_ids: [first] });
  const expected = [{ memory_id: first, verdict: 'used', at: clock.now() }];
  expect(given.body['feedback']).toEqual(expected);
  expect((await get(recallId)).body['feedback']).toEqual(expected);
  const other = await add('A tram.');
  expect((await post(`/recalls/${recallId}/feedback`, { verdict: 'used', memory_ids: [other] })).status).toBe(404);
  expect((await post(`/recalls/${recallId}/feedback`, { verdict: 'good', memory_ids: [first] })).status).toBe(400);
  expect((await get('01a1fe39-072e-72be-90b2-5f657e247f4a')).status).toBe(404);
});

describe('what is erased', () => {
  test('leaves a recall with its memory, and stays as an id alone', async () => {
    const one = await add('The harbour ferry leaves.');
    const two = await add('The harbour ferry arrives.');
    const { recallId, matches } = await ask({ query: 'harbour ferry' });
    await post(`/recalls/${recallId}/feedback`, { verdict: 'used', memory_ids: [one] });
    await api.request('DELETE', `/memory/${one}`);
    const { body } = await get(recallId);
    expect(idsOf(listed({ body } as Reply, 'matches'))).toEqual([two]);
    expect(body).toMatchObject({ missing: [one], feedback: [] });
    const again = await replay(recallId);
    expect(again.matches).toEqual(matches.filter(({ id }) => id === two));
    expect(again.gone).toMatchObject([{ id: one, why: 'erased' }]);
  });

  test('with a user goes what was asked about the user, also what waits to be logged', async () => {
    await add('The harbour ferry leaves.');
    const kept = await ask({ query: 'secret plan of ben', user_id: 'ben' });
    const ana = await ask({ query: 'harbour ferry', user_id: 'ana' });
    expect((await get(ana.recallId)).status).toBe(200);
    const waits = await ask({ query: 'harbour ferry again', user_id: 'ana' });
    expect((await api.request('DELETE', '/users/ana/memories')).status).toBe(200);
    expect((await get(ana.recallId)).status).toBe(404);
    expect((await get(waits.recallId)).status).toBe(404);
    expect((await get(kept.recallId)).status).toBe(200);
  });
});

test('the log is bounded in bytes and days, and can be switched off', async () => {
  await api.stop();
  await start({ OM_RECALL_MB: '1', OM_RECALL_DAYS: '2' });
  await add('The harbour ferry leaves.');
  const users = Array.from({ length: 60 }, (_, n) => `${n} ${'u'.repeat(250)}`);
  const recalls = [];
  for (let n = 0; n < 100; n += 1) recalls.push((await ask({ query: 'harbour', filters: { users } })).recallId);
  const last = recalls.at(-1)!;
  expect((await get(last)).status).toBe(200);
  expect((await get(recalls[0]!)).status).toBe(404);
  clock.advance(3 * DAY);
  expect((await get(last)).status).toBe(404);
  await api.stop();
  await start({ OM_RECALL_DAYS: '0' });
  expect((await get((await ask({ query: 'harbour' })).recallId)).status).toBe(404);
});

test('of a filter that is too long to be kept, users are, and the question is not', async () => {
  await add('The harbour ferry leaves.');
  const files = Array.from({ length: 100 }, (_, n) => `${n} ${'f'.repeat(200)}`);
  const short = await ask({ query: 'harbour', filters: { users: ['ana'], files: files.slice(0, 50) } });
  expect((await get(short.recallId)).body).toMatchObject({ query: 'harbour', query_kept: 'whole' });
  const long = await ask({ query: 'harbour', filters: { users: ['ana'], files } });
  const { body } = await get(long.recallId);
  expect(body).toMatchObject({ query: null, query_kept: 'withheld', filters: { users: ['ana'] } });
  expect(JSON.stringify(body)).not.toContain('fff');
});

test('a bound key finds only what was asked within its bounds', async () => {
  const { control } = api.engine;
  const key = (bounds: object) => control.createKey({ tenantId: 'default', role: 'write', ...bounds } as never).secret;
  const ana = key({ userId: 'ana' });
  const tagged = key({ userId: 'ana', tags: ['team'] });
  const ben = key({ userId: 'ben' });
  const [shared] = [await add('The harbour ferry leaves.', { tags: ['team'] }), await add('The harbour is closed.')];
  const byAna = await ask({ query: 'harbour' }, ana);
  const byTagged = await ask({ query: 'harbour' }, tagged);
  const byAll = await ask({ query: 'harbour' });
  expect(byTagged.matches).toHaveLength(1);
  expect((await get(byAna.recallId, ana)).status).toBe(200);
  expect((await get(byTagged.recallId, ana)).status).toBe(200);
  expect((await get(byAna.recallId, tagged)).status).toBe(404);
  for (const path of ['replay', 'feedback']) {
    const body = path === 'feedback' ? { verdict: 'used', memory_ids: [shared] } : {};
    expect((await post(`/recalls/${byAna.recallId}/${path}`, body, ben)).status).toBe(404);
    expect((await post(`/recalls/${byAll.recallId}/${path}`, body, ana)).status).toBe(404);
  }
  expect(idsOf((await replay(byTagged.recallId, { state: 'now' }, tagged)).matches)).toEqual([shared]);
  const foreign = await post(`/recalls/${byAna.recallId}/replay`, { state: 'now', user_id: 'ben' }, ana);
  expect(foreign.status).toBe(403);
  // What left the bounds since is shown no more.
  await api.request('PATCH', `/memory/${shared}`, { body: { tags: [] } });
  expect(await replay(byTagged.recallId, {}, tagged)).toMatchObject({ matches: [], missing: [shared] });
});

test('without a key nothing is logged or looked up', async () => {
  await api.stop();
  await start({ OM_PUBLIC_READS: 'true' });
  await add('The harbour ferry leaves.');
  const open = await api.request('POST', '/memory/query', { body: { query: 'harbour' }, key: null });
  expect((await get(open.body['recall_id'] as string)).status).toBe(404);
  const { recallId } = await ask({ query: 'harbour' });
  expect((await get(recallId)).status).toBe(200);
  expect((await api.request('GET', `/recalls/${recallId}`, { key: null })).status).toBe(404);
});

test('the question is kept and shown only as the privacy policy allows', async () => {
  await api.stop();
  await start({ OM_PII: 'redact' });
  await add('The harbour ferry leaves.');
  const { recallId } = await ask({ query: `harbour ferry for ${MAIL}`, filters: { tags: [] } });
  const { body } = await get(recallId);
  expect(body).toMatchObject({ query: 'harbour ferry for [REDACTED:email]', query_kept: 'redacted' });
  expect((await replay(recallId)).not_kept).toEqual(['query']);

  const policy = (personal: string) => api.request('PUT', '/settings/privacy', { body: { personal, secrets: 'off' } });
  await policy('off');
  const whole = (await ask({ query: `harbour ${MAIL}` })).recallId;
  expect((await get(whole)).body).toMatchObject({ query: `harbour ${MAIL}`, query_kept: 'whole' });
  await policy('refuse');
  expect((await get(whole)).body).toMatchObject({ query: null, query_kept: 'withheld' });
  const refused = (await ask({ query: `harbour ${MAIL}` })).recallId;
  await policy('off');
  expect((await get(refused)).body).toMatchObject({ query: null, query_kept: 'withheld' });
  expect((await post(`/recalls/${refused}/replay`, { state: 'now' })).status).toBe(409);
  expect((await replay(refused, { state: 'now', query: 'harbour' })).matches).toHaveLength(1);
});

describe('the list of recalls', () => {
  test('has the newest first, page by page, by user and by memory, and no text of what was forgotten', async () => {
    const boat = await add('The red boat leaks.');
    const other = await add('The green boat floats.', { user_id: 'ben' });
    const { recallId: first } = await ask({ query: 'red boat', user_id: 'ana' });
    const { recallId: second } = await ask({ query: 'green boat', user_id: 'ben' });
    const list = async (query: string, key?: string) => {
      const reply = await api.request('GET', `/recalls?${query}`, key === undefined ? {} : { key });
      expect(reply.status, reply.text).toBe(200);
      return reply.body as unknown as { items: { recall_id: string; query: string }[]; next: number | null };
    };
    const idsIn = (page: Awaited<ReturnType<typeof list>>) => page.items.map(({ recall_id: id }) => id);
    expect(idsIn(await list(''))).toEqual([second, first]);
    const page = await list('limit=1');
    expect(idsIn(page)).toEqual([second]);
    expect(await list(`limit=1&before=${page.next}`)).toMatchObject({
      items: [{ recall_id: first, query: 'red boat', user_ids: ['ana'], matches: 1, degraded: false }],
      next: null,
    });
    expect((await list('limit=2')).next).toBeNull();
    expect(idsIn(await list('user_id=ana'))).toEqual([first]);
    expect(idsIn(await list(`memory_id=${other}`))).toEqual([second]);
    expect((await api.request('GET', `/recalls?memory_id=${crypto.randomUUID()}`)).status).toBe(404);

    const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read', userId: 'ana' });
    expect(idsIn(await list('', secret))).toEqual([first]);
    expect((await api.request('GET', '/recalls?user_id=ben', { key: secret })).status).toBe(403);
    expect((await api.request('GET', `/recalls?memory_id=${other}`, { key: secret })).status).toBe(404);
    await api.request('DELETE', `/memory/${boat}`);
    expect(idsIn(await list('user_id=ana'))).toEqual([first]);
    clock.advance(40 * DAY);
    expect(idsIn(await list(''))).toEqual([]);
  });
});
