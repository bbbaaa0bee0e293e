import { fork } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { hostileBodies } from '../support/attacks/hostile-json.ts';
import { controlText } from '../support/attacks/large-memories.ts';
import { processorSeconds, residentMb } from '../support/attacks/process-usage.ts';
import { readNothing } from '../support/attacks/silent-readers.ts';
import { spawnService, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { IS_FULL } from './attack.ts';

const KEY = 'an-admin-key-of-this-test-x7';
/** Memories with much metadata, with much text, with values of many parts, and how long all attacks go on together. */
const SIZE = IS_FULL
  ? { labelled: 3_000, large: 400, dense: 60, seconds: 60 }
  : { labelled: 50, large: 4, dense: 5, seconds: 2 };
const METADATA_BYTES = 15_000;
const MAX_RSS_MB = 1_024;
/** Most memory that 14 clients may take who read nothing of their replies (MB). */
const MAX_UNREAD_MB = 200;
const LOOK_EVERY_MS = 20;
const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };

test('the worst of each kind, together, leaves the service alive, within its memory, and with right answers', async () => {
  const service = spawnService({ folder: tempFolder(), settings: { OM_API_KEY: KEY, OM_EMBEDDINGS: 'none' } });
  const url = await service.ready;
  await fill(url);
  const send = async (...request: readonly [method: string, path: string, body?: unknown]) =>
    (await ask(url, ...request)).status;
  const question = { query: 'harbour lights', user_id: 'labelled', filters: { metadata: CONDITIONS } };
  const listed = await ask(url, 'GET', '/memory/all?user_id=labelled&l=1');
  const explanation = { ...question, memory_id: /"id":"([^"]+)"/.exec(listed.text)![1] };
  await ask(url, 'POST', '/memory/query', { query: 'harbour lights', user_id: 'labelled', k: 1 });
  const costs = [
    await costOf(service, () => ask(url, 'POST', '/memory/query', question)),
    await costOf(service, () => ask(url, 'POST', '/explain', explanation)),
  ];
  console.log(
    `32 conditions on ${SIZE.labelled} memories with 15 kB of metadata: a question ${costs.join(', explained ')}`,
  );
  const { peakMb, stop } = watch(url, service);
  if (IS_FULL) yieldCoresToService();
  const beforeMb = residentMb(service.pid);
  using readers = await readNothing(
    { port: Number(new URL(url).port), key: KEY },
    { connections: 14, path: '/memory/all?user_id=large&l=1000' },
  );
  if (IS_FULL) await pause(10_000);
  const unreadMb = peakMb() - beforeMb;
  console.log(`14 clients that read nothing: ${Math.round(unreadMb)} MB`);
  expect(unreadMb).toBeLessThan(MAX_UNREAD_MB);
  const end = performance.now() + SIZE.seconds * 1_000;
  const statuses = new Map<number, number>();
  const again = async (attack: () => Promise<number>) => {
    do {
      const status = await attack();
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    } while (performance.now() < end);
  };
  const bodies = Object.values(hostileBodies(6 * 1024 * 1024));
  let turn = 0;
  await Promise.all([
    again(() => send('POST', '/memory/query', question)),
    again(() => send('POST', '/memory/query', { ...question, explain: true, k: 200, min_score: 0 })),
    again(() => send('POST', '/explain', explanation)),
    again(() => send('POST', '/memory/query', { query: 'zebra', user_id: 'dense', k: 200, min_score: 0 })),
    again(() => send('POST', '/memory/ingest', bodies[turn++ % bodies.length])),
    again(() => send('DELETE', '/memory', { tags: Array.from({ length: 64 }, (_, no) => `t${no}`) })),
    again(() => send('GET', '/memory/all?user_id=large&l=1000')),
    again(() => send('POST', '/memory/add', { content: `added ${turn++}`, user_id: 'adds' })),
  ]);
  const ms = (await stop()).toSorted((a, b) => a - b);
  const at = (share: number) => ms[Math.min(ms.length - 1, Math.floor(share * ms.length))]!.toFixed(1);
  console.log(
    `/health of another client, ${ms.length} times: p50 ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)}, worst ${at(1)} ms; ` +
      `resident at most ${peakMb()} MB; silent readers left ${readers.open} of 14; statuses ${JSON.stringify([...statuses])}`,
  );
  expect([...statuses.keys()].filter((status) => status >= 500 && status !== 503)).toEqual([]);
  expect(statuses.get(200) ?? 0).toBeGreaterThan(0);
  expect(ms.length).toBeGreaterThan(0);
  expect(peakMb()).toBeLessThan(MAX_RSS_MB);
  expect(await send('POST', '/memory/query', { query: 'harbour' })).toBe(200);
  await service.end('SIGTERM');
});

