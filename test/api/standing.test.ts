import Database from 'better-sqlite3';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { tendStandingUntil } from '../../src/api/run-standing.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { startReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts';
import { fileTest } from '../support/store-settings.ts';

let api: TestApi;
let receiver: WebhookReceiver;
const stop = new AbortController();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  receiver = await startReceiver();
  void tendStandingUntil(stop.signal, api.engine);
});
beforeEach(() => {
  receiver.messages.length = 0;
  receiver.answers.length = 0;
});
afterAll(async () => {
  stop.abort();
  await api.stop();
  await receiver[Symbol.asyncDispose]();
});

interface Answer {
  readonly memory_id: string;
  readonly score: number | null;
  readonly supersedes: string | null;
  readonly document_id: string | null;
}

const post = async (path: string, body: object, key?: string) =>
  api.request('POST', path, { body, ...(key === undefined ? {} : { key }) });
const addReady = async (item: object) => {
  const { id, token } = await api.add(item);
  await (await api.engine.tenant('default')).waitFor(token, 120_000);
  return id;
};
const answersOf = async (id: string) =>
  (await api.request('GET', `/standing/${id}/answers`)).body.items as unknown as Answer[];
/** Waits until nothing is left to compare, to hand over or to send now. */
const untilTended = async () => {
  const tenant = await api.engine.tenant('default');
  const waiting = async () =>
    (await tenant.stats()).jobs.queued + ((await tenant.tendStanding(stop.signal)) === 'busy' ? 1 : 0);
  await expect.poll(waiting, { interval: 50 }).toBe(0);
};
const keyOf = (key: object) =>
  api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;

describe('a standing query', () => {
  test('tells of a memory that answers it, once, by a signed webhook and an event', async () => {
    const created = await post('/standing', {
      query: 'Where does Ana work?',
      user_id: 'ana',
      webhook: { url: receiver.url },
    });
    expect(created.status).toBe(201);
    const { id, webhook } = created.body as unknown as { id: string; webhook: { id: string; secret: string } };
    expect(webhook.secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);

    await addReady({ content: 'The weather in Porto was fine.', user_id: 'ana' });
    await addReady({ content: 'Ana works at the harbour office.', user_id: 'ben' });
    const memory = await addReady({ content: 'Ana works at the harbour office in Porto.', user_id: 'ana' });
    const [message] = await receiver.untilReceived(1);
    const verified = new Webhook(webhook.secret).verify(message!.text, message!.headers as Record<string, string>);
    expect(verified).toEqual(message!.body);
    expect(message!.body).toMatchObject({
      type: 'standing.answered',
      data: { id: memory, user_id: 'ana', standing_id: id },
    });
    expect(message!.text).not.toContain('harbour');
    expect(() => new Webhook(webhook.secret).verify(`${message!.text} `, message!.headers as never)).toThrow();

    // A change makes the memory ready anew: it was told of, and is not told of again.
    await api.request('PATCH', `/memory/${memory}`, { body: { content: 'Ana works at the harbour office, still.' } });
    await untilTended();
    expect(receiver.messages).toHaveLength(1);
    expect(await answersOf(id)).toMatchObject([{ memory_id: memory, supersedes: null, document_id: null }]);
    const { body } = await api.request('GET', '/events?kinds=standing.answered&user_id=ana');
    expect(body.items).toMatchObject([{ id: memory, standing_id: id, user_id: 'ana' }]);
    await api.request('DELETE', `/standing/${id}`);
  });

  test('gives an answer the score that it has as the best hit of a query', async () => {
    const query = 'Which bakery sells rye bread?';
    const { id } = (await post('/standing', { query, user_id: 'cleo' })).body;
    const memory = await addReady({ content: 'The bakery at the corner sells rye bread.', user_id: 'cleo' });
    await untilTended();
    const { matches } = (await post('/memory/query', { query, filters: { user_id: 'cleo' }, reinforce: false })).body;
    expect(matches[0]!.id).toBe(memory);
    const [answer] = await answersOf(id);
    expect(answer!.score).toBeCloseTo(matches[0]!.score, 5);
  });

  test('tells of what supersedes an answer, though it shares no word with the question', async () => {
    const { id } = (await post('/standing', { query: 'What is the code of the safe?', user_id: 'dora' })).body;
    const old = await addReady({ content: 'The code of the safe is 4711.', user_id: 'dora' });
    await untilTended();
    const next = await addReady({ content: 'It was changed to 1234 on Monday.', user_id: 'dora' });
    await untilTended();
    expect(await answersOf(id)).toMatchObject([{ memory_id: old }]);
    await post('/memory/supersede', { old_id: old, new_id: next });
    await untilTended();
    expect(await answersOf(id)).toMatchObject([{ memory_id: next, score: null, supersedes: old }, { memory_id: old }]);
  });

  test('tells of parts of a document once it is shown, and heeds filters and floors', async () => {
    const asked = { query: 'How is the espresso machine descaled by the barista?', user_id: 'eve' };
    const { id } = (await post('/standing', asked)).body;
    const filtered = (await post('/standing', { ...asked, filters: { tags: ['kitchen'] } })).body.id;
    const strict = (await post('/standing', { ...asked, min_score: 1 })).body.id;
    const { document_id: documentId } = (
      await post('/memory/ingest', {
        content_type: 'md',
        text: '# Care\n\nThe espresso machine is descaled with citric acid every month.\n',
        user_id: 'eve',
      })
    ).body as unknown as { document_id: string };
    await expect.poll(() => answersOf(id).then((list) => list.length)).toBe(1);
    expect(await answersOf(id)).toMatchObject([{ document_id: documentId }]);
    await untilTended();
    expect(await answersOf(filtered)).toEqual([]);
    expect(await answersOf(strict)).toEqual([]);
    const { body } = await api.request('GET', `/standing/${filtered}`);
    expect(body).toMatchObject({ filters: { tags: ['kitchen'] }, min_score: null, answers: 0 });
  });

  test('belongs to its user: a bound key sees its own, and the erasure of the user takes it along', async () => {
    const key = keyOf({ userId: 'fay' });
    const own = (await post('/standing', { query: 'Who feeds the cat?' }, key)).body;
    const foreign = (await post('/standing', { query: 'Who feeds the dog?', user_id: 'gus' })).body.id;
    const hook = (await post('/webhooks', { url: receiver.url }, key)).body;
    expect(own).toMatchObject({ user_id: 'fay' });
    expect(hook).toMatchObject({ user_id: 'fay' });
    expect((await api.request('GET', '/standing', { key })).body).toMatchObject({ total: 1, items: [{ id: own.id }] });
    for (const [method, path] of [
      ['GET', `/standing/${foreign}`],
      ['DELETE', `/standing/${foreign}`],
      ['GET', `/standing/${foreign}/answers`],
    ] as const) {
      expect((await api.request(method, path, { key })).status, path).toBe(404);
    }
    expect((await post('/standing', { query: 'cat', user_id: 'gus' }, key)).status).toBe(403);
    await addReady({ content: 'Gus writes to nobody.', user_id: 'gus' });
    await addReady({ content: 'Fay feeds the cat.', user_id: 'fay' });
    await receiver.untilReceived(3);
    expect(new Set(receiver.messages.map(({ body }) => body.data['user_id']))).toEqual(new Set(['fay']));
    expect(receiver.messages.map(({ body }) => body.type).toSorted()).toEqual([
      'memory.ready',
      'memory.stored',
      'standing.answered',
    ]);
    await api.request('DELETE', '/users/fay/memories');
    for (const path of [`/standing/${own.id}`, `/webhooks/${hook.id}`])
      expect((await api.request('GET', path)).status, path).toBe(404);
    expect((await api.request('GET', `/standing/${foreign}`)).status).toBe(200);
    const { body } = await api.request('GET', '/audit?action=standing.erase');
    expect(body.items).toHaveLength(1);
  });
});

