import { describe, expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { plantedValues } from '../engine/privacy/planted-values.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const settings = { OM_EMBEDDINGS: 'none' };
const key = (value: string) => ({ 'idempotency-key': value });

test('a hundred equal requests at once make one memory and a hundred equal replies', async () => {
  await using api = await startApi({ folder: tempFolder(), settings });
  // Each would be a memory of its own without the key: equal times are compared only where they were given.
  const body = { content: 'said once', external_id: 'e1' };
  const replies = await Promise.all(
    Array.from({ length: 100 }, () => api.request('POST', '/memory/add', { body, headers: key('parallel') })),
  );
  expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  expect(replies[0]!.status).toBe(202);
  expect(replies.filter(({ headers }) => headers.get('idempotent-replayed') === 'true')).toHaveLength(99);
  expect((await api.request('GET', '/memory/all')).body.items).toHaveLength(1);
});

test('the same key with another body, or on another route, is another matter', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const first = await api.request('POST', '/memory/add', { body: { content: 'a' }, headers: key('k') });
  const other = await api.request('POST', '/memory/add', { body: { content: 'b' }, headers: key('k') });
  expect([other.status, other.body.code]).toEqual([422, 'unprocessable']);
  const blank = await api.request('POST', '/memory/add', { body: '{ "content": "a" }', headers: key('k') });
  expect(blank.status).toBe(422);
  const items = { items: [{ content: 'c' }, { content: '' }] };
  const batch = await api.request('POST', '/memory/add/batch', { body: items, headers: key('k') });
  expect(batch.status).toBe(202);
  const again = await api.request('POST', '/memory/add/batch', { body: items, headers: key('k') });
  expect(again.text).toBe(batch.text);
  const contents = (await api.request('GET', '/memory/all')).body.items.map(({ content }) => content);
  expect(contents).toEqual(['c', 'a']);
  expect(first.status).toBe(202);
});

test('a reply belongs to the API key that wrote: another one adds anew under the same Idempotency-Key', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const body = { content: 'guessed by another' };
  const send = (apiKey: string) => api.request('POST', '/memory/add', { body, headers: key('k'), key: apiKey });
  const [own, other] = [1, 2].map(() => api.engine.control.createKey({ tenantId: 'default', role: 'add' }).secret);
  const first = await send(own!);
  expect(first.status).toBe(202);
  const guessed = await send(other!);
  expect(guessed.headers.get('idempotent-replayed')).toBeNull();
  expect(guessed.body).not.toHaveProperty('token');
  const again = await send(own!);
  expect([again.headers.get('idempotent-replayed'), again.text]).toEqual(['true', first.text]);
});

test('a refused request keeps nothing under its key', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  expect((await api.request('POST', '/memory/add', { body: { content: '' }, headers: key('k') })).status).toBe(400);
  expect((await api.request('POST', '/memory/add', { body: { content: 'now right' }, headers: key('k') })).status).toBe(
    202,
  );
});

test('a kept reply outlives a restart, and never brings back what was deleted', async () => {
  const folder = tempFolder();
  const body = { content: 'kept' };
  const first = await startApi({ folder, settings });
  const reply = await first.request('POST', '/memory/add', { body, headers: key('restart') });
  await first.stop();
  await using second = await startApi({ folder, settings, threads: false });
  const again = await second.request('POST', '/memory/add', { body, headers: key('restart') });
  expect([again.status, again.text]).toEqual([202, reply.text]);
  await second.request('DELETE', `/memory/${reply.body.id}`);
  const late = await second.request('POST', '/memory/add', { body, headers: key('restart') });
  expect([late.status, late.body.code]).toEqual([409, 'conflict']);
  expect((await second.request('GET', '/memory/all')).body.items).toEqual([]);
});

test('a key is 1 to 255 visible ASCII characters', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const statusOf = async (value: string) =>
    (await api.request('POST', '/memory/add', { body: { content: `key of ${value.length}` }, headers: key(value) }))
      .status;
  expect(await statusOf('~'.repeat(255))).toBe(202);
  for (const value of ['~'.repeat(256), '', 'a b', 'é', 'a\tb'])
    expect([value, await statusOf(value)]).toEqual([value, 400]);
});

