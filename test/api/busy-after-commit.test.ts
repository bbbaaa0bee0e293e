import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ingest } from '../../src/api/mcp/tools/ingest.ts';
import { remember, updateMemory } from '../../src/api/mcp/tools/remember.ts';
import type { Tool } from '../../src/api/mcp/tool.ts';
import type { TenantCall } from '../../src/api/route.ts';
import { EngineError, type Tenant } from '../../src/engine/index.ts';
import { callRoute } from '../support/call-route.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';

let fixture: TestEngine;
let calls = 0;
beforeAll(async () => {
  fixture = await openTestEngine();
  await fixture.add(newMemory({ content: 'Ana swims.', userId: 'ana' }));
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Calls a route that waits for its work, with a tenant some methods of which are replaced. */
async function call(
  path: string,
  replaced: Partial<Tenant>,
  fields: object = {},
): Promise<{ status: number; body: object }> {
  let statusOf = () => 0;
  const content = `Call ${(calls += 1)}.`;
  const { tenant, engine } = fixture;
  const seen: Tenant = {
    ...tenant,
    // Without a language model; it is answered as a consolidation is.
    reflect: () => tenant.consolidate({ userId: 'ana', again: false }),
    addDocument: async () => tenant.addDocument(newDocument(await upload(tenant, content))),
    ...replaced,
  };
  const text = await callRoute(seen, {
    ...{ method: 'POST', path, query: { wait: '60000' } },
    body: path === '/memory/add' ? { content, ...fields } : path.endsWith('url') ? { url: 'https://example.com/' } : {},
    parts: { api: { engine, stop: new AbortController().signal } as TenantCall['api'] },
    onBegin: (response) => (statusOf = () => response.statusCode),
  });
  return { status: statusOf(), body: JSON.parse(text) as object };
}

/** Calls a tool, with a tenant some methods of which are replaced. */
async function callTool(
  tool: Tool,
  input: object,
  { replaced, role = 'admin' }: { readonly replaced: Partial<Tenant>; readonly role?: string },
): Promise<string> {
  const { tenant, engine } = fixture;
  const called = {
    ...{ tenant: { ...tenant, ...replaced }, api: { engine } },
    principal: { tenantId: 'default', keyId: 'admin', role },
  } as unknown as TenantCall;
  const { signal } = new AbortController();
  return tool.run(called, input, { signal, tell: async (describe) => void (await describe()) });
}

type Code = 'unavailable' | 'not_found' | 'internal';
const failing = (code: Code) => () => Promise.reject(new EngineError(code, 'too many queries'));
/** Ways in which the wait for the work of a write, or what is then read of it, throws an error. */
function refusals(code: Code): readonly Partial<Tenant>[] {
  const refused = failing(code);
  const reads = { getMemory: refused, getJob: refused, getDocument: refused, listReflections: refused };
  return [{ waitFor: refused }, { waitFor: async () => true, ...reads }, { waitFor: async () => false, ...reads }];
}
const PATHS = ['/memory/add', '/memory/reflect', '/consolidations', '/memory/ingest/url'];

test.each(PATHS)(
  '%s says that it is stored where the wait, or what reads the end of its work, is refused',
  async (path) => {
    for (const replaced of [...refusals('unavailable'), ...refusals('not_found')]) {
      const { status, body } = await call(path, replaced);
      expect([status, body]).toMatchObject([202, { job_id: expect.any(String), state: 'queued' }]);
    }
  },
);

test.each(PATHS)('%s does not hide another error of these', async (path) => {
  const failed = failing('internal');
  const reads = { getMemory: failed, getJob: failed, getDocument: failed, listReflections: failed };
  await expect(call(path, { waitFor: () => Promise.resolve(true), ...reads })).rejects.toThrow('too many queries');
});

test('/memory/add says that it stored a memory that has expired by the end of its work', async () => {
  const { status, body } = await call('/memory/add', { waitFor: async () => true }, { expires_at: '2020-01-01' });
  expect([status, body]).toMatchObject([202, { id: expect.any(String), token: expect.any(String) }]);
});

describe('a batch is answered with what is stored where its receipt cannot be kept', () => {
  /** Sends a batch of which the receipt is refused from its part `failing` on, counted from 1. */
  async function send(batch: object, failing: number): Promise<Record<string, unknown>> {
    const { tenant, engine } = fixture;
    let parts = 0;
    const noteBatch: Tenant['noteBatch'] = (part) =>
      (parts += 1) < failing ? tenant.noteBatch(part) : Promise.reject(new EngineError('storage_full', 'no room'));
    const text = await callRoute(
      { ...tenant, noteBatch },
      {
        ...{ method: 'POST', path: '/memory/add/batch', query: { receipt: 'true' }, ...batch },
        parts: {
          api: { engine } as TenantCall['api'],
          principal: { tenantId: 'default', tenantIds: ['default'], keyId: 'admin', role: 'admin', expiresAt: null },
        },
      },
    );
    return JSON.parse(text) as Record<string, unknown>;
  }
  const items = Array.from({ length: 100 }, (_, no) => ({ content: `Item ${no}.` }));
  const stored = (count: number) => Array.from({ length: count }, () => ({ id: expect.any(String) as string }));
  const error = { code: 'storage_full', message: 'no room' };

  test('as JSON', async () => {
    const reply = await send({ body: { items: [...items.slice(1), { content: '' }] } }, 1);
    expect(reply).toMatchObject({ accepted: 99, rejected: 1, token: expect.any(String), receipt_error: error });
    expect(reply['results']).toMatchObject([...stored(99), { error: { code: 'invalid' } }]);
    expect(reply).not.toHaveProperty('receipt_id');
  });

  test.each([
    ['first', 1, 64],
    ['second', 2, 100],
  ])('as lines, of the %s group', async (_, failing, count) => {
    const lines = items.map(({ content }) => ({ content: `Line of ${failing}: ${content}` }));
    const reply = await send({ lines }, failing);
    expect(reply).toMatchObject({ accepted: count, rejected: 0, token: expect.any(String), error });
    expect(reply['results']).toMatchObject(stored(count));
  });
});

test('a batch of documents stores nothing more once its key is revoked, and says what it stored', async () => {
  const { tenant, engine } = fixture;
  const { id: keyId } = engine.control.createKey({ tenantId: 'default', role: 'write' }).record;
  const addDocument: Tenant['addDocument'] = async (document) => {
    const reply = await tenant.addDocument(document);
    engine.control.revokeKey(keyId);
    return reply;
  };
  const text = await callRoute(
    { ...tenant, addDocument },
    {
      ...{ method: 'POST', path: '/documents/batch' },
      body: { items: ['One.', 'Two.', 'Three.'].map((content) => ({ text: `Revoked: ${content}` })) },
      parts: {
        api: { engine } as TenantCall['api'],
        principal: { tenantId: 'default', tenantIds: ['default'], keyId, role: 'write', expiresAt: null },
      },
    },
  );
  const refused = { error: { code: 'unauthenticated' } };
  expect(JSON.parse(text)).toMatchObject({
    ...{ accepted: 1, rejected: 2, token: expect.any(String) as string },
    results: [{ document_id: expect.any(String) as string }, refused, refused],
  });
});

describe('the tool', () => {
  const tools = [
    [remember, /^Stored as memory \S+; recall finds its words now.* job \S+ is queued/],
    [updateMemory, /^Memory \S+ is superseded by memory \S+; recall finds its words now.* job \S+ is queued/],
    [ingest, /^Document \S+ is stored and will be read: job \S+ is queued/],
  ] as const;

  /** What a tool is called with; a memory that it supersedes is stored first. */
  async function inputOf({ name }: Tool): Promise<object> {
    const content = `Told ${(calls += 1)}.`;
    if (name === 'ingest') return { text: content };
    if (name === 'remember') return { content };
    const { id } = await fixture.add(newMemory({ content: `${content} Before.` }));
    return { id, content, mode: 'supersede' };
  }

  test.each(tools)('$name says that it is stored where what tells of its work is refused', async (tool, stored) => {
    for (const replaced of [...refusals('unavailable'), ...refusals('not_found')]) {
      const input = await inputOf(tool);
      // The memory that is superseded is read before.
      const { getMemory, ...others } = replaced;
      let reads = 0;
      const readFirst: Tenant['getMemory'] = (id) =>
        tool === updateMemory && (reads += 1) === 1 ? fixture.tenant.getMemory(id) : getMemory!(id);
      const seen = getMemory === undefined ? others : { ...others, getMemory: readFirst };
      expect(await callTool(tool, input, { replaced: seen })).toMatch(stored);
    }
  });

  test.each([remember, ingest])('$name does not hide another error', async (tool) => {
    for (const replaced of refusals('internal'))
      await expect(callTool(tool, await inputOf(tool), { replaced })).rejects.toThrow('too many queries');
  });

  test('remember tells a key that only adds that the work on its memory failed', async () => {
    const failed: Tenant['getJob'] = async (id) => ({ ...(await fixture.tenant.getJob(id)), state: 'dead' });
    const replaced = { waitFor: async () => true, getJob: failed };
    expect(await callTool(remember, await inputOf(remember), { replaced, role: 'add' })).toContain('words only');
    const done: Tenant['getJob'] = async (id) => ({ ...(await fixture.tenant.getJob(id)), state: 'done' });
    const ended = { ...replaced, getJob: done };
    expect(await callTool(remember, await inputOf(remember), { replaced: ended, role: 'add' })).toContain(
      'it is ready',
    );
  });
});
