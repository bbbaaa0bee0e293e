import { afterAll, beforeAll, expect, test } from 'vitest';
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
async function call(path: string, replaced: Partial<Tenant>): Promise<{ status: number; body: object }> {
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
    body: path === '/memory/add' ? { content } : path.endsWith('url') ? { url: 'https://example.com/' } : {},
    parts: { api: { engine, stop: new AbortController().signal } as TenantCall['api'] },
    onBegin: (response) => (statusOf = () => response.statusCode),
  });
  return { status: statusOf(), body: JSON.parse(text) as object };
}

const failing = (code: 'unavailable' | 'internal') => () => Promise.reject(new EngineError(code, 'too many queries'));
const PATHS = ['/memory/add', '/memory/reflect', '/consolidations', '/memory/ingest/url'];

test.each(PATHS)(
  '%s says that it is stored where the wait, or what reads the end of its work, is refused',
  async (path) => {
    const refused = failing('unavailable');
    const reads = { getMemory: refused, getJob: refused, getDocument: refused, listReflections: refused };
    for (const replaced of [{ waitFor: refused }, { waitFor: () => Promise.resolve(true), ...reads }]) {
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
