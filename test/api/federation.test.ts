import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openAnswerRoom } from '../../src/api/answer-room.ts';
import { decryptFolder } from '../../src/engine/for-admin.ts';
import { readConfig } from '../../src/engine/config.ts';
import { startFakeServer } from '../support/fake-server.ts';
import { startServiceProcess } from '../support/running-service.ts';
import { filesOf, newKey } from '../support/sealed-folder.ts';
import { ADMIN_KEY, type Reply, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

interface Answer {
  readonly matches: readonly {
    readonly origin: { readonly tenant: string | null; readonly server: string | null };
    readonly content: string;
    readonly score: number;
  }[];
  readonly members: readonly {
    readonly tenant: string | null;
    readonly server: string | null;
    readonly outcome: string;
    readonly detail: string | null;
    readonly matches: number;
    readonly degraded: boolean;
    readonly recall_id: string | null;
  }[];
  readonly degraded: boolean;
  readonly truncated?: true;
}

const QUESTION = 'Which berth has the ferry Aurora?';
const LOCAL = { OM_FEDERATION_ALLOW: '127.0.0.1' };
/** Where no member is meant to be late, none may be late on a slow machine. */
const PATIENT = { ...LOCAL, OM_FEDERATION_TIMEOUT_MS: '60000' };

let here: TestApi;
let there: TestApi;
let folder: string;
let masterKey: string;
/** A key of `there` with the role `read`. */
let remoteKey: string;
let readKey: string;

beforeAll(async () => {
  folder = tempFolder();
  masterKey = newKey();
  here = await startApi({ folder, settings: { ...PATIENT, OM_ENCRYPTION_KEY: masterKey, OM_AUDIT: 'all' } });
  there = await startApi({ folder: tempFolder(), settings: { OM_FEDERATION_ALLOW: '127.0.0.1' } });
  for (const id of ['team', 'other']) here.engine.control.createTenant(id);
  there.engine.control.createTenant('harbour');
  const { control } = here.engine;
  readKey = control.createKey({ tenantId: 'default', furtherTenantIds: ['team'], role: 'read' }).secret;
  remoteKey = there.engine.control.createKey({
    ...{ tenantId: 'default', furtherTenantIds: ['harbour'], role: 'read' },
  }).secret;
  const addKey = (api: TestApi, tenantId: string) => api.engine.control.createKey({ tenantId, role: 'add' }).secret;
  await here.add({ content: 'The ferry Aurora has berth 4 on Mondays.', user_id: 'ana', tags: ['port'] });
  await here.add({ content: 'The ferry Aurora has berth 5 in storms.', user_id: 'ben' });
  await here.add({ content: 'The ferry Aurora has berth 6 at night.', user_id: 'ana' }, addKey(here, 'team'));
  await here.add({ content: 'The ferry Aurora has berth 7 for repairs.', user_id: 'ana' }, addKey(here, 'other'));
  await there.add({ content: 'The ferry Aurora has berth 8 in Turku.', user_id: 'ana' });
  await there.add({ content: 'The ferry Aurora has berth 9 in Oulu.', user_id: 'ana' }, addKey(there, 'harbour'));
  await register('turku', there.url, { key: remoteKey });
  await register('oulu', there.url, { key: remoteKey, tenant: 'harbour' });
});
afterAll(async () => {
  await here.stop();
  await there.stop();
});

const register = async (name: string, url: string, more: object = {}, api = here): Promise<Reply> =>
  api.request('POST', '/federation/servers', { body: { name, url, ...more } });
const send = (body: object, key = readKey, headers: Readonly<Record<string, string>> = {}) =>
  here.request('POST', '/federation/query', { body: { query: QUESTION, ...body }, key, headers });
const ask = async (body: object, key = readKey): Promise<Answer> => answerOf(await send(body, key));
const answerOf = (reply: Reply): Answer => {
  expect(reply.status, reply.text).toBe(200);
  return reply.body as unknown as Answer;
};
const berths = ({ matches }: Answer) => matches.map(({ content }) => /berth (\d)/.exec(content)?.[1]).sort();
const outcomes = ({ members }: Answer): Readonly<Record<string, string>> =>
  Object.fromEntries(members.map(({ server, tenant, outcome }) => [String(server ?? tenant), outcome] as const));

describe('several tenants', () => {
  test('all tenants of the key are asked, and each match says where it is from', async () => {
    const answer = await ask({});
    expect(berths(answer)).toEqual(['4', '5', '6']);
    expect(answer.matches.find(({ content }) => content.includes('berth 6'))?.origin).toEqual({
      tenant: 'team',
      server: null,
    });
    expect(answer.members).toMatchObject([
      { tenant: 'default', outcome: 'answered', matches: 2, degraded: false },
      { tenant: 'team', outcome: 'answered', matches: 1, degraded: false },
    ]);
    expect(answer.degraded).toBe(false);
    expect(berths(await ask({ tenants: ['team'] }))).toEqual(['6']);
  });

  test('k bounds the whole answer, best first', async () => {
    const all = await ask({});
    const { matches } = await ask({ k: 2 });
    expect(matches.map(({ content }) => content)).toEqual(all.matches.slice(0, 2).map(({ content }) => content));
    const scores = all.matches.map(({ score }) => score);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
  });

  test.each(['other', 'none'])('a tenant that the key does not reach is refused: %s', async (tenant) => {
    const { status, body } = await send({ tenants: ['default', tenant] });
    expect([status, body.code]).toEqual([403, 'forbidden']);
  });

  test('a key keeps its bounds in each tenant', async () => {
    const { control } = here.engine;
    const both = { tenantId: 'default', furtherTenantIds: ['team'], role: 'read' } as const;
    const ofAna = control.createKey({ ...both, userId: 'ana' }).secret;
    expect(berths(await ask({}, ofAna))).toEqual(['4', '6']);
    expect((await send({ user_id: 'ben' }, ofAna)).status).toBe(403);
    expect(berths(await ask({ filters: { users: ['ben'] } }, ofAna))).toEqual([]);
    const ofPort = control.createKey({ ...both, tags: ['port'] }).secret;
    expect(berths(await ask({}, ofPort))).toEqual(['4']);
    for (const key of [ofAna, ofPort]) {
      expect((await send({ servers: ['turku'] }, key)).status).toBe(403);
      expect((await here.request('GET', '/federation/servers', { key })).status).toBe(403);
    }
  });

  test('each tenant takes one query of the key, and one that has none left costs its own answer alone', async () => {
    const { control } = here.engine;
    const { secret, record } = control.createKey({
      ...{ tenantId: 'default', furtherTenantIds: ['team'], role: 'read' },
    });
    for (const tenantId of ['default', 'team']) control.limits.change({ tenantId, keyId: record.id }, { queries: 3 });
    expect(outcomes(await ask({}, secret))).toEqual({ default: 'answered', team: 'answered' });
    const second = await ask({}, secret);
    expect(outcomes(second)).toEqual({ default: 'answered', team: 'refused' });
    expect([second.degraded, berths(second)]).toEqual([true, ['4', '5']]);
    expect((await send({}, secret)).status).toBe(429);
  });

  test('what tenants answer counts in the memory of the key until the slowest member has answered', async () => {
    const { secret, record } = here.engine.control.createKey({
      ...{ tenantId: 'default', furtherTenantIds: ['team'], role: 'read' },
    });
    // The key asks in another tenant at the same time.
    const room = openAnswerRoom({ keyId: record.id, tenantId: 'team' });
    expect(room.take(32 * 1024 * 1024 - 100)).toBe(true);
    const full = await ask({}, secret);
    expect([outcomes(full), full.degraded]).toEqual([{ default: 'failed', team: 'failed' }, true]);
    room.leave();
    expect(outcomes(await ask({}, secret))).toEqual({ default: 'answered', team: 'answered' });
  });

  test('the answers to all keys of a tenant together leave room for those to others', () => {
    const bytes = 16 * 1024 * 1024;
    const open = (keyId: string, tenantId: string) => openAnswerRoom({ keyId, tenantId });
    const rooms = Array.from({ length: 5 }, (_, no) => open(`key ${no}`, 'many'));
    expect(rooms.map((room) => room.take(bytes))).toEqual([true, true, true, true, false]);
    const other = open('own', 'other');
    expect([other.take(bytes), other.take(bytes)]).toEqual([true, true]);
    for (const room of [...rooms, other]) room.leave();
  });

  test('the request pays for its own tenant, wherever that is named, and for no other', async () => {
    const { control } = here.engine;
    const limited = (tenantId: string) => {
      const { secret, record } = control.createKey({
        ...{ tenantId: 'default', furtherTenantIds: ['team'], role: 'read' },
      });
      control.limits.change({ tenantId, keyId: record.id }, { queries: 1 });
      return secret;
    };
    const elsewhere = limited('team');
    expect(outcomes(await ask({ tenants: ['team'] }, elsewhere))).toEqual({ team: 'answered' });
    expect(outcomes(await ask({ tenants: ['team'] }, elsewhere))).toEqual({ team: 'refused' });
    const both = await ask({ tenants: ['team', 'default'] }, limited('default'));
    expect(outcomes(both)).toEqual({ team: 'answered', default: 'answered' });
  });

  test('nothing is reinforced, and the audit log of each tenant names the reading', async () => {
    await ask({});
    for (const tenant of ['default', 'team']) {
      const headers = { 'x-cairn-tenant': tenant };
      const { matches } = (
        await here.request('POST', '/memory/query', { body: { query: QUESTION }, headers, key: readKey })
      ).body as unknown as { readonly matches: readonly { readonly access_count: number }[] };
      expect(matches.every(({ access_count: count }) => count === 0)).toBe(true);
    }
    const inTeam = here.engine.control.createKey({ tenantId: 'team', role: 'admin' }).secret;
    const { body } = await here.request('GET', '/audit?action=read.queryFederation&limit=1', { key: inTeam });
    expect(body.items.length).toBe(1);
  });
});

describe('other servers', () => {
  test('a server answers for the tenant that it was registered with', async () => {
    const answer = await ask({ servers: ['turku', 'oulu'] });
    expect(berths(answer)).toEqual(['4', '5', '6', '8', '9']);
    expect(answer.matches.find(({ content }) => content.includes('berth 9'))?.origin).toEqual({
      tenant: 'harbour',
      server: 'oulu',
    });
    expect(answer.members.every(({ recall_id: id }) => id !== null)).toBe(true);
    expect(berths(await ask({ tenants: [], servers: ['turku'] }))).toEqual(['8']);
    const looked = await there.request('POST', '/memory/query', { body: { query: QUESTION } });
    expect(looked.body.matches[0]).toMatchObject({ access_count: 0 });
  });

  test('keys are neither shown nor in any byte of the folder, nor in the audit log', async () => {
    const { text, body } = await here.request('GET', '/federation/servers', { key: readKey });
    expect(body.items).toMatchObject([{ name: 'oulu', tenant: 'harbour', has_key: true }, { name: 'turku' }]);
    expect(text).not.toContain(remoteKey);
    for (const { name, bytes } of filesOf(folder)) expect(bytes.includes(remoteKey), name).toBe(false);
    const records = await here.engine.control.audit.list({ limit: 100 });
    expect(JSON.stringify(records)).toContain('federation.add');
    expect(JSON.stringify(records)).not.toContain(remoteKey);
  });

  test('a server belongs to the tenant that registered it', async () => {
    const inTeam = { 'x-cairn-tenant': 'team' };
    expect((await send({ servers: ['turku'] }, readKey, inTeam)).body.code).toBe('not_found');
    const admin = here.engine.control.createKey({ tenantId: 'other', role: 'admin' }).secret;
    expect((await here.request('GET', '/federation/servers', { key: admin })).body.total).toBe(0);
    const gone = await here.request('DELETE', '/federation/servers/turku', { key: admin });
    expect(gone.status).toBe(404);
    const body = { name: 'mine', url: there.url };
    expect((await here.request('POST', '/federation/servers', { body, key: admin })).status).toBe(201);
    here.engine.control.createTenant('short');
    here.engine.control.federation.add('short', { name: 'x', url: there.url, key: 'k', remoteTenant: null });
    here.engine.control.eraseTenant('short');
    expect(here.engine.control.federation.find('short', 'x')).toBeUndefined();
  });

  test('an admin who undoes a leaked key forgets its servers, and only those', async () => {
    const { control } = here.engine;
    const leaked = control.createKey({ tenantId: 'default', role: 'admin' });
    const writer = control.createKey({ tenantId: 'default', role: 'write' });
    const body = { name: 'leak', url: there.url };
    await here.request('POST', '/federation/servers', { body, key: leaked.secret });
    const undo = async (key: string, more: object = {}) => {
      const filter = { written_by: leaked.record.id, ...more };
      return (await here.request('DELETE', '/memory', { body: filter, key })).body['servers'];
    };
    const writers = async () => {
      const { items } = (await here.request('GET', '/federation/servers')).body;
      return items.map((item) => (item as unknown as { readonly written_by: string }).written_by);
    };
    expect(await undo(writer.secret)).toBeUndefined();
    expect(await undo(ADMIN_KEY, { user_id: 'ana' })).toBeUndefined();
    expect(await writers()).toEqual([leaked.record.id, 'environment', 'environment']);
    expect(await undo(ADMIN_KEY)).toBe(1);
    expect(await writers()).toEqual(['environment', 'environment']);
    expect(await undo(ADMIN_KEY)).toBe(0);
    const [last] = await control.audit.list({ limit: 1 });
    expect(last).toMatchObject({ action: 'federation.remove', detail: { server: 'leak' } });
  });

  test('only admins register and remove', async () => {
    const body = { name: 'new', url: there.url };
    expect((await here.request('POST', '/federation/servers', { body, key: readKey })).status).toBe(403);
    expect((await here.request('DELETE', '/federation/servers/turku', { key: readKey })).status).toBe(403);
    expect((await register('turku', there.url)).body.code).toBe('conflict');
    expect((await register('gone', there.url)).status).toBe(201);
    expect((await here.request('DELETE', '/federation/servers/gone')).status).toBe(200);
    expect((await send({ servers: ['gone'] }, ADMIN_KEY)).body.code).toBe('not_found');
  });

  test('a server that was killed costs its own answer alone', async () => {
    const settings = { OM_API_KEY: ADMIN_KEY };
    const service = await startServiceProcess({ folder: tempFolder(), settings });
    const body = { content: 'The ferry Aurora has berth 1 in Kemi.' };
    await service.request('POST', '/memory/add', { body, headers: { authorization: `Bearer ${ADMIN_KEY}` } });
    await register('kemi', await service.ready, { key: ADMIN_KEY });
    expect(berths(await ask({ servers: ['kemi'] }))).toEqual(['1', '4', '5', '6']);
    await service.end('SIGKILL');
    const answer = await ask({ servers: ['kemi', 'turku'] });
    expect(berths(answer)).toEqual(['4', '5', '6', '8']);
    expect(outcomes(answer)).toEqual({ default: 'answered', team: 'answered', turku: 'answered', kemi: 'unreachable' });
    expect(answer.degraded).toBe(true);
  });

  test('a wrong key is an answer that was refused', async () => {
    await register('strange', there.url, { key: 'wrong' });
    const { members } = await ask({ tenants: [], servers: ['strange'] });
    expect(members).toMatchObject([{ outcome: 'refused', detail: 'the server answered 401', recall_id: null }]);
  });
});

/** A match as Cairn sends it. */
const MATCH = {
  ...{ id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72', user_id: '', session_id: '', content: 'berth 2', title: '' },
  ...{ type: null, tags: [], metadata: {}, primary_sector: 'semantic', external_id: null, score: 0.9 },
  ...{ created_at: 1, event_time: 1 },
};
const GOOD = { matches: [MATCH], degraded: false, recall_id: '01a1fe39-072e-72be-90b2-5f657e247f4a' };
const json = (body: unknown) => (response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));

describe('servers that lie', () => {
  test('what is no answer is none, and what goes beyond the question is passed over', async () => {
    const lies: Readonly<Record<string, (response: ServerResponse) => void>> = {
      text: (response) => void response.end('<html>'),
      null: json(null),
      'no-matches': json({ degraded: false }),
      'no-list': json({ ...GOOD, matches: 'many' }),
      'no-content': json({ ...GOOD, matches: [{ ...MATCH, content: undefined }] }),
      'high-score': json({ ...GOOD, matches: [{ ...MATCH, score: 1e9 }] }),
      'no-score': json({ ...GOOD, matches: [{ ...MATCH, score: 'best' }] }),
      deep: (response) => void response.writeHead(200).end('['.repeat(2_000_000)),
      'deep-metadata': (response) => {
        const metadata = `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
        response.writeHead(200).end(JSON.stringify(GOOD).replace('"metadata":{}', `"metadata":${metadata}`));
      },
      'many-names': json({ ...GOOD, extra: Object.fromEntries(Array.from({ length: 20_001 }, (_, n) => [n, 0])) }),
      'many-values': json({ ...GOOD, extra: Array.from({ length: 100_001 }, () => 0) }),
      'long-metadata': json({ ...GOOD, matches: [{ ...MATCH, metadata: { a: 'x'.repeat(16_384) } }] }),
      'long-title': json({ ...GOOD, matches: [{ ...MATCH, title: 'x'.repeat(1_025) }] }),
      'long-content': json({ ...GOOD, matches: [{ ...MATCH, content: 'x'.repeat(256 * 1024 + 1) }] }),
      'many-tags': json({ ...GOOD, matches: [{ ...MATCH, tags: Array.from({ length: 65 }, String) }] }),
      huge: (response) => {
        response.writeHead(200);
        const more = () => {
          while (!response.destroyed && response.write(' '.repeat(65_536)));
        };
        response.on('drain', more);
        more();
      },
    };
    for (const [name, lie] of Object.entries(lies)) {
      await using server = await startFakeServer(lie);
      await register(name, server.url);
      const answer = await ask({ servers: [name] });
      expect([name, outcomes(answer)[name]]).toEqual([name, 'invalid']);
      expect(berths(answer)).toEqual(['4', '5', '6']);
    }
    await using many = await startFakeServer(
      json({ ...GOOD, secret: 'x', matches: Array.from({ length: 1_000 }, () => ({ ...MATCH, path: '../..' })) }),
    );
    await register('many', many.url);
    const { matches, members } = await ask({ tenants: [], servers: ['many'], k: 3 });
    expect(members[0]).toMatchObject({ outcome: 'answered', matches: 3 });
    expect(matches.every((match) => !('path' in match))).toBe(true);
  });

  test('no more is read of an answer than so many matches may need', async () => {
    await using padded = await startFakeServer(
      (response) => void response.writeHead(200).end(JSON.stringify(GOOD) + ' '.repeat(2 * 1024 * 1024)),
    );
    await register('padded', padded.url);
    const { members } = await ask({ tenants: [], servers: ['padded'], k: 1 });
    expect(members).toMatchObject([{ outcome: 'invalid', detail: 'the server answered more than 802816 bytes' }]);
    expect(outcomes(await ask({ tenants: [], servers: ['padded'], k: 20 }))).toEqual({ padded: 'answered' });
  });

  test('not only the texts of the matches are counted', async () => {
    const match = { ...MATCH, content: 'x'.repeat(16_000), metadata: { a: 'y'.repeat(16_000) } };
    await using server = await startFakeServer(json({ ...GOOD, matches: Array.from({ length: 200 }, () => match) }));
    await register('wide', server.url);
    const { matches, members, truncated } = await ask({ tenants: [], servers: ['wide'], k: 200 });
    expect([members[0]?.matches, truncated]).toEqual([200, true]);
    expect(Buffer.byteLength(JSON.stringify(matches.map(({ origin: _, ...rest }) => rest)))).toBeLessThan(
      6 * 1024 ** 2,
    );
  });

  test('the texts of all members together are bounded', async () => {
    const matches = Array.from({ length: 20 }, () => ({ ...MATCH, content: 'x'.repeat(150_000) }));
    await using large = await startFakeServer(json({ ...GOOD, matches }));
    const names = ['large-1', 'large-2', 'large-3'];
    for (const name of names) await register(name, large.url);
    const answer = await ask({ tenants: [], servers: names, k: 100 });
    expect(outcomes(answer)).toEqual({ 'large-1': 'answered', 'large-2': 'answered', 'large-3': 'answered' });
    expect(answer.matches.length).toBe(Math.floor((6 * 1024 * 1024) / 150_000));
    expect(answer.truncated).toBe(true);
  });

  test('so are the bytes of all answers that are read at once for a key, which costs members and nothing else', async () => {
    await using server = await startFakeServer(
      (response) => void response.writeHead(200).end(JSON.stringify(GOOD) + ' '.repeat(8 * 1024 * 1024)),
    );
    const names = Array.from({ length: 6 }, (_, place) => `padded-${place}`);
    for (const name of names) await register(name, server.url);
    for (let again = 0; again < 2; again += 1) {
      const answer = await ask({ servers: names, k: 100 });
      const count = (outcome: string) => answer.members.filter((member) => member.outcome === outcome).length;
      expect(count('failed')).toBeGreaterThan(0);
      expect(count('answered') + count('failed')).toBe(answer.members.length);
      expect(answer.members.find(({ outcome }) => outcome === 'failed')?.detail).toMatch(/no room/);
      expect(berths(answer)).toEqual(expect.arrayContaining(['4', '5', '6']));
    }
    expect(outcomes(await ask({ tenants: [], servers: names.slice(0, 1), k: 100 }))).toEqual({
      'padded-0': 'answered',
    });
    for (const name of names) await here.request('DELETE', `/federation/servers/${name}`);
  });

  test('a redirect is not followed, to whichever address it leads', async () => {
    await using secret = await startFakeServer(json(GOOD));
    for (const [name, location] of [
      ['metadata', 'http://169.254.169.254/latest/meta-data/'],
      ['loopback', `${secret.url}/memory/query`],
    ] as const) {
      await using server = await startFakeServer((response) => void response.writeHead(307, { location }).end());
      await register(name, server.url);
      const { members } = await ask({ tenants: [], servers: [name] });
      expect(members).toMatchObject([{ outcome: 'invalid', matches: 0 }]);
      expect(server.requests.length).toBe(1);
    }
    expect(secret.requests).toEqual([]);
  });

  test('a question carries the key of that server and no other, and says that it is federated', async () => {
    await using server = await startFakeServer(json(GOOD));
    await register('listener', `${server.url}/prefix/`, { key: 'its-own-key' });
    await ask({ tenants: [], servers: ['listener'], user_id: 'ana', k: 2 });
    const [request] = server.requests;
    expect(request).toMatchObject({ method: 'POST', path: '/prefix/memory/query' });
    expect(request?.headers).toMatchObject({ authorization: 'Bearer its-own-key', 'x-cairn-federated': '1' });
    expect(JSON.parse(request!.text)).toEqual({ query: QUESTION, user_id: 'ana', k: 2, reinforce: false });
    expect(JSON.stringify(request)).not.toContain(readKey);
  });
});

test('a server that hangs is given up, before its reply and within it', async () => {
  const settings = { ...LOCAL, OM_FEDERATION_TIMEOUT_MS: '10000' };
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  await api.add({ content: 'The ferry Aurora has berth 4 on Mondays.' });
  // The first question of a process takes longest, and the tenant has the same time as the servers.
  await api.request('POST', '/memory/query', { body: { query: QUESTION } });
  await using silent = await startFakeServer(() => {});
  await using halting = await startFakeServer((response) => void response.writeHead(200).write('{"matches": ['));
  await register('silent', silent.url, {}, api);
  await register('halting', halting.url, {}, api);
  const body = { query: QUESTION, servers: ['silent', 'halting'] };
  const answer = answerOf(await api.request('POST', '/federation/query', { body }));
  expect(outcomes(answer)).toEqual({ default: 'answered', silent: 'timeout', halting: 'timeout' });
  expect(berths(answer)).toEqual(['4']);
  const counted = await api.engine.metrics.federationMembers.get();
  const of = (member: string, outcome: string) =>
    counted.values.find(({ labels }) => labels.member === member && labels.outcome === outcome)?.value;
  expect([of('tenant', 'answered'), of('server', 'timeout'), of('server', 'answered')]).toEqual([1, 2, 0]);
});

describe('addresses', () => {
  test.each([
    ['https://169.254.169.254', 'this address is not allowed'],
    ['https://10.0.0.1', 'this address is not allowed'],
    ['http://8.8.8.8', 'this address is not allowed'],
    ['https://[::1]', 'this address is not allowed'],
    ['ftp://example.com', 'expected a URL with https'],
    ['https://ana:secret@example.com', 'leave user name'],
    ['https://example.com/?to=x', 'leave the query string'],
    ['https://example.com/admin/delete?', 'leave the query string'],
    ['https://example.com/admin/delete#', 'leave the query string'],
    ['example', 'expected a URL'],
  ])('%s is refused', async (url, why) => {
    const { status, body } = await register('wrong', url);
    expect(status).toBe(400);
    expect(body.detail).toContain(why);
  });

  test('an address that is no longer allowed is not connected to', async () => {
    const own = tempFolder();
    await using server = await startFakeServer(json(GOOD));
    const before = await startApi({ folder: own, settings: PATIENT, threads: false });
    await register('near', server.url, {}, before);
    await before.stop();
    const settings = { OM_FEDERATION_TIMEOUT_MS: '60000' };
    await using after = await startApi({ folder: own, settings, threads: false });
    const body = { query: QUESTION, tenants: [], servers: ['near'] };
    const { members } = answerOf(await after.request('POST', '/federation/query', { body }));
    expect(members).toMatchObject([
      { outcome: 'unreachable', detail: 'its address is not allowed (OM_FEDERATION_ALLOW)' },
    ]);
    expect(server.requests).toEqual([]);
  });
});

describe('loops', () => {
  test('two servers that know each other ask each other once', async () => {
    await register('back', here.url, { key: readKey }, there);
    const before = await countOf(there);
    const { members } = await ask({ tenants: [], servers: ['turku'] });
    expect(members.map(({ outcome }) => outcome)).toEqual(['answered']);
    // The other server was asked a plain question, and asked nobody itself.
    expect(await countOf(there)).toBe(before);
  });

  test('a question that was federated is not asked on, even where a gateway leads it here', async () => {
    const { status, body } = await send({}, readKey, { 'x-cairn-federated': '1' });
    expect([status, body.code]).toEqual([409, 'conflict']);
  });

  const countOf = async ({ engine }: TestApi) =>
    (await engine.metrics.federationMembers.get()).values.reduce((sum, { value }) => sum + value, 0);
});

describe('keys of servers', () => {
  test('they are refused in a folder in clear, where servers without a key are not', async () => {
    await using api = await startApi({ folder: tempFolder(), settings: PATIENT, threads: false });
    const refused = await register('turku', there.url, { key: remoteKey }, api);
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
    expect(refused.body.detail).toContain('OM_ENCRYPTION_KEY_FILE');
    expect((await register('turku', there.url, {}, api)).status).toBe(201);
  });

  test('a folder is not stored in clear while it holds some', async () => {
    const own = tempFolder();
    const settings = { ...PATIENT, OM_ENCRYPTION_KEY: masterKey };
    const api = await startApi({ folder: own, settings, threads: false });
    await register('turku', there.url, { key: remoteKey }, api);
    await api.stop();
    const config = readConfig({ ...settings, OM_DB_PATH: `${own}/cairn.sqlite` });
    await expect(decryptFolder(config, () => {})).rejects.toMatchObject({ code: 'conflict' });
    for (const { name, bytes } of filesOf(own)) expect(bytes.includes(remoteKey), name).toBe(false);
    const again = await startApi({ folder: own, settings, threads: false });
    await again.request('DELETE', '/federation/servers/turku');
    await again.stop();
    await decryptFolder(config, () => {});
    expect(filesOf(own).some(({ bytes }) => bytes.subarray(0, 15).toString() === 'SQLite format 3')).toBe(true);
  });
});

test('a caller without a key has no servers asked', async () => {
  const settings = { ...PATIENT, OM_PUBLIC_READS: 'true' };
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  await api.add({ content: 'The ferry Aurora has berth 4 on Mondays.' });
  await register('turku', there.url, {}, api);
  const body = { query: QUESTION };
  expect(berths(answerOf(await api.request('POST', '/federation/query', { body, key: null })))).toEqual(['4']);
  const asked = await api.request('POST', '/federation/query', { body: { ...body, servers: ['turku'] }, key: null });
  expect([asked.status, asked.body.code]).toEqual([403, 'forbidden']);
});

test('a question that a tenant refuses is refused', async () => {
  expect((await send({ tenants: [] })).status).toBe(400);
  expect((await send({ filters: { metadata: { team: { $near: 1 } } } })).status).toBe(400);
  expect((await send({ weights: { recency: 1 } })).status).toBe(400);
});
