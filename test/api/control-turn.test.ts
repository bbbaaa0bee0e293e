import { expect, test } from 'vitest';
import { controlTurn } from '../../src/api/control-turn.ts';
import { nextTurn, runInShare } from '../../src/engine/index.ts';
import { openEvents } from '../support/event-stream.ts';
import { startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('a key with many changes of the control database takes one place, until it is revoked', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
  const { engine } = api;
  const callOf = () => {
    const { secret, record } = engine.control.createKey({ tenantId: 'default', role: 'admin' });
    const principal = { ...engine.control.authenticate(secret)!, tenantId: 'default' };
    const call = { api: { engine }, principal } as unknown as Parameters<typeof controlTurn>[0];
    return { id: record.id, wait: () => runInShare(principal, () => controlTurn(call)) };
  };
  const [busy, quiet] = [callOf(), callOf()];
  const order: string[] = [];
  const many = Array.from({ length: 50 }, async () => {
    await busy.wait();
    order.push('busy');
    if (order.filter((name) => name === 'busy').length === 20) engine.control.revokeKey(busy.id);
  });
  const other = quiet.wait().then(() => order.push('other'));
  const work = nextTurn().then(() => order.push('work'));
  const ended = await Promise.allSettled([...many, other, work]);
  expect(Math.max(order.indexOf('other'), order.indexOf('work'))).toBeLessThan(6);
  expect(order.filter((name) => name === 'busy')).toHaveLength(20);
  const refusals = ended.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
  expect(refusals).toEqual(Array(30).fill(expect.objectContaining({ code: 'unauthenticated' })));
});

test('a key that revokes itself is answered, also if its other requests are ended before', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
  const { engine } = api;
  const { secret: key, record } = engine.control.createKey({ tenantId: 'default', role: 'admin' });
  const stream = await openEvents(api, '/events', { key, headers: { accept: 'text/event-stream' } });
  const change = engine.changeControl;
  const slowly: typeof change = async (...asked) => {
    const made = await change(...asked);
    expect(await stream.next()).toMatchObject({ event: 'gone' });
    return made;
  };
  Object.assign(engine, { changeControl: slowly });
  const reply = await api.request('DELETE', `/admin/keys/${record.id}`, { key });
  expect(reply.status).toBe(200);
  expect(reply.body).toMatchObject({ id: record.id, revoked_at: expect.any(Number) as number });
  expect((await api.request('GET', '/admin/keys', { key })).status).toBe(401);
});
