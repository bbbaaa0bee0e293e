import net from 'node:net';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectMcp } from '../../support/mcp-client.ts';
import { fieldName, jsonValue } from '../../support/json-values.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../../support/start-api.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** Messages that the fuzzer changes. */
const TIMES = 1_000;
const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
const ACCEPT = { accept: 'application/json, text/event-stream' };

let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none', OM_MCP_FORGET: 'true' } });
});
afterAll(() => api.stop());

const post = (body: unknown, headers: Readonly<Record<string, string>> = {}, path = '/mcp') =>
  api.request('POST', path, { body, headers: { ...ACCEPT, ...headers } });

const call = (name: string, args: object) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name, arguments: args },
});

/** The message of a reply, whether it came as JSON or as an event. */
const messageOf = (text: string) => JSON.parse(text.replace(/^(?:event: message\n)?data: /, '')) as Rpc;
interface Rpc {
  readonly jsonrpc: string;
  readonly id?: unknown;
  readonly result?: { readonly isError?: boolean };
  readonly error?: { readonly code: number; readonly message: string };
}

const SEEDS = [
  { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'recall', arguments: { query: 'x', limit: 3 } } },
  {
    jsonrpc: '2.0',
    id: 2,
    method: 'tools/call',
    params: { name: 'remember', arguments: { content: 'x', tags: ['t'] } },
  },
  { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'forget', arguments: { id: 'x' } } },
  {
    jsonrpc: '2.0',
    id: 4,
    method: 'tools/call',
    params: { name: 'list_recent', arguments: { cursor: '1.1' } },
    extra: 1,
  },
  { jsonrpc: '2.0', id: 'a', method: 'tools/list', params: { _meta: MODERN } },
  { jsonrpc: '2.0', id: 5, method: 'resources/read', params: { uri: 'cairn://memory/x', _meta: MODERN } },
  { jsonrpc: '2.0', id: 6, method: 'prompts/get', params: { name: 'recall', arguments: { topic: 'x' } } },
  {
    jsonrpc: '2.0',
    id: 7,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  },
  { jsonrpc: '2.0', id: 8, method: 'server/discover', params: { _meta: MODERN } },
  {
    jsonrpc: '2.0',
    id: 9,
    method: 'subscriptions/listen',
    params: { _meta: MODERN, notifications: { toolsListChanged: true } },
  },
  { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
  [
    { jsonrpc: '2.0', id: 10, method: 'ping' },
    { jsonrpc: '2.0', id: 11, method: 'tools/list' },
  ],
];

/** Any place inside a value, as the way to it. */
function placesIn(value: unknown, way: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [way];
  return [way, ...Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...way, key]))];
}

function changed(value: unknown, [key, ...rest]: readonly string[], change: (inner: unknown) => unknown): unknown {
  if (key === undefined) return change(value);
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[key] = changed(copy[key], rest, change);
  return copy;
}

const hostileValue = fc.oneof(
  jsonValue({ maxDepth: 2 }),
  fc.constantFrom('__proto__', 'constructor', 'toString', '', '\ud800', '\0', 'x'.repeat(20_000), -1, 1e308, [], {}),
  fc.constantFrom('tools/call', 'recall', 'remember', 'cairn://document/x', 'cairn://entity/%', 'cairn://profile'),
);
const mutated = fc.constantFrom(...SEEDS).chain((seed) =>
  fc
    .record({ way: fc.constantFrom(...placesIn(seed)), value: hostileValue, added: fieldName })
    .chain(({ way, value, added }) =>
      fc.constantFrom(
        () => changed(seed, way, () => value),
        () =>
          changed(seed, way, (inner) =>
            typeof inner === 'object' && inner !== null ? { ...inner, [added]: value } : [inner, value],
          ),
        () => changed(seed, way, () => undefined),
      ),
    )
    .map((make) => JSON.stringify(make()) ?? 'null'),
);
const cutText = fc
  .tuple(mutated, fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([text, share]) => text.slice(0, Math.floor(text.length * share)));

