/** A server with a synchronous standby: what was acknowledged is on both, whatever becomes of one of them. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const FERRY = 'The ferry leaves at noon.';
const HARBOUR = 'The harbour has nine berths.';
/** Condition of server processes that wait until the standby has their commit. */
const WAITS = `wait_event = 'SyncRep'`;

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('a synchronous standby', () => {
  afterAll(() => server?.stop());

  test('that is lost holds up writes and no reads, and has all that was acknowledged when it takes over', async () => {
    const standby = await server.startStandby();
    const database = await server.createSchema();
    const service = await startNode(database);
    expect((await add(service, FERRY)).status).toBe(202);

    standby.stop();
    let answered = 0;
    const adding = add(service, HARBOUR).finally(() => (answered += 1));
    await waitingFor('COMMIT');
    expect(await contentsFound(service, 'When does the ferry leave?')).toEqual([FERRY]);

    // The commit stands in the log then, and no standby has it.
    await server.read(database, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${WAITS}`);
    await waitingFor('pg_logical_emit_message');
    expect(answered).toBe(0);

    await standby.start();
    expect((await adding).status).toBe(202);
    const names = await contentsOf(service);
    expect(names).toEqual([FERRY, HARBOUR]);

    await service.end('SIGKILL');
    standby.promote();
    const after = await startNode(standby.addressOf(database));
    expect(await contentsOf(after)).toEqual([FERRY, HARBOUR]);
    expect((await add(after, 'Berth four is closed.')).status).toBe(202);
    await after.end('SIGTERM');
  });
});

async function startNode(database: string): Promise<ServiceProcess> {
  const settings = { OM_DATABASE_URL: database, OM_QUERY_THREADS: '1' };
  const node = await startServiceProcess({ folder: tempFolder(), settings, command: 'api' });
  onTestFinished(async () => void (await node.end('SIGKILL')));
  return node;
}

function add(node: ServiceProcess, content: string) {
  return node.request('POST', '/memory/add', { body: { content } });
}

async function contentsFound(node: ServiceProcess, query: string): Promise<string[]> {
  const { body } = await node.request('POST', '/memory/query', { body: { query } });
  return body.matches.map(({ content }) => content);
}

async function contentsOf(node: ServiceProcess): Promise<string[]> {
  const { body } = await node.request('GET', '/memory/all');
  return body.items.map(({ content }) => content).sort();
}

/** Waits until a commit of a statement with this text waits for the standby. */
async function waitingFor(text: string): Promise<void> {
  const count = `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE ${WAITS} AND query LIKE '%${text}%'`;
  await expect.poll(() => server.read(server.url, count)).not.toEqual([{ waiting: 0 }]);
}
