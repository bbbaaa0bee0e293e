import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROUTES } from '../../src/api/routes.ts';
import { startApi, type Reply, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { chance, expectWell, inputs } from './attack.ts';

const TENANTS = ['acme', 'umbrella'] as const;
type TenantId = (typeof TENANTS)[number];
/** A word that only the texts of one tenant hold. */
const CANARY: Readonly<Record<TenantId, string>> = { acme: 'qwortzel', umbrella: 'zyphrante' };
const ABSENT = '01a1fe30-e25b-7576-a0c2-3c4e3646bd72';

let api: TestApi;
const keyOf = {} as Record<TenantId, string>;
/** Ids of things of each tenant, and write receipts. */
const things: Record<TenantId, { ids: string[]; jobs: string[]; documents: string[]; tokens: string[] }> = {
  acme: { ids: [], jobs: [], documents: [], tokens: [] },
  umbrella: { ids: [], jobs: [], documents: [], tokens: [] },
};

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_EMBEDDINGS: 'none' } });
  for (const tenantId of TENANTS) {
    api.engine.control.createTenant(tenantId);
    keyOf[tenantId] = api.engine.control.createKey({ tenantId, role: 'admin' }).secret;
    for (let no = 0; no < 5; no += 1) await add(tenantId, no);
    const body = {
      text: `# ${CANARY[tenantId]}\n\nThe ${CANARY[tenantId]} of the archive.`,
      content_type: 'md',
      external_id: 'archive',
    };
    const document = await api.request('POST', '/memory/ingest?wait=20000', { key: keyOf[tenantId], body });
    things[tenantId].documents.push(document.body['document_id'] as string);
  }
});
afterAll(() => api.stop());

async function add(tenantId: TenantId, no: number): Promise<void> {
  const content = `The ${CANARY[tenantId]} number ${no} is in the cellar.`;
  const { id, job_id, token } = await api.add({ content, user_id: 'same', tags: ['same'] }, keyOf[tenantId]);
  things[tenantId].ids.push(id);
  things[tenantId].jobs.push(job_id);
  things[tenantId].tokens.push(token);
}

const withoutIds = ({ status, text }: Reply) => ({
  status,
  text: text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}(?:\.[\w-]{22})?/g, 'ID')
    .replaceAll(/"(?:instance|request_id)":"[^"]*"/g, ''),
});

test('a thing of another tenant is answered as one that does not exist, on every route with an id', async () => {
  const foreign = things.umbrella;
  for (const route of ROUTES.filter(({ path, access }) => path.includes(':id') && access !== 'anyone')) {
    for (const id of [foreign.ids[0]!, foreign.jobs[0]!, foreign.documents[0]!]) {
      const send = (which: string) =>
        api.request(route.method.toUpperCase(), route.path.replace(':id', which), { key: keyOf.acme });
      const [theirs, absent] = [await send(id), await send(ABSENT)];
      expect(withoutIds(theirs), `${route.method} ${route.path}`).toEqual(withoutIds(absent));
    }
  }
});

test('whatever a tenant does with ids, tokens and words of another, it learns and changes nothing', async () => {
  const { of, below } = chance('two tenants');
  for (let step = 0; step < inputs(5_000); step += 1) {
    const own = of(TENANTS);
    const other: TenantId = own === 'acme' ? 'umbrella' : 'acme';
    const { ids, jobs, documents, tokens } = things[of<TenantId>([own, other])];
    const [id, second, job, document] = [of(ids), of(ids), of(jobs), of(documents)];
    const [method, path, body] = of<readonly [string, string, object?]>([
      ['GET', `/memory/${id}`],
      ['GET', `/memory/${id}/history`],
      ['GET', `/memory/${id}/timeline`],
      ['GET', `/memory/${id}/links`],
      ['PATCH', `/memory/${id}`, { title: `by ${own}`, content: `Changed: ${CANARY[own]} ${step}` }],
      ['GET', `/memory/all?user_id=same&l=${1 + below(20)}`],
      [
        'POST',
        '/memory/query',
        { query: `${CANARY[other]} cellar`, user_id: 'same', k: 20, min_score: 0, token: of(tokens) },
      ],
      ['POST', '/explain', { query: 'cellar', memory_id: id }],
      ['POST', '/memory/reinforce', { id }],
      ['POST', '/memory/link', { src: id, dst: second, type: 'supports' }],
      ['POST', '/memory/supersede', { old_id: id, new_id: second }],
      ['GET', `/jobs/${job}`],
      ['POST', `/jobs/${job}/retry`],
      ['GET', `/documents/${document}`],
      ['GET', `/documents/${document}/content`],
      ['GET', `/documents?user_id=same`],
      ['POST', '/memory/add', { content: `The ${CANARY[own]} again, ${step}.`, user_id: 'same' }],
      ['GET', '/audit?limit=50'],
      ['GET', '/stats'],
    ]);
    const reply = await api.request(method, path, { key: keyOf[own], ...(body === undefined ? {} : { body }) });
    const what = `step ${step}: ${own} sent ${method} ${path}: ${reply.status}`;
    expect(reply.status, what).toBeLessThan(500);
    // A reply may repeat the question, and nothing else of the other tenant.
    const shown = reply.text.replace(JSON.stringify(`${CANARY[other]} cellar`), '');
    expect(shown.includes(CANARY[other]), `${what}: ${reply.text}`).toBe(false);
  }
  for (const tenantId of TENANTS)
    for (const id of things[tenantId].ids) {
      const { status, text } = await api.request('GET', `/memory/${id}`, { key: keyOf[tenantId] });
      expect([status, text.includes(CANARY[tenantId])]).toEqual([200, true]);
    }
  await expectWell(api);
});