/** Checks that a reply is one of the protocol and tells nothing about the code. */
function requireProtocol({ status, text }: { readonly status: number; readonly text: string }): void {
  expect([200, 202, 400, 404, 413]).toContain(status);
  if (status === 202) expect(text).toBe('');
  const messages = status === 202 ? [] : [messageOf(text.split('\n\n')[0]!)].flat();
  for (const { jsonrpc, result, error } of messages) {
    expect(jsonrpc).toBe('2.0');
    if (error === undefined) expect(result).toBeTypeOf('object');
    else expect(error.code).toBeLessThan(0);
    expect(error?.message ?? '').not.toMatch(/^\s*at |\/src\/|node_modules|\(reading/m);
  }
}

const hostileText = fc.oneof({ weight: 4, arbitrary: mutated }, { weight: 1, arbitrary: cutText });

test(`${TIMES} mutated messages end in answers of the protocol, and the server lives on`, async () => {
  const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' };
  await fc.assert(
    fc.asyncProperty(hostileText, fc.boolean(), async (text, isModern) => {
      requireProtocol(await post(text, isModern ? modern : {}));
    }),
    { numRuns: TIMES },
  );
  expect((await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status).toBe(200);
});

describe('bodies and methods', () => {
  test.each<[string, unknown, Record<string, string>, number, number]>([
    ['malformed JSON', '{"jsonrpc":', {}, 400, -32700],
    ['no UTF-8', Buffer.from('7b22ff227d', 'hex'), {}, 400, -32700],
    ['a body over 1 MiB', JSON.stringify({ x: 'x'.repeat(1_100_000) }), {}, 413, -32600],
    ['another type', '{}', { 'content-type': 'text/plain' }, 415, -32600],
  ])('%s is an error of JSON-RPC', async (_name, body, headers, status, code) => {
    const reply = await post(body, headers);
    expect(reply.status).toBe(status);
    expect(reply.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code } });
  });

  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, no) => [`n${no}`, {}]));
  const start = (params: object) => ({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const clientInfo = { name: 'x', version: '1' };

  test.each<[string, unknown, number, number, string]>([
    ['a batch of 101 messages', Array(101).fill({ jsonrpc: '2.0', method: 'n' }), 413, -32600, 'over 100 messages'],
    ['many icons', start({ clientInfo: { ...clientInfo, icons: Array(2_000).fill(0) } }), 413, -32600, 'over 2000 val'],
    ['many capabilities', start({ capabilities: { experimental: many(2_000) } }), 413, -32600, 'over 2000 values'],
    ['many names of arguments', call('remember', many(3_001)), 400, -32700, 'over 3000 names'],
    ['many values of an argument', call('remember', { tags: Array(10_001).fill(0) }), 400, -32700, 'over 10000 val'],
    ['a long id', { ...call('recall', {}), id: 'x'.repeat(257) }, 413, -32600, 'the id of a message'],
    [
      'a long token',
      start({ _meta: { progressToken: 'x'.repeat(257) } }),
      413,
      -32600,
      'the progressToken of a message',
    ],
    ['arguments of no tool', { ...call('', many(2_000)), method: 'prompts/get' }, 413, -32600, 'over 2000 values'],
  ])('%s are too much', async (_name, body, status, code, words) => {
    const reply = await post(body);
    expect(reply.status).toBe(status);
    const error = { code, message: expect.stringContaining(words) as unknown };
    expect(reply.body).toMatchObject({ jsonrpc: '2.0', id: null, error });
  });

  test('a batch of 100 calls, the largest metadata and a long text are none too much', async () => {
    const batch = Array.from({ length: 100 }, (_, id) => ({ ...call('recall', { query: 'x', limit: 3 }), id }));
    expect((await post(batch)).status).toBe(200);
    const metadata = { numbers: Array(8_000).fill(1) };
    for (const fields of [{ metadata }, { content: 'word '.repeat(50_000) }]) {
      const reply = await post(call('remember', { content: 'A text.', ...fields }));
      expect(reply.status).toBe(200);
      expect(messageOf(reply.text).result?.isError ?? false).toBe(false);
    }
  });

  test('each message of a batch is answered, whatever it asks for', async () => {
    const methods = ['tools/list', 'ping', 'prompts/list', 'no/such', 'resources/list'];
    const batch = Array.from({ length: 50 }, (_, id) => ({ jsonrpc: '2.0', id, method: methods[id % 5] }));
    const reply = await post([
      ...batch,
      { jsonrpc: '2.0', method: 'notifications/x' },
      { ...call('none', {}), id: 50 },
    ]);
    expect(reply.status).toBe(200);
    const answers = reply.text
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map(messageOf);
    // The protocol sets no order of the answers.
    expect(new Set(answers.map(({ id }) => id))).toEqual(new Set(Array.from({ length: 51 }, (_, id) => id)));
    expect(answers).toHaveLength(51);
    expect(answers.filter(({ error }) => error === undefined || error.code === -32601)).toHaveLength(50);
    expect((await post([{ jsonrpc: '2.0', method: 'notifications/x' }])).status).toBe(202);
  });

  test('a batch that cancels its own requests is answered in full', async () => {
    const ids = Array.from({ length: 6 }, (_, id) => id);
    const cancels = ids.map((requestId) => ({
      ...{ jsonrpc: '2.0', method: 'notifications/cancelled' },
      params: { requestId },
    }));
    const pings = ids.map((id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
    // With an id, it is a request of an unknown method.
    const asked = { ...cancels[0]!, id: 6 };
    const reply = await post([...pings.slice(0, 3), ...cancels, ...pings.slice(3), asked]);
    const answers = reply.text.split('\n').filter((line) => line.startsWith('data: {'));
    expect(answers.map((line) => messageOf(line).id)).toEqual([...ids, asked.id]);
  });

  test.each<[string, object, Record<string, string>, string]>([
    ['initialize', {}, {}, 'initialize: params.protocolVersion: expected string, received undefined; params.cap'],
    [
      'initialize',
      { protocolVersion: 5, capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      {},
      'initialize: ',
    ],
    ['tools/list', { cursor: 5 }, {}, 'tools/list: params.cursor: expected string'],
    ['tools/call', { name: 'recall', arguments: 5 }, {}, 'tools/call: params.arguments: expected record'],
    [
      'resources/read',
      { _meta: MODERN },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read' },
      'resources/read: params.uri: expected string',
    ],
  ])('malformed parameters of %s are invalid parameters, by name', async (method, params, headers, words) => {
    const reply = await post({ jsonrpc: '2.0', id: 'a', method, params }, headers);
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({
      jsonrpc: '2.0',
      id: 'a',
      error: { code: -32602, message: expect.stringContaining(words) as unknown },
    });
    expect(reply.text).not.toContain('invalid_type');
  });

  test.each(['a b', 'user:word@host', 'host:99999', '[::'])(
    'a Host header that is no host is a malformed request: %s',
    async (host) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
      const socket = net.connect(api.port, '127.0.0.1');
      socket.write(
        `POST /mcp HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${ADMIN_KEY}\r\n` +
          `accept: ${ACCEPT.accept}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n` +
          `connection: close\r\n\r\n${body}`,
      );
      const reply = await text(socket);
      expect(reply).toMatch(/^HTTP\/1.1 400 /);
      expect(reply).toContain('"code":-32600,"message":"the Host header and the path are no URL"');
    },
  );

  test('GET and DELETE of earlier revisions are a 405', async () => {
    for (const method of ['GET', 'DELETE', 'PUT'])
      for (const path of ['/mcp', '/mcp/users/ana']) {
        const reply = await api.request(method, path, { headers: ACCEPT });
        expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST']);
      }
    expect((await api.request('GET', '/mcp/users')).status).toBe(404);
  });

  test('headers that contradict the body are refused, and so are unknown revisions and methods', async () => {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: MODERN } };
    const version = { 'mcp-protocol-version': '2026-07-28' };
    expect((await post(body, { ...version, 'mcp-method': 'prompts/list' })).body).toMatchObject({
      error: { code: -32020 },
    });
    expect((await post(body, { ...version, 'mcp-method': 'tools/list' })).status).toBe(200);
    const unknown = { ...body, method: 'no/such' };
    const answer = await post(unknown, { ...version, 'mcp-method': 'no/such' });
    expect([answer.status, answer.body['error']]).toMatchObject([404, { code: -32601 }]);
    const future = {
      ...body,
      params: { _meta: { ...MODERN, 'io.modelcontextprotocol/protocolVersion': '2030-01-01' } },
    };
    expect(
      (await post(future, { 'mcp-protocol-version': '2030-01-01', 'mcp-method': 'tools/list' })).body,
    ).toMatchObject({
      error: { code: -32022 },
    });
  });

  test('a stream of announcements is acknowledged and ends at once, as nothing is announced', async () => {
    const listen = {
      jsonrpc: '2.0',
      id: 1,
      method: 'subscriptions/listen',
      params: { _meta: MODERN, notifications: { toolsListChanged: true } },
    };
    const reply = await post(listen, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' });
    const messages = reply.text.trim().split('\n\n').map(messageOf);
    expect(messages).toMatchObject([
      { method: 'notifications/subscriptions/acknowledged', params: { notifications: {} } },
      { id: 1, result: { resultType: 'complete' } },
    ]);
  });

  test('the message of a bug stays in the log, under the id that the answer names', async () => {
    const lines: { fields: Record<string, unknown>; event: string }[] = [];
    const log = (fields: object, event: string) =>
      void lines.push({ fields: fields as Record<string, unknown>, event });
    const logger = { debug() {}, info() {}, warn: log, error: log } as never;
    await using broken = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, logger });
    const tenant = await broken.engine.tenant('default');
    broken.engine.tenant = async () => ({
      ...tenant,
      as: () => ({ ...tenant, query: () => Promise.reject(new Error('/secret/path exploded')) }),
    });
    const client = await connectMcp(`${broken.url}/mcp`, { key: ADMIN_KEY });
    const result = await client.callTool({ name: 'recall', arguments: { query: 'x' } });
    const { text } = result.content[0] as { text: string };
    expect(result.isError).toBe(true);
    expect(text).toMatch(/^something went wrong here; the log has more under this request id \([\w-]+\)$/);
    expect(lines.find(({ event }) => event === 'request_failed')!.fields).toMatchObject({
      message: '/secret/path exploded',
      requestId: /\(([\w-]+)\)$/.exec(text)![1],
    });
    await client.close();
  });
});

