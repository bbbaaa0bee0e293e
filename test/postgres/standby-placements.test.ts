/** Reads that a standby may answer, of tenants that move between databases or are made anew under their name. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { startPostgres, type PostgresServer, type Standby } from '../support/postgres.ts';
import { startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { configOf, moveHere, twoDatabases, type TwoDatabases } from '../support/tenant-move.ts';

const FERRY = 'The ferry leaves at noon.';
const HARBOUR = 'The harbour has nine berths.';
const OPERATOR = { 'x-api-key': 'a-key-of-the-operators' };

type Headers = Readonly<Record<string, string>>;

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('a standby of the home database', () => {
  let standby: Standby;
  beforeAll(async () => {
    standby = await server.startStandby({ isAwaited: false });
  });
  afterAll(() => server?.stop());

  test('answers for a tenant that moved away and back only once it has the rows that came back', async () => {
    const databases = await twoDatabases(server);
    const node = await startReading(databases);
    const acme = await makeTenant(node);
    await add(node, acme, FERRY);
    await standby.caughtUp();
    expect(await contentsOf(node, acme)).toEqual([FERRY]);
    expect(await outcomes(node)).toEqual({ standby: 1, behind: 0, failed: 0, down: 0 });

    await standby.pauseReplay();
    onTestFinished(() => standby.resumeReplay());
    await moveHere(databases.settings, { to: 'eu' });
    await add(node, acme, HARBOUR);
    await moveHere(databases.settings, { to: 'home' });
    expect(await contentsOf(node, acme)).toEqual([FERRY, HARBOUR]);
    expect((await outcomes(node)).behind).toBeGreaterThan(0);

    await standby.resumeReplay();
    await standby.caughtUp();
    const { standby: before } = await outcomes(node);
    await expect.poll(() => contentsOf(node, acme)).toEqual([FERRY, HARBOUR]);
    expect((await outcomes(node)).standby).toBeGreaterThan(before!);
  });

  test('shows nothing of an erased tenant to the one that another process has made under its name', async () => {
    const databases = await twoDatabases(server);
    const node = await startReading(databases, 'serve');
    const acme = await makeTenant(node);
    await add(node, acme, FERRY);
    await node.idle(acme);
    await standby.caughtUp();
    expect(await contentsOf(node, acme)).toEqual([FERRY]);

    await standby.pauseReplay();
    onTestFinished(() => standby.resumeReplay());
    const next = makeAnew(databases);
    // The node has the tenant open for reading, writing and work.
    expect(await contentsOf(node, next)).toEqual([]);
    await add(node, next, HARBOUR);
    expect(await contentsOf(node, next)).toEqual([HARBOUR]);
    await node.idle(next);
    const asked = { headers: next, body: { query: FERRY, min_score: 0 } };
    const { body } = await node.request('POST', '/memory/query', asked);
    expect(body.matches.map(({ content }) => content)).toEqual([HARBOUR]);
    await expect.poll(async () => (await node.request('GET', '/memory/all', { headers: acme })).status).toBe(401);
  });

  test('is neither asked nor counted for a tenant that is in another database', async () => {
    const databases = await twoDatabases(server);
    const node = await startReading(databases);
    const acme = await makeTenant(node, 'eu');
    await add(node, acme, FERRY);
    await standby.caughtUp();
    expect(await contentsOf(node, acme)).toEqual([FERRY]);
    standby.stop();
    onTestFinished(() => standby.start());
    expect(await contentsOf(node, OPERATOR)).toEqual([]);
    expect(await outcomes(node)).toEqual({ standby: 0, behind: 0, failed: 0, down: 1 });
    for (let at = 0; at < 3; at += 1) expect(await contentsOf(node, acme)).toEqual([FERRY]);
    expect(await outcomes(node)).toEqual({ standby: 0, behind: 0, failed: 0, down: 1 });
  });

  async function startReading({ home, settings }: TwoDatabases, command: 'api' | 'serve' = 'api') {
    await standby.caughtUp();
    const more = { OM_QUERY_THREADS: '1', OM_API_KEY: OPERATOR['x-api-key'] };
    const node = await startServiceProcess({
      ...{ folder: tempFolder(), command },
      settings: { ...settings, ...more, OM_DATABASE_READ_URL: standby.addressOf(home) },
    });
    onTestFinished(async () => void (await node.end('SIGKILL')));
    return node;
  }
});

/** Makes the tenant `acme`, and returns the headers of a key for it. */
async function makeTenant(node: ServiceProcess, database = 'home'): Promise<Headers> {
  const made = await node.request('POST', '/tenants', { headers: OPERATOR, body: { id: 'acme', database } });
  expect(made.status, made.text).toBe(201);
  const body = { tenants: ['acme'], role: 'write' };
  return {
    'x-api-key': (await node.request('POST', '/admin/keys', { headers: OPERATOR, body })).body.secret as string,
  };
}

/** Erases `acme` and makes it again at once, in this process; returns the headers of a key for the new one. */
function makeAnew({ settings }: TwoDatabases): Headers {
  const control = openControlDatabase(configOf(settings), systemClock);
  try {
    control.eraseTenant('acme');
    control.createTenant('acme');
    return { 'x-api-key': control.createKey({ tenantId: 'acme', role: 'write' }).secret };
  } finally {
    control.close();
  }
}

/** Adds a memory, as soon as the node knows where the tenant is. */
async function add(node: ServiceProcess, headers: Headers, content: string): Promise<void> {
  await expect
    .poll(async () => (await node.request('POST', '/memory/add', { headers, body: { content } })).status)
    .toBe(202);
}

async function contentsOf(node: ServiceProcess, headers: Headers): Promise<string[]> {
  const { body, status, text } = await node.request('GET', '/memory/all', { headers });
  expect(status, text).toBe(200);
  return body.items.map(({ content }) => content).sort();
}

/** Returns how many reads of a node had each outcome. */
async function outcomes(node: ServiceProcess): Promise<Record<string, number>> {
  const { text } = await node.request('GET', '/metrics', { headers: OPERATOR });
  const lines = text.matchAll(/^cairn_standby_reads_total\{outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome!, Number(count)]));
}
