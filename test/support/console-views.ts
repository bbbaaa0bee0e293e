import { startApi, type TestApi } from './start-api.ts';
import { tempFolder } from './temp-folder.ts';

/**
 * Starts a service in which each view of the console has something to show.
 * @returns it, with the addresses of the views after their `#/`
 */
export async function startFilledConsole(): Promise<{ readonly api: TestApi; readonly views: readonly string[] }> {
  const api = await startApi({
    folder: tempFolder(),
    workers: true,
    settings: { OM_FEDERATION_ALLOW: '127.0.0.1' },
  });
  const post = async (route: string, body: object) => (await api.request('POST', route, { body })).body;
  const { id } = await post('/memory/add?wait=60000', {
    content: 'Ada Lovelace wrote notes about the engine in London. '.repeat(12),
    user_id: 'fay',
    session_id: 'history',
    tags: ['history'],
    metadata: { source: 'a book' },
  });
  await post('/memory/add?wait=60000', { content: 'Ada Lovelace lived in London.', user_id: 'fay' });
  for (const end of ['.', ', and in winter too.'])
    await post('/memory/add?wait=60000', {
      content: `Hal swims every Monday morning at the city pool before work${end}`,
      user_id: 'hal',
    });
  await post('/consolidations?wait=60000', { user_id: 'hal' });
  const ingested = await post('/memory/ingest?wait=60000', { text: '# Engines\n\nA handbook.', user_id: 'fay' });
  const { recall_id: recall } = await post('/memory/query', { query: 'engine in London', user_id: 'fay' });
  await post('/evals', { name: 'engines', items: [{ query: 'engine', user_id: 'fay', expected: ['london'] }] });
  await post('/evals/engines/run', {});
  const { id: standing } = await post('/standing', { query: 'Who wrote notes?', user_id: 'fay' });
  const { id: webhook } = await post('/webhooks', { url: 'https://example.com/hook' });
  // Nobody answers at this address.
  await post('/federation/servers', { name: 'away', url: 'http://127.0.0.1:9' });
  const { id: erased } = await post('/memory/add?wait=60000', { content: 'This is forgotten.', user_id: 'gil' });
  await api.request('DELETE', `/memory/${erased}`);
  const receipts = (await api.request('GET', '/erasures')).body.items;
  api.engine.control.createKey({ tenantId: 'default', role: 'read', label: 'Telephone' });
  const asked = 'ask?query=engine%20in%20London&user_id=fay';
  const tabs = ['', 'tenants', 'limits', 'settings', 'service', 'model', 'backups', 'servers', 'receipts', 'audit'];
  const views = [
    'ask',
    `${asked}&why=${id}&profile=activation`,
    ...['trace', 'compare', 'code'].map((tab) => `${asked}&tab=${tab}`),
    ...['', '&tab=code'].map((tab) => `${asked}&servers=away${tab}`),
    ...['about', 'history', 'links', 'time'].map((tab) => `memory/${id}?tab=${tab}`),
    ...['all', 'contradictions', 'duplicates', 'fading'].map((view) => `browse?view=${view}&least=0.1&below=0.9`),
    'browse?view=all&order=event_time',
    'browse?view=gathered',
    'browse?view=gathered&look=true',
    'documents',
    `document/${String(ingested['document_id'])}`,
    `document/${String(ingested['document_id'])}?tab=receipt`,
    'graph?user_id=fay',
    'standing',
    `standing/${String(standing)}`,
    'standing?tab=webhooks',
    `standing/${String(webhook)}?tab=webhooks`,
    'name/london?user_id=fay',
    'recalls',
    `recall/${String(recall)}`,
    `recall/${String(recall)}?tab=now`,
    'decay?lambda=0.05&below=0.2',
    'evals',
    'evals/engines',
    'evals?tab=learned',
    'work',
    ...tabs.map((tab) => `admin?tab=${tab}`),
    `admin?tab=receipts&receipt=${receipts[0]!.id}`,
  ];
  return { api, views };
}
