import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { countSeries } from '../support/count-series.ts';
import { freePort } from '../support/free-port.ts';
import { databaseFile, spawnService, startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const namesOf = (text: string) => new Set([...text.matchAll(/^\w+/gm)].map(([name]) => name));

// A thousand tenants take minutes: test/faults/series.test.ts.
test('tenants with traffic add no series, and none of them is named', async () => {
  const { few, many, byMetric, canaries } = await countSeries(24);
  console.log(`${few} series with a few tenants, ${many} with more; ${byMetric.slice(0, 8).join(' ')}`);
  expect(many).toBeLessThanOrEqual(500);
  // What appears late is a state or a step that the first tenants had not met yet.
  expect(many - few).toBeLessThan(32);
  expect(canaries).toEqual([]);
});

test('metrics on an address of their own need no key there, and still do at the API', async () => {
  const port = String(await freePort());
  const settings = { OM_API_KEY: 'a-key-of-the-operators', OM_METRICS_HOST: '127.0.0.1', OM_METRICS_PORT: port };
  const service = await startServiceProcess({ folder: tempFolder(), settings });
  onTestFinished(async () => void (await service.end('SIGTERM')));
  const address = `http://127.0.0.1:${port}`;
  const text = await vi.waitFor(async () => {
    const reply = await fetch(`${address}/metrics`);
    expect(reply.status).toBe(200);
    return reply.text();
  }, 120_000);
  const key = { headers: { 'x-api-key': settings.OM_API_KEY } };
  const withKey = (await service.request('GET', '/metrics', key)).text;
  expect((await service.request('GET', '/metrics')).status).toBe(401);
  // The API has been asked since, which a first answer begins to count.
  for (const name of namesOf(text)) expect(namesOf(withKey), name).toContain(name);
  expect(namesOf(text)).toContain('process_start_time_seconds');
  expect((await fetch(`${address}/memory/all`)).status).toBe(404);
  expect((await fetch(`${address}/metrics`, { method: 'POST' })).status).toBe(405);
});

test('a port for metrics without an address is refused at the start', async () => {
  const service = spawnService({ folder: tempFolder(), settings: { OM_METRICS_PORT: String(await freePort()) } });
  expect((await service.exited).code).not.toBe(0);
  expect(service.obituary).toContain('needs OM_METRICS_HOST');
});

test('the API alone serves its own, and a worker without an address asks for a key', async () => {
  const folder = tempFolder();
  const [port, workerPort] = [String(await freePort()), String(await freePort())];
  const control = openControlDatabase(readConfig({ OM_DB_PATH: path.resolve(databaseFile(folder)) }), systemClock);
  control.createKey({ tenantId: 'default', role: 'read' });
  control.close();
  const own = { OM_METRICS_HOST: '127.0.0.1', OM_METRICS_PORT: port };
  const api = await startServiceProcess({ folder, settings: own, command: 'api' });
  onTestFinished(async () => void (await api.end('SIGTERM')));
  const worker = await startServiceProcess({
    folder,
    settings: { OM_WORKER_METRICS_PORT: workerPort },
    command: 'worker',
  });
  onTestFinished(async () => void (await worker.end('SIGTERM')));
  const ofApi = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(ofApi).toMatch(/^cairn_tenants 1$/m);
  expect((await fetch(`http://127.0.0.1:${workerPort}/metrics`)).status).toBe(401);
});
