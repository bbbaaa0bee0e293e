import { test } from 'vitest';
import { startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { createAddClient } from '../support/add-checker.ts';
test('dbg', async () => {
  const folder = tempFolder();
  const t0 = performance.now();
  const service = await startServiceProcess({ folder });
  console.log('ready', performance.now() - t0);
  const client = createAddClient({ history: folder + '/h', seed: 1, concurrency: 16, service: async () => service });
  await client.add(100);
  console.log('added', performance.now() - t0, client.statuses);
  for (let i = 0; i < 10; i++) { const r = await service.request('GET', '/jobs?l=1'); console.log(performance.now() - t0, r.status, r.text.slice(0,600)); await new Promise(r => setTimeout(r, 300)); }
  console.log(service.log);
}, 30000);