/** Conditions that every memory passes but for the last one, which none does. */
const CONDITIONS = {
  ...Object.fromEntries(
    Array.from({ length: 31 }, (_, no) => [`k${no}`, { $nin: Array.from({ length: 100 }, (_, n) => n) }]),
  ),
  nope: { $eq: 'never' },
};

async function ask(url: string, method: string, path: string, body?: unknown) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body: text }) });
  return { status: response.status, text: await response.text() };
}

/** Tells the processor time that a request takes, and whether its answer is degraded. */
async function costOf({ pid }: ServiceProcess, send: () => Promise<{ readonly text: string }>): Promise<string> {
  const before = processorSeconds(pid);
  const { text } = await send();
  const seconds = processorSeconds(pid) - before;
  return `${seconds.toFixed(2)} s of CPU${text.includes('"degraded":true') ? ' (degraded)' : ''}`;
}

/** Lowers the priority of this process, as an attacker has cores of its own that the service does not share. */
function yieldCoresToService(): void {
  os.setPriority(os.constants.priority.PRIORITY_LOW);
}

/** Stores what the attacks work on. */
async function fill(url: string): Promise<void> {
  const add = async (items: readonly object[]) => {
    const response = await fetch(`${url}/memory/add/batch`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ items }),
    });
    expect(response.status, await response.text()).toBe(202);
  };
  const metadata = Object.fromEntries(
    Array.from({ length: 32 }, (_, no) => [`m${no}`, 'x'.repeat(METADATA_BYTES / 32)]),
  );
  const tags = Array.from({ length: 63 }, (_, no) => `t${no}`);
  const labelled = (no: number) => ({ content: `harbour ${no}`, user_id: 'labelled', metadata, tags });
  for (let no = 0; no < SIZE.labelled; no += 50)
    await add(Array.from({ length: 50 }, (_, more) => labelled(no + more)));
  const value = Array.from({ length: 49_000 }, () => []);
  for (let no = 0; no < SIZE.dense; no += 1) {
    const item = { user_id: 'dense', namespace: 'dense', key: `k${no}`, content: `zebra ${no}`, value };
    expect((await ask(url, 'PUT', '/items', item)).status).toBe(201);
  }
  for (let no = 0; no < SIZE.large; no += 1) await add([{ content: controlText(no, 150_000), user_id: 'large' }]);
}

/** Starts what probes /health, and watches the memory of the service. */
function watch(url: string, { pid }: ServiceProcess) {
  const probe = fork(new URL('../support/attacks/probe-health-main.ts', import.meta.url), [url]);
  let peakMb = residentMb(pid);
  const look = setInterval(() => void (peakMb = Math.max(peakMb, residentMb(pid))), LOOK_EVERY_MS);
  /** @returns the time of each answer, ms */
  const stop = async (): Promise<number[]> => {
    clearInterval(look);
    probe.send('stop');
    const [times] = (await once(probe, 'message')) as [number[]];
    return times;
  };
  return { peakMb: () => Math.round(peakMb), stop };
}
