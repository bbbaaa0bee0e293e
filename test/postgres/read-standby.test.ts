/** Reads that a real standby answers: how old they may be, and what happens when it does not answer. */
import fs from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startPostgres, type PostgresServer, type Standby } from '../support/postgres.ts';
import { startServiceProcess, spawnService, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const FERRY = 'The ferry leaves at noon.';
const HARBOUR = 'The harbour has nine berths.';
const BERTH = 'Berth four is closed for repairs.';

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('reads from a standby', () => {
  let standby: Standby;
  beforeAll(async () => {
    // Long reads that are in the way of the log are ended, and each statement is in the log of the server.
    const settings = { max_standby_streaming_delay: '1s', log_statement: 'all' };
    standby = await server.startStandby({ isAwaited: false, settings });
  });
  afterAll(() => server?.stop());

  test('give the answers of the primary, and no statement that writes reaches the standby', async () => {
    const database = await server.createSchema();
    await standby.caughtUp();
    const before = fs.statSync(standby.log).size;
    const [writing, reading] = [await startNode(database, 'serve'), await startReading(database, 'serve')];
    for (const content of [FERRY, HARBOUR, BERTH]) {
      await add(writing, content);
      await add(reading, `Also: ${content}`);
    }
    await Promise.all([writing.idle(), reading.idle()]);
    await standby.caughtUp();
    for (const [method, path, body] of READS) {
      const [expected, found] = [await ask(writing, method, path, body), await ask(reading, method, path, body)];
      expect(found, path).toEqual(expected);
    }
    expect(await outcomes(reading)).toMatchObject({ standby: expect.any(Number) as number, failed: 0, down: 0 });
    expect((await outcomes(reading)).standby).toBeGreaterThanOrEqual(READS.length);

    const statements = statementsIn(standby.log, before);
    expect(statements.filter((text) => text.includes('memory_dynamics'))).not.toEqual([]);
    expect(statements.filter((text) => !/^(SELECT|WITH|BEGIN|ROLLBACK|SHOW|SET search_path)\b/.test(text))).toEqual([]);
    const writes =
      /\b(INSERT INTO|UPDATE \w+ SET|DELETE FROM|FOR UPDATE|pg_advisory|pg_logical|nextval|pg_current_xact)/;
    expect(statements.filter((text) => writes.test(text))).toEqual([]);
    expect(fs.readFileSync(standby.log, 'utf8').slice(before)).not.toContain('ERROR');
  });

  test('hold what a token names and what their own process wrote, while replay stands still', async () => {
    const database = await server.createSchema();
    const [writing, reading] = [await startNode(database), await startReading(database)];
    await add(writing, FERRY);
    await standby.caughtUp();
    expect(await contentsOf(reading)).toEqual([FERRY]);

    await standby.pauseReplay();
    onTestFinished(() => standby.resumeReplay());
    const { token } = (await add(writing, HARBOUR)).body;
    expect(await contentsOf(reading)).toEqual([FERRY]);
    expect(await found(reading, { query: 'How many berths?' })).toEqual([]);
    expect(await found(reading, { query: 'How many berths?', token })).toEqual([HARBOUR]);
    // The token has told the process of the write.
    expect(await contentsOf(reading)).toEqual([FERRY, HARBOUR]);
    await add(reading, BERTH);
    expect(await contentsOf(reading)).toEqual([BERTH, FERRY, HARBOUR]);
    expect((await outcomes(reading)).behind).toBeGreaterThanOrEqual(2);

    await standby.resumeReplay();
    await standby.caughtUp();
    const { standby: before } = await outcomes(reading);
    expect(await contentsOf(reading)).toEqual([BERTH, FERRY, HARBOUR]);
    expect((await outcomes(reading)).standby).toBeGreaterThan(before);
  });

  test('run on the primary while the standby is farther behind than OM_DATABASE_READ_LAG_MS', async () => {
    const database = await server.createSchema();
    const writing = await startNode(database);
    const more = { OM_DATABASE_READ_URL: standby.addressOf(database), OM_DATABASE_READ_LAG_MS: '500' };
    await add(writing, FERRY);
    const reading = await startNode(database, 'api', more);
    await standby.caughtUp();
    // Nothing happens on the primary, so the standby lacks nothing, however old its last write is.
    const isRead = async () => {
      expect(await contentsOf(reading)).toContain(FERRY);
      return (await outcomes(reading)).standby;
    };
    await expect.poll(isRead).toBeGreaterThan(0);

    await standby.pauseReplay();
    onTestFinished(() => standby.resumeReplay());
    await add(writing, HARBOUR);
    await expect.poll(() => contentsOf(reading)).toEqual([FERRY, HARBOUR]);
    const { behind, standby: before } = await outcomes(reading);
    expect(behind).toBeGreaterThan(0);
    await standby.resumeReplay();
    await expect.poll(isRead).toBeGreaterThan(before);
  });

  test('lack what was erased, once the standby has replayed it, and at once in the process that erased it', async () => {
    const database = await server.createSchema();
    const [writing, reading] = [await startNode(database), await startReading(database)];
    const erasing = await startReading(database);
    const { id } = (await add(writing, FERRY)).body;
    await standby.caughtUp();
    for (const node of [reading, erasing]) expect(await contentsOf(node)).toEqual([FERRY]);

    await standby.pauseReplay();
    onTestFinished(() => standby.resumeReplay());
    expect((await erasing.request('DELETE', `/memory/${id}`)).status).toBe(200);
    expect(await contentsOf(erasing)).toEqual([]);
    await standby.resumeReplay();
    await standby.caughtUp();
    expect(await contentsOf(reading)).toEqual([]);
    expect(await found(reading, { query: FERRY })).toEqual([]);
  });

  test('show a key that is bound to tags no text from before them, while replay stands still', async () => {
    const database = await server.createSchema();
    const admin = { 'x-api-key': 'a-key-of-the-operators' };
    const more = { OM_API_KEY: admin['x-api-key'] };
    const writing = await startNode(database, 'api', more);
    const reading = await startNode(database, 'api', { ...more, OM_DATABASE_READ_URL: standby.addressOf(database) });
    const made = await writing.request('POST', '/admin/keys', {
      headers: admin,
      body: { tenants: ['default'], role: 'read', tags: ['team'] },
    });
    const headers = { 'x-api-key': made.body.secret as string };
    const body = { content: 'A private draft.' };
    const { id } = (await writing.request('POST', '/memory/add', { headers: admin, body })).body;
    const patch = (change: object) => writing.request('PATCH', `/memory/${id}`, { headers: admin, body: change });
    await patch({ content: 'A private text.' });
    await standby.caughtUp();
    await standby.pauseReplay();
    onTestFinished(() => standby.resumeReplay());
    await patch({ content: 'A text for the team.', tags: ['team'] });
    for (const path of [`/memory/${id}/history`, `/memory/${id}/timeline`]) {
      const { text } = await reading.request('GET', path, { headers });
      expect(text, path).not.toContain('private');
    }
    const asked = { headers, body: { query: 'a private text', memory_id: id } };
    const explained = await reading.request('POST', '/explain', asked);
    expect([200, 404]).toContain(explained.status);
    expect((explained.body as { terms?: { matched: string[] } }).terms?.matched ?? []).not.toContain('private');
    expect((await reading.request('GET', `/memory/${id}`, { headers })).text).toContain('for the team');
  });

  test('go to the primary while the standby is lost, and come back to it', async () => {
    const database = await server.createSchema();
    const reading = await startReading(database);
    await add(reading, FERRY);
    await standby.caughtUp();
    expect(await contentsOf(reading)).toEqual([FERRY]);
    expect(await standbyOf(reading)).toBe('up');

    standby.stop();
    for (let at = 0; at < 5; at += 1) expect(await contentsOf(reading)).toEqual([FERRY]);
    expect(await found(reading, { query: FERRY })).toEqual([FERRY]);
    expect(await standbyOf(reading)).toBe('down');
    await reading.logged('standby_lost');
    expect(reading.log.filter(({ msg }) => msg === 'standby_lost')).toHaveLength(1);
    expect(await metric(reading, 'cairn_standby_up')).toBe(0);
    // A node that starts meanwhile answers, too.
    const late = await startReading(database);
    expect(await contentsOf(late)).toEqual([FERRY]);
    expect(await standbyOf(late)).toBe('down');

    await standby.start();
    for (const node of [reading, late]) {
      await expect.poll(async () => [await contentsOf(node), await standbyOf(node)]).toEqual([[FERRY], 'up']);
      await node.logged('standby_back');
      expect(node.log.filter(({ msg }) => msg === 'standby_back')).toHaveLength(1);
    }
  });

  test('run once more on the primary if replaying the log ends them', async () => {
    const database = await server.createSchema();
    const [writing, reading] = [await startNode(database), await startReading(database)];
    await add(writing, FERRY, { tags: ['sea'] });
    const { id } = (await add(writing, HARBOUR)).body;
    // A condition on tags then takes long on the standby.
    const slow = `CREATE OR REPLACE FUNCTION tags_pass(tags text, wanted text) RETURNS boolean LANGUAGE plpgsql STABLE
      AS $$ BEGIN
        IF pg_is_in_recovery() THEN PERFORM pg_sleep(8); END IF;
        RETURN coalesce(tags, '') LIKE '%sea%';
      END $$`;
    await server.read(database, slow);
    await standby.caughtUp();

    const asking = found(reading, { query: FERRY, filters: { tags: ['sea'] }, reinforce: false });
    const sleeping = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
    await expect.poll(() => standby.read(database, sleeping)).toEqual([{ n: 1 }]);
    await writing.request('DELETE', `/memory/${id}`);
    await vacuum(database);
    expect(await asking).toEqual([FERRY]);
    expect(await outcomes(reading)).toMatchObject({ failed: 1, down: 0 });
    const conflicts = 'SELECT sum(confl_snapshot)::int AS n FROM pg_stat_database_conflicts';
    await expect.poll(() => standby.read(database, conflicts)).not.toEqual([{ n: 0 }]);
  });

  test('wait for a schema and a tenant that the standby has not replayed, on the primary', async () => {
    const database = await server.createSchema();
    await standby.caughtUp();
    await standby.pauseReplay();
    onTestFinished(() => standby.resumeReplay());
    const reading = await startReading(database);
    await add(reading, FERRY);
    expect(await contentsOf(reading)).toEqual([FERRY]);
    expect(await outcomes(reading)).toMatchObject({ standby: 0, behind: 1, down: 0 });
    await standby.resumeReplay();
    await standby.caughtUp();
    expect(await contentsOf(reading)).toEqual([FERRY]);
    expect(await outcomes(reading)).toMatchObject({ standby: 1 });
  });

  test('of a tenant that the standby has not replayed run on the primary', async () => {
    const database = await server.createSchema();
    const admin = { 'x-api-key': 'a-key-of-the-operators' };
    const more = { OM_API_KEY: admin['x-api-key'], OM_DATABASE_READ_URL: standby.addressOf(database) };
    await standby.caughtUp();
    const reading = await startNode(database, 'api', more);
    await standby.caughtUp();
    await standby.pauseReplay();
    onTestFinished(() => standby.resumeReplay());
    await reading.request('POST', '/tenants', { headers: admin, body: { id: 'acme' } });
    const made = await reading.request('POST', '/admin/keys', {
      headers: admin,
      body: { tenants: ['acme'], role: 'write' },
    });
    const headers = { 'x-api-key': made.body.secret as string };
    const list = async () => (await reading.request('GET', '/memory/all', { headers })).body.items;
    expect(await list()).toEqual([]);
    expect((await reading.request('POST', '/memory/add', { headers, body: { content: FERRY } })).status).toBe(202);
    expect(await list()).toMatchObject([{ content: FERRY }]);
    const [{ tenants }] = (await standby.read(database, 'SELECT count(*)::int AS tenants FROM tenants')) as [
      { tenants: number },
    ];
    expect(tenants).toBe(1);
    const { text } = await reading.request('GET', '/metrics', { headers: admin });
    expect(text).toContain('cairn_standby_reads_total{outcome="behind"} 2');
    expect(text).toContain('cairn_standby_reads_total{outcome="failed"} 0');
  });

  test('are refused at the start from a server that is no copy of the primary', async () => {
    const foreign = (await startPostgres())!;
    onTestFinished(() => foreign.stop());
    const database = await server.createSchema();
    const settings = { OM_DATABASE_URL: database, OM_DATABASE_READ_URL: await foreign.createSchema() };
    const service = spawnService({ folder: tempFolder(), settings, command: 'api' });
    expect((await service.exited).code).not.toBe(0);
    expect(service.obituary).toContain('OM_DATABASE_READ_URL leads to a server that was not copied from that of');
    await standby.caughtUp();
    const other = { OM_DATABASE_URL: database, OM_DATABASE_READ_URL: standby.addressOf(await server.createSchema()) };
    await standby.caughtUp();
    const otherRole = spawnService({ folder: tempFolder(), settings: other, command: 'api' });
    expect((await otherRole.exited).code).not.toBe(0);
    expect(otherRole.obituary).toContain('use the same role in both');
  });

  test('leave a standby that was promoted by itself, and read from one that is the primary', async () => {
    const database = await server.createSchema();
    const [writing, reading] = [await startNode(database), await startReading(database)];
    await add(writing, FERRY);
    await standby.caughtUp();
    expect(await contentsOf(reading)).toEqual([FERRY]);

    standby.promote();
    await add(writing, HARBOUR);
    await expect.poll(() => contentsOf(reading)).toEqual([FERRY, HARBOUR]);
    expect((await reading.logged('standby_lost')).reason).toContain('takes writes');

    const settings = {
      OM_DATABASE_URL: standby.addressOf(database),
      OM_DATABASE_READ_URL: standby.addressOf(database),
    };
    const taken = await startServiceProcess({ folder: tempFolder(), settings, command: 'api' });
    onTestFinished(async () => void (await taken.end('SIGKILL')));
    expect(await contentsOf(taken)).toEqual([FERRY]);
    expect((await add(taken, BERTH)).status).toBe(202);
    expect(await contentsOf(taken)).toEqual([BERTH, FERRY]);
    expect(await outcomes(taken)).toMatchObject({ standby: 2, behind: 0, failed: 0, down: 0 });
    const alone = spawnService({
      folder: tempFolder(),
      settings: { ...settings, OM_DATABASE_URL: database },
      command: 'api',
    });
    expect((await alone.exited).code).not.toBe(0);
    expect(alone.obituary).toContain('takes writes and is not that of OM_DATABASE_URL');
  });

  /** Reads that a standby may answer: method, path and body. */
  const READS: readonly (readonly [method: string, path: string, body?: object])[] = [
    ['POST', '/memory/query', { query: 'When does the ferry leave?', reinforce: false }],
    ['POST', '/memory/query', { query: 'berths', reinforce: false, k: 2 }],
    ['GET', '/memory/all'],
    ['GET', '/memory/all?l=2&u=1'],
    ['GET', '/namespaces'],
    ['GET', '/memory/duplicates'],
    ['GET', '/sectors'],
    ['GET', '/entities'],
    ['GET', '/documents'],
  ];

  async function startReading(database: string, command: 'api' | 'serve' = 'api'): Promise<ServiceProcess> {
    return startNode(database, command, { OM_DATABASE_READ_URL: standby.addressOf(database) });
  }
});

async function startNode(
  database: string,
  command: 'api' | 'serve' = 'api',
  more: Readonly<Record<string, string>> = {},
): Promise<ServiceProcess> {
  const settings = { OM_DATABASE_URL: database, OM_QUERY_THREADS: '1', ...more };
  const node = await startServiceProcess({ folder: tempFolder(), settings, command });
  onTestFinished(async () => void (await node.end('SIGKILL')));
  return node;
}

/** Removes the rows that nobody sees any more, which no transaction block may do. */
async function vacuum(database: string): Promise<void> {
  const client = new pg.Client(database);
  await client.connect();
  await client.query('VACUUM memories').finally(() => client.end());
}

function add(node: ServiceProcess, content: string, more: object = {}) {
  return node.request('POST', '/memory/add', { body: { content, ...more } });
}

/** Asks a node, and returns what does not depend on the time at which it was asked. */
async function ask(node: ServiceProcess, method: string, path: string, body?: object): Promise<unknown> {
  const reply = await node.request(method, path, body === undefined ? {} : { body });
  expect(reply.status, reply.text).toBe(200);
  return withoutTime(reply.body);
}

function withoutTime(value: unknown): unknown {
  if (typeof value === 'number') return Number(value.toPrecision(4));
  if (Array.isArray(value)) return value.map(withoutTime);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => name !== 'recall_id');
  return Object.fromEntries(kept.map(([name, own]) => [name, withoutTime(own)]));
}

