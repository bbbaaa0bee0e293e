import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import { spawnService, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

interface Event {
  readonly kind: string;
  readonly id: string;
}

const KILLS = 4;
const WRITERS = 6;
const MOMENT_MS = 400;

test('killed outright during appends and adds, the log and the feed lose and double nothing', async () => {
  const random = createRandom(chooseSeed());
  const folder = tempFolder();
  const added = new Set<string>();
  const appended = new Map<number, number>(Array.from({ length: WRITERS }, (_, writer) => [writer, 0]));

  for (let life = 0; life < KILLS; life++) {
    const service = spawnService({ folder });
    await service.ready;
    const writing = Array.from({ length: WRITERS }, (_, writer) => writeUntilKilled(service, { writer, life }));
    await pause(MOMENT_MS * (0.5 + random()));
    await service.end('SIGKILL');
    await Promise.all(writing);
  }

  const service = spawnService({ folder });
  await service.ready;
  // The append that was under way at the last kill is sent again, and happens once whether it had committed or not.
  for (const [writer, next] of appended) {
    await append(service, writer, next);
    appended.set(writer, next + 1);
  }
  await service.idle();
  for (const [writer, count] of appended) {
    const { body } = await service.request('GET', `/sessions/s${writer}/log?limit=1000`);
    expect((body['items'] as unknown as { item: unknown }[]).map(({ item }) => item)).toEqual(
      Array.from({ length: count }, (_, index) => ({ writer, index })),
    );
  }
  const events: Event[] = [];
  for (let cursor = '', more = true; more;) {
    const { body } = await service.request('GET', `/events?limit=1000${cursor}`);
    events.push(...(body['items'] as unknown as Event[]));
    [cursor, more] = [`&cursor=${body['cursor'] as string}`, body['has_more'] as boolean];
  }
  const stored = events.filter(({ kind }) => kind === 'memory.stored').map(({ id }) => id);
  const listed: string[] = [];
  for (let more = true; more;) {
    const { items } = (await service.request('GET', `/memory/all?l=1000&u=${listed.length}`)).body;
    listed.push(...items.map(({ id }) => id));
    more = items.length === 1000;
  }
  expect(new Set(stored).size).toBe(stored.length);
  expect(new Set(stored)).toEqual(new Set(listed));
  expect([...added].filter((id) => !stored.includes(id))).toEqual([]);
  for (const id of stored) {
    const kinds = events.filter((event) => event.id === id).map(({ kind }) => kind);
    expect(kinds).toEqual(['memory.stored', 'memory.ready']);
  }
  await service.end('SIGTERM');

  /** Adds and appends in turns. What was not acknowledged is sent again in the next life, with its operation id. */
  async function writeUntilKilled(alive: ServiceProcess, { writer, life }: { writer: number; life: number }) {
    try {
      for (let turn = 0; ; turn++) {
        const next = appended.get(writer)!;
        await append(alive, writer, next);
        appended.set(writer, next + 1);
        const content = `writer ${writer} counts ${turn} ships in life ${life}`;
        const { status, body } = await alive.request('POST', '/memory/add', { body: { content } });
        expect(status).toBe(202);
        added.add(body.id);
      }
    } catch (error) {
      if (alive.obituary === undefined && !(error instanceof TypeError)) throw error;
    }
  }
});

async function append(service: ServiceProcess, writer: number, index: number): Promise<void> {
  const { status } = await service.request('POST', `/sessions/s${writer}/log`, {
    body: { items: [{ writer, index }], operation_id: `append-${index}` },
  });
  expect(status).toBe(200);
}