describe('who may call', () => {
  test('pages of other origins are refused while no key is set, and other machines by name', async () => {
    await using open = await startApi({
      folder: tempFolder(),
      settings: { OM_API_KEY: '', OM_EMBEDDINGS: 'none' },
      threads: false,
    });
    const ask = (headers: Record<string, string>) =>
      open.request('POST', '/mcp', { key: null, body: SEEDS[0], headers: { ...ACCEPT, ...headers } });
    expect((await ask({})).status).toBe(200);
    expect((await ask({ origin: 'https://evil.example' })).status).toBe(403);
    expect((await ask({ origin: 'null' })).status).toBe(403);
  });

  test('without tokens there is no metadata, and a plain challenge', async () => {
    const refused = await api.request('POST', '/mcp', { key: null, body: SEEDS[0] });
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="cairn"']);
    expect((await api.request('GET', '/.well-known/oauth-protected-resource/mcp', { key: null })).status).toBe(404);
  });

  test('with an identity provider the challenge leads to the metadata of the endpoint (RFC 9728)', async () => {
    const settings = {
      OM_EMBEDDINGS: 'none',
      OM_OIDC_ISSUER: 'http://127.0.0.1:9/realm',
      OM_OIDC_AUDIENCE: 'cairn',
      OM_OIDC_JWKS_URL: 'http://127.0.0.1:9/keys',
    };
    await using own = await startApi({ folder: tempFolder(), settings, threads: false });
    for (const path of ['/mcp', '/mcp/users/ana']) {
      const refused = await own.request('POST', path, { key: null, body: SEEDS[0] });
      expect(refused.status).toBe(401);
      const challenge = refused.headers.get('www-authenticate')!;
      const url = /^Bearer realm="cairn", resource_metadata="([^"]+)"$/.exec(challenge)![1]!;
      expect(url).toBe(`${own.url}/.well-known/oauth-protected-resource${path}`);
      const metadata = await own.request('GET', new URL(url).pathname, { key: null });
      expect(metadata.body).toEqual({
        resource: `${own.url}${path}`,
        authorization_servers: ['http://127.0.0.1:9/realm'],
        bearer_methods_supported: ['header'],
        resource_name: 'Cairn',
      });
    }
    expect((await own.request('GET', '/sectors', { key: null })).headers.get('www-authenticate')).toBe(
      'Bearer realm="cairn"',
    );
    await using named = await startApi({
      folder: tempFolder(),
      settings: { ...settings, OM_PUBLIC_URL: 'https://memory.example.com/' },
    });
    const metadata = await named.request('GET', '/.well-known/oauth-protected-resource', { key: null });
    expect(metadata.body['resource']).toBe('https://memory.example.com/mcp');
  });

  test('readers without a key read what is public, and change nothing', async () => {
    await using open = await startApi({
      folder: tempFolder(),
      settings: { OM_EMBEDDINGS: 'none', OM_PUBLIC_READS: 'true' },
    });
    const { id } = await open.add({ content: 'A public fact about zebras.' });
    const client = await connectMcp(`${open.url}/mcp`);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).not.toContain('remember');
    const result = await client.callTool({ name: 'recall', arguments: { query: 'zebras' } });
    expect(JSON.stringify(result)).toContain(id);
    await client.close();
  });
});
