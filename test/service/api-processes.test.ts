import { createServer } from 'node:http';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { databaseFile, type ServiceProcess, spawnService, startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const THREE = { OM_API_PROCESSES: '3', OM_QUERY_THREADS: '1' };
/** As good as three where it only matters that there is another process: each takes a second of CPU to start. */
const TWO = { ...THREE, OM_API_PROCESSES: '2' };

const servers: { close(): void }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Asks on a connection of its own, so that the processes take turns. */
const alone = { headers: { connection: 'close' } };
const addTo = (service: ServiceProcess, content: string) =>
  service.request('POST', '/memory/add', { ...alone, body: { content } });
const listOf = async (service: ServiceProcess) =>
  (await service.request('GET', '/memory/all?l=1000', alone)).body.items.map(({ content }) => content);
const pidsOf = (service: ServiceProcess) =>
  service.log.filter(({ msg }) => msg === 'api_process_ready').map((line) => line['pid'] as number);
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Waits until a condition holds, which the events of another process bring about. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
}

test('several processes answer at one address, and each sees at once what another acknowledged', async () => {
  const service = await startServiceProcess({ folder: tempFolder(), settings: THREE });
  expect(pidsOf(service)).toHaveLength(3);
  const contents = Array.from({ length: 90 }, (_, index) => `the harbour has berth ${index}`);
  const replies = await Promise.all(contents.map((content) => addTo(service, content)));
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([202]));
  for (let times = 0; times < 4; times++) expect(new Set(await listOf(service))).toEqual(new Set(contents));
  // The same text again is recognised, whichever process is asked.
  for (let times = 0; times < 3; times++) expect((await addTo(service, contents[0]!)).body['deduplicated']).toBe(true);
  await service.idle();
  const asked = await Promise.all(
    contents.map((query) => service.request('POST', '/memory/query', { ...alone, body: { query, k: 1 } })),
  );
  expect(asked.map(({ body }) => body.matches[0]!.content)).toEqual(contents);
  // Whichever process is asked for them, the metrics count the requests of all.
  // One that does not answer in two seconds is counted as it was before.
  const metrics = async () => (await service.request('GET', '/metrics', alone)).text;
  await expect.poll(metrics).toContain('cairn_http_requests_total{route="/memory/add"} 93\n');
  await expect.poll(metrics).toContain('cairn_http_requests_total{route="/memory/query"} 90\n');
  expect(await metrics()).toMatch(/^cairn_build_info\{version="[^"]+"\} 1$/m);
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
});

test('a process that is killed is replaced, and nothing is lost that it acknowledged', async () => {
  const service = await startServiceProcess({ folder: tempFolder(), settings: THREE });
  const acknowledged: string[] = [];
  const adding = Promise.all(
    Array.from({ length: 300 }, async (_, index) => {
      const content = `crate number ${index}`;
      const reply = await addTo(service, content).catch(() => undefined);
      if (reply?.status === 202) acknowledged.push(content);
    }),
  );
  await until(() => acknowledged.length > 20);
  process.kill(pidsOf(service)[1]!, 'SIGKILL');
  await adding;
  expect(await service.logged('api_process_ended')).toMatchObject({ signal: 'SIGKILL' });
  await until(() => pidsOf(service).length === 4);
  const stored = new Set(await listOf(service));
  expect(acknowledged.filter((content) => !stored.has(content))).toEqual([]);
  for (const index of [1, 2, 3, 4, 5, 6]) expect((await addTo(service, `afterwards ${index}`)).status).toBe(202);
  const { text } = await service.request('GET', '/metrics', alone);
  expect(text).toContain('cairn_api_process_ends_total 1\n');
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
});

test('limits are counted once for all processes', async () => {
  const settings = { ...TWO, OM_MAX_BACKLOG: '10' };
  // Without a worker, everything that is accepted waits.
  const service = await startServiceProcess({ folder: tempFolder(), command: 'api', settings });
  const replies = await Promise.all(Array.from({ length: 40 }, (_, index) => addTo(service, `barrel ${index}`)));
  expect(Object.groupBy(replies, ({ status }) => status)).toMatchObject({ 202: { length: 10 }, 503: { length: 30 } });
  await service.end('SIGKILL');
});

test('so are connections, of which each process has its part', async () => {
  const settings = { ...TWO, OM_MAX_CONNECTIONS: '12' };
  const service = await startServiceProcess({ folder: tempFolder(), settings });
  const port = Number(new URL(await service.ready).port);
  let [open, closed] = [0, 0];
  const held = Array.from({ length: 30 }, () => net.connect({ port, host: '127.0.0.1' }));
  for (const socket of held) {
    socket.on('connect', () => void (open += 1)).on('error', () => {});
    socket.resume().on('close', () => void (closed += 1));
  }
  // One address has half of them.
  await until(() => open === 30 && closed === 24);
  for (const socket of held) socket.destroy();
  await until(() => closed === 30);
  // The other end may not know yet that they are closed.
  while ((await service.request('GET', '/health', alone).catch(() => undefined))?.status !== 200);
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
});

test('a key that is revoked is refused by every process within a second', async () => {
  const folder = tempFolder();
  const control = openControlDatabase(readConfig({ OM_DB_PATH: databaseFile(folder) }), systemClock);
  const { secret, record } = control.createKey({ tenantId: 'default', role: 'read', label: '' });
  control.createKey({ tenantId: 'default', role: 'admin', label: 'so that the last key is not revoked' });
  const service = await startServiceProcess({ folder, settings: TWO });
  const ask = async () =>
    (await service.request('GET', '/memory/all', { headers: { ...alone.headers, 'x-api-key': secret } })).status;
  expect(await Promise.all([1, 2, 3, 4, 5, 6].map(ask))).toEqual([200, 200, 200, 200, 200, 200]);
  control.revokeKey(record.id);
  control.close();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(await Promise.all([1, 2, 3, 4, 5, 6].map(ask))).toEqual([401, 401, 401, 401, 401, 401]);
  await service.end('SIGKILL');
});

test('the processes end with the one that started them, and another service can take the folder', async () => {
  const folder = tempFolder();
  const first = await startServiceProcess({ folder, settings: TWO });
  const pids = pidsOf(first);
  expect((await addTo(first, 'the ferry leaves at noon')).status).toBe(202);
  process.kill(first.pid, 'SIGKILL');
  await until(() => !pids.some(isAlive));
  const second = await startServiceProcess({ folder });
  expect(await listOf(second)).toEqual(['the ferry leaves at noon']);
  await second.end('SIGKILL');
});

test('an address that is taken is refused with its name, and no process stays behind', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  servers.push(taken);
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const service = spawnService({ folder: tempFolder(), settings: { ...TWO, OM_PORT: String(port) } });
  await expect(service.ready).rejects.toThrow(`cannot listen on 127.0.0.1:${port}`);
  expect((await service.exited).code).toBe(1);
});