describe('a webhook', () => {
  fileTest('is told of the kinds it asks for, and tried again with the same id until a 2xx comes', async () => {
    const created = await post('/webhooks', { url: receiver.url, events: ['memory.ready'], user_id: 'hal' });
    const { id } = created.body;
    receiver.answers.push(503, 302);
    const memory = await addReady({ content: 'Hal bought a lamp.', user_id: 'hal' });
    await receiver.untilReceived(1);
    await expect
      .poll(async () => (await api.request('GET', `/webhooks/${id}/deliveries`)).body.items)
      .toMatchObject([{ state: 'pending', attempts: 1, last_status: 503, event_id: memory, type: 'memory.ready' }]);
    // Two pauses pass; a redirect is no success and is not followed.
    const store = new Database(api.engine.config.paths.defaultTenant);
    for (const count of [2, 3]) {
      store.prepare(`UPDATE deliveries SET next_at = 0 WHERE state = 'pending'`).run();
      await receiver.untilReceived(count);
      await untilTended();
    }
    store.close();
    expect(new Set(receiver.messages.map((message) => message.id)).size).toBe(1);
    await expect
      .poll(async () => (await api.request('GET', `/webhooks/${id}`)).body['deliveries'])
      .toEqual({ pending: 0, delivered: 1, dead: 0 });
    expect(JSON.stringify((await api.request('GET', `/webhooks/${id}`)).body)).not.toContain('whsec_');
    await api.request('DELETE', `/webhooks/${id}`);
  });

  test('whose receiver is gone has dead deliveries, which can be tried again', async () => {
    const { id } = (await post('/webhooks', { url: receiver.url, events: ['memory.stored'], user_id: 'ivy' })).body;
    receiver.answers.push(410);
    await addReady({ content: 'Ivy planted ivy.', user_id: 'ivy' });
    await expect
      .poll(async () => (await api.request('GET', `/webhooks/${id}/deliveries?state=dead`)).body.total)
      .toBe(1);
    expect((await api.request('POST', `/webhooks/${id}/retry`)).body).toEqual({ retried: 1 });
    await receiver.untilReceived(2);
    expect(receiver.messages[0]!.id).toBe(receiver.messages[1]!.id);
    await api.request('DELETE', `/webhooks/${id}`);
  });

  test.each([
    ['ftp://example.com/', 'https'],
    ['no url', 'expected a URL'],
    ['https://user:secret@example.com/', 'user name'],
    ['https://10.0.0.1/', 'not allowed'],
    ['http://169.254.169.254/latest', 'not allowed'],
    ['https://[::1]/', 'not allowed'],
  ])('at %s is refused', async (url, reason) => {
    const reply = await post('/webhooks', { url });
    expect(reply.status).toBe(400);
    expect(reply.body.detail).toContain(reason);
  });

  test('reaches no private address by a name or without leave', async () => {
    await using strict = await startApi({ folder: tempFolder(), threads: false });
    const refused = await strict.request('POST', '/webhooks', { body: { url: receiver.url } });
    expect(refused.status).toBe(400);
    expect(refused.body.detail).toContain('OM_WEBHOOK_ALLOW');
  });
});
