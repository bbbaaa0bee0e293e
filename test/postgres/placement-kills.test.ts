/** `cairn tenants move` beside a service that writes, and killed between any two of its steps. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { memoriesIn, spawnTenants, twoDatabases } from '../support/tenant-move.ts';

const server = (await startPostgres()) as PostgresServer;

/** Admin key of the default tenant. */
const KEY = 'a-key-that-nobody-else-would-guess-9f2c';
const asAdmin = { authorization: `Bearer ${KEY}` };

/** A tenant of a service, to which a client adds memories one after the other. */
interface Writing {
  readonly service: ServiceProcess;
  readonly headers: Readonly<Record<string, string>>;
  /** Contents whose adds were acknowledged. */
  readonly acknowledged: Set<string>;
  /** Number of adds that were refused because the tenant moves or has moved. */
  refused: number;
  /** Waits until another add of the tenant is acknowledged. */
  goesOn(): Promise<void>;
  /** Contents of all memories that the tenant has now. */
  stored(): Promise<string[]>;
  stop(): Promise<void>;
}

async function startWriting(settings: Readonly<Record<string, string>>): Promise<Writing> {
  const service = await startServiceProcess({
    folder: tempFolder(),
    settings: { ...settings, OM_API_KEY: KEY, OM_QUERY_THREADS: '1' },
  });
  await service.request('POST', '/tenants', { body: { id: 'acme' }, headers: asAdmin });
  const made = await service.request('POST', '/admin/keys', {
    body: { tenants: ['acme'], role: 'write' },
    headers: asAdmin,
  });
  const headers = { authorization: `Bearer ${String(made.body['secret'])}` };
  const acknowledged = new Set<string>();
  let isStopped = false;
  const writing: Writing = {
    service,
    headers,
    acknowledged,
    refused: 0,
    async goesOn() {
      const before = acknowledged.size;
      await expect.poll(() => acknowledged.size).toBeGreaterThan(before);
    },
    async stored() {
      const { body } = await service.request('GET', '/memory/all?l=1000', { headers });
      return body.items.map(({ content }) => content);
    },
    async stop() {
      isStopped = true;
      await loop;
    },
  };
  const loop = (async () => {
    for (let n = 0; !isStopped; n += 1) {
      const content = `Watch ${n}: the keeper counts ${n * 7} ships.`;
      const { status, headers: reply } = await service.request('POST', '/memory/add', { body: { content }, headers });
      if (status === 202) acknowledged.add(content);
      else {
        expect(status).toBe(503);
        expect(Number(reply.get('retry-after'))).toBeGreaterThan(0);
        writing.refused += 1;
      }
      await pause(20);
    }
  })();
  await writing.goesOn();
  return writing;
}

/** Databases in which the tenant has memories, beside copies with other names. */
async function holders({ home, eu }: { readonly home: string; readonly eu: string }): Promise<string[]> {
  const counts = { home: await memoriesIn(server, home), eu: await memoriesIn(server, eu) };
  return Object.entries(counts).flatMap(([name, memories]) => (memories > 0 ? [name] : []));
}

describe.skipIf(server === undefined)('cairn tenants move beside a service', () => {
  afterAll(() => server?.stop());

  test('writes are refused while it moves and never lost, and other tenants go on', async () => {
    const databases = await twoDatabases(server);
    const writing = await startWriting(databases.settings);
    const { service } = writing;
    for (const to of ['eu', 'home']) {
      const before = writing.refused;
      const moving = spawnTenants(['move', 'acme', '--to', to], databases.settings);
      let [others, hasEnded] = [0, false];
      void moving.ended.then(() => (hasEnded = true));
      while (!hasEnded) {
        const body = { content: `Another tenant's memory ${to} ${others}.` };
        expect(await service.request('POST', '/memory/add', { body, headers: asAdmin })).toMatchObject({ status: 202 });
        others += 1;
      }
      expect(await moving.ended).toMatchObject({ code: 0 });
      expect(writing.refused).toBeGreaterThan(before);
      expect(others).toBeGreaterThan(5);
      await writing.goesOn();
      expect(await holders(databases)).toEqual([to]);
    }
    await writing.stop();
    await service.idle(writing.headers);
    const stored = await writing.stored();
    expect(stored.filter((content) => writing.acknowledged.has(content)).length).toBe(writing.acknowledged.size);
    expect(new Set(stored).size).toBe(stored.length);
    expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  test.each([
    ['after-move-begins', 'home'],
    ['after-move-copies', 'home'],
    ['after-move-names', 'home'],
    ['after-move-marks', 'home'],
    ['after-move-completes', 'eu'],
    ['after-move-cleans', 'eu'],
  ])('killed %s the tenant is in %s, open, and the same command ends the move', async (at, place) => {
    const databases = await twoDatabases(server);
    const writing = await startWriting(databases.settings);
    const killed = { ...databases.settings, NODE_ENV: 'test', CAIRN_FAILPOINT: `${at}:kill:1` };
    expect(await spawnTenants(['move', 'acme', '--to', 'eu'], killed).ended).toMatchObject({ signal: 'SIGKILL' });
    // By itself, without another run of the command.
    await writing.goesOn();
    const { body } = await writing.service.request('GET', '/tenants', { headers: asAdmin });
    const listed = body['items'] as readonly unknown[] as readonly { id: string; database: string }[];
    expect(listed.find(({ id }) => id === 'acme')!.database).toBe(place);
    const acknowledged = [...writing.acknowledged];
    expect(await writing.stored()).toEqual(expect.arrayContaining(acknowledged));
    const again = await spawnTenants(['move', 'acme', '--to', 'eu'], databases.settings).ended;
    expect(again).toMatchObject({ code: 0 });
    await writing.goesOn();
    await writing.stop();
    expect(await holders(databases)).toEqual(['eu']);
    expect(await writing.stored()).toEqual(expect.arrayContaining([...writing.acknowledged]));
    await writing.service.end('SIGTERM');
  });

  test('killed at the beginning of the move of a tenant that was never used, the same command ends the move', async () => {
    const { home, eu, settings } = await twoDatabases(server);
    expect((await spawnTenants(['create', 'acme'], settings).ended).code).toBe(0);
    // Earlier versions placed no tenant, and made its row with its first use.
    const unplace = `DELETE FROM ${new URL(home).username}_control.placements; DELETE FROM tenants WHERE id = 'acme'`;
    await server.read(home, unplace);
    const killed = { ...settings, NODE_ENV: 'test', CAIRN_FAILPOINT: 'after-move-begins:kill:1' };
    expect(await spawnTenants(['move', 'acme', '--to', 'eu'], killed).ended).toMatchObject({ signal: 'SIGKILL' });
    expect(await server.read(home, `SELECT 1 FROM tenants WHERE id = 'acme'`)).toEqual([]);
    expect(await spawnTenants(['move', 'acme', '--to', 'eu'], settings).ended).toMatchObject({ code: 0 });
    expect(await server.read(eu, `SELECT 1 AS one FROM tenants WHERE id = 'acme'`)).toEqual([{ one: 1 }]);
  });
});