async function found(node: ServiceProcess, query: object): Promise<string[]> {
  const { body, status, text } = await node.request('POST', '/memory/query', { body: query });
  expect(status, text).toBe(200);
  return body.matches.map(({ content }) => content);
}

async function contentsOf(node: ServiceProcess): Promise<string[]> {
  const { body, status, text } = await node.request('GET', '/memory/all');
  expect(status, text).toBe(200);
  return body.items.map(({ content }) => content).sort();
}

async function standbyOf(node: ServiceProcess): Promise<unknown> {
  return (await node.request('GET', '/ready')).body.standby;
}

async function metric(node: ServiceProcess, name: string): Promise<number> {
  const { text } = await node.request('GET', '/metrics');
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

/** Returns how many reads of a node had each outcome. */
async function outcomes(node: ServiceProcess): Promise<Record<'standby' | 'behind' | 'failed' | 'down', number>> {
  const names = ['standby', 'behind', 'failed', 'down'] as const;
  const counts = names.map(async (name) => [name, await metric(node, `cairn_standby_reads_total{outcome="${name}"}`)]);
  return Object.fromEntries(await Promise.all(counts)) as Awaited<ReturnType<typeof outcomes>>;
}

/** Returns the statements that a server was sent over the network, from a place in its log on. */
function statementsIn(log: string, from: number): string[] {
  const text = fs.readFileSync(log).subarray(from).toString();
  const statements = text.matchAll(/LOG: {2}(?:statement|execute [^:]*): ([\s\S]*?)(?=\n\d{4}-\d\d-\d\d )/g);
  return [...statements].map(([, statement]) => statement!.trim());
}