describe('a repeated request gets the reply of the first time', () => {
  const SECRET = plantedValues(createRandom(1), 1).find(({ kind }) => kind === 'github_key')!.value;
  const boundKeyOf = ({ engine }: TestApi) =>
    engine.control.createKey({ tenantId: 'default', role: 'write', userId: 'ana' }).secret;

  test('of a bound key, although what it supersedes is gone by then', async () => {
    await using api = await startApi({ folder: tempFolder(), settings, threads: false });
    const bound = boundKeyOf(api);
    const { id: older } = await api.add({ content: 'The door is blue.' }, bound);
    const items = [{ content: 'The door is red.', supersedes: older }, { content: 'The kettle is green.' }];
    const send = () =>
      api.request('POST', '/memory/add/batch?receipt=true', { body: { items }, headers: key('batch'), key: bound });
    const first = await send();
    await api.request('DELETE', `/memory/${older}`, { key: bound });
    const again = await send();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect([again.status, again.body.results]).toEqual([202, first.body.results]);
    const receipt = await api.request('GET', `/receipts/${String(again.body['receipt_id'])}`, { key: bound });
    expect(receipt.body.items.map((item) => (item as unknown as { memory_id: string }).memory_id)).toEqual(
      first.body.results.map(({ id }) => id),
    );
  });

  test('of a single add of a bound key', async () => {
    await using api = await startApi({ folder: tempFolder(), settings, threads: false });
    const bound = boundKeyOf(api);
    const { id: older } = await api.add({ content: 'The door is blue.' }, bound);
    const body = { content: 'The door is red.', supersedes: older };
    const send = () => api.request('POST', '/memory/add', { body, headers: key('one'), key: bound });
    const first = await send();
    await api.request('DELETE', `/memory/${older}`, { key: bound });
    expect(await send().then(({ status, text }) => [status, text])).toEqual([202, first.text]);
  });

  test('also where the memory goes while equal requests are on their way', async () => {
    await using api = await startApi({ folder: tempFolder(), settings, threads: false });
    const bound = boundKeyOf(api);
    const { id: older } = await api.add({ content: 'The door is blue.' }, bound);
    const items = [
      { content: 'The door is red.', supersedes: older, external_id: 'door' },
      { content: 'The kettle of Ben.', user_id: 'ben' },
      { content: 'The kettle is green.', external_id: 'kettle' },
    ];
    const send = () =>
      api.request('POST', '/memory/add/batch', { body: { items }, headers: key('parallel'), key: bound });
    const some = () => Array.from({ length: 10 }, send);
    const early = some();
    await Promise.any(early);
    await api.request('DELETE', `/memory/${older}`, { key: bound });
    const replies = await Promise.all([...early, ...some()]);
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(replies.filter(({ headers }) => headers.get('idempotent-replayed') === 'true')).toHaveLength(19);
  });

  test.each([
    ['off', 'refuse'],
    ['refuse', 'off'],
    ['redact', 'off'],
  ])('although the privacy settings were turned from %s to %s', async (before, after) => {
    await using api = await startApi({ folder: tempFolder(), settings, threads: false });
    const setPolicy = (secrets: string) =>
      api.request('PUT', '/settings/privacy', { body: { secrets, personal: 'off' } });
    const single = { body: { content: `my token is ${SECRET}` }, headers: key('k') };
    const batch = {
      body: { items: [{ content: `the token is ${SECRET}` }, { content: 'The kettle is green.' }] },
      headers: key('k'),
    };
    const send = async () =>
      [await api.request('POST', '/memory/add', single), await api.request('POST', '/memory/add/batch', batch)].map(
        ({ status, body: { detail, id, redacted, results } }) => ({ status, detail, id, redacted, results }),
      );
    await setPolicy(before);
    const first = await send();
    await setPolicy(after);
    expect(await send()).toEqual(first);
  });
});
