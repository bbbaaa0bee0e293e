/**
 * Several machines over one PostgreSQL, with queues in one Redis or in that PostgreSQL: processes that share no folder
 * serve the same tenants.
 */
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { checkAdds, chooseSeed, createAddClient, describeReport, expectSound } from '../support/add-checker.ts';
import { startPostgres } from '../support/postgres.ts';
import { canStartRedis, startRedisServer } from '../support/redis.ts';
import { spawnService, type ServiceProcess, type ServiceReply } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Adds while processes are killed, and documents handed in beside them. */
const [ADDS, DOCUMENTS] = [120, 4];
/**
 * The processes that are killed, in this order: nodes and workers by their place. What a killed worker had claimed runs
 * apart, and other work waits for five times as long, so a second one would only make the test longer.
 */
const KILLS = ['api 0', 'worker 0', 'api 1'] as const;

/** A process on a machine of its own: its folder stays when it is started again. */
class Machine {
  readonly #options: Parameters<typeof spawnService>[0];
  #up = Promise.withResolvers<ServiceProcess>();
  #process: ServiceProcess;

  constructor(command: 'api' | 'worker', settings: Readonly<Record<string, string>>) {
    this.#options = { folder: tempFolder(), command, settings };
    this.#process = this.#start();
  }

  #start(): ServiceProcess {
    const process = spawnService(this.#options);
    process.ready.then(() => this.#up.resolve(process), this.#up.reject);
    return process;
  }

  /** The process, once it serves. */
  get up(): Promise<ServiceProcess> {
    return this.#up.promise;
  }

  get isUp(): Promise<boolean> {
    return Promise.race([this.#up.promise.then(() => true), pause(0).then(() => false)]);
  }

  async killAndRestart(): Promise<void> {
    this.#up = Promise.withResolvers();
    await this.#process.end('SIGKILL');
    this.#process = this.#start();
    await this.#process.ready;
  }

  end(signal: NodeJS.Signals): ReturnType<ServiceProcess['end']> {
    return this.#process.end(signal);
  }
}

const server = await startPostgres();
const queues = canStartRedis() ? (['Redis', 'PostgreSQL'] as const) : (['PostgreSQL'] as const);
describe.skipIf(server === undefined).each(queues)('machines that share PostgreSQL, with queues in %s', (queuesIn) => {
  test('lose and double nothing under kills, know each other’s keys, and give the same answers', async () => {
    const seed = chooseSeed();
    const random = createRandom(seed);
    const { nodes, workers, database } = await startMachines(queuesIn);
    const history = path.join(tempFolder(), 'history.jsonl');
    const anyNode = async () => {
      const first = nodes[random() < 0.5 ? 0 : 1]!;
      return (await first.isUp) ? first.up : Promise.race(nodes.map(({ up }) => up));
    };
    const client = createAddClient({ history, seed, concurrency: 8, service: anyNode });
    const adding = client.add(ADDS);
    const documents = Array.from({ length: DOCUMENTS }, (_, number) => handIn(anyNode, number));
    for (const [place, victim] of KILLS.entries()) {
      await client.untilAcknowledged(Math.floor((ADDS * (place + 0.5)) / KILLS.length));
      const [kind, number] = victim.split(' ');
      await (kind === 'api' ? nodes : workers)[Number(number)]!.killAndRestart();
    }
    await Promise.all([adding, ...documents]);
    const [here, there] = [await nodes[0]!.up, await nodes[1]!.up];
    expect(await idleAt(there)).toMatchObject({ dead: 0 });

    await expectAllDocuments(here);
    // A node that was killed between a file and its document left parts, which no document names.
    const named = `SELECT upload FROM document_generations WHERE upload <> ''`;
    expect(await server!.read(database, `SELECT part FROM upload_parts WHERE upload IN (${named})`)).toEqual([]);
    const report = await checkAdds(there, history);
    console.log(
      `queues in ${queuesIn}, seed ${seed}, ${KILLS.length} kills: ${describeReport(report)}, replayed ${client.replayed}`,
    );
    // The parts of the documents are memories, too: the blank ones of the first are alike.
    const ofAdds = (contents: readonly string[]) => contents.filter((content) => content.includes('Reference r'));
    expectSound({ ...report, unexpected: ofAdds(report.unexpected), duplicated: ofAdds(report.duplicated) });
    const doubled = `SELECT content FROM memories WHERE content LIKE '%lighthouse%' GROUP BY 1 HAVING count(*) > 1`;
    expect(await server!.read(database, doubled)).toEqual([]);
    await expectEqualAnswers(here, there);
    await expectSharedKeys(here, there);
    const ends = await Promise.all([...nodes, ...workers].map((machine) => machine.end('SIGTERM')));
    expect(ends).toEqual(ends.map(() => ({ code: 0, signal: null })));
  });
});

afterAll(() => server?.stop());

async function startMachines(queuesIn: (typeof queues)[number]) {
  const redis = queuesIn === 'Redis' ? await startRedisServer() : undefined;
  const database = await server!.createSchema();
  const settings = {
    OM_DATABASE_URL: database,
    ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
    OM_LEASE_MS: '2000',
    OM_QUERY_THREADS: '1',
  };
  const nodes = [new Machine('api', settings), new Machine('api', settings)];
  const workers = [new Machine('worker', settings), new Machine('worker', settings)];
  onTestFinished(async () => {
    await Promise.all([...nodes, ...workers].map((machine) => machine.end('SIGKILL')));
    await redis?.stop();
  });
  await Promise.all([...nodes, ...workers].map(({ up }) => up));
  return { nodes, workers, database };
}

/** A text of few chunks; that of the first document is stored in three parts. */
const textOf = (number: number) =>
  Array.from({ length: 3 }, (_, n) => `# Part ${n}\n\nThe lighthouse ${number} has lamp ${n}.\n`).join('\n') +
  '\n'.repeat(number === 0 ? 600_000 : 1);

/** Hands a document in until a node has acknowledged it; the repetitions of one are the same document. */
async function handIn(anyNode: () => Promise<ServiceProcess>, number: number): Promise<void> {
  for (;;) {
    const node = await anyNode();
    const body = { content_type: 'md', data: textOf(number), external_id: `document-${number}` };
    const reply = await node.request('POST', '/memory/ingest', { body }).catch(() => undefined);
    if (reply !== undefined && reply.status < 300) return;
    expect([undefined, 503]).toContain(reply?.status);
    await pause(50);
  }
}

/** Asks a node, and again while it cannot answer for a moment. */
async function ask(node: ServiceProcess, ...request: Parameters<ServiceProcess['request']>): Promise<ServiceReply> {
  for (;;) {
    const reply = await node.request(...request);
    if (reply.status !== 503) return reply;
    await pause(200);
  }
}

/** Waits until no job is left to do. @returns how many jobs are in each state */
async function idleAt(node: ServiceProcess): Promise<ServiceReply['body']['counts']> {
  for (;;) {
    const { counts } = (await ask(node, 'GET', '/jobs?l=1')).body;
    if (counts.queued + counts.active + counts.failed === 0) return counts;
    await pause(200);
  }
}

async function expectAllDocuments(node: ServiceProcess): Promise<void> {
  const { body } = await ask(node, 'GET', '/documents?l=100');
  const documents = body.items as unknown as { readonly external_id: string; readonly state: string }[];
  const states = documents.map(({ external_id: id, state }) => `${id} ${state}`).sort();
  expect(states).toEqual(Array.from({ length: DOCUMENTS }, (_, number) => `document-${number} ready`));
}

const QUESTIONS = ['Which lamp has the lighthouse 2?', 'What failed because of the rain?', 'Reference r000042'];

async function expectEqualAnswers(here: ServiceProcess, there: ServiceProcess): Promise<void> {
  for (const query of QUESTIONS) {
    const body = { query, k: 10, min_score: 0, reinforce: false };
    const asked = [here, there, here].map((node) => ask(node, 'POST', '/memory/query', { body }));
    const replies = await Promise.all(asked);
    const matches = replies.map((reply) => matchesOf(reply));
    expect(matches[0]!.length, query).toBeGreaterThan(3);
    expect(matches[1], query).toEqual(matches[0]);
    expect(matches[2], query).toEqual(matches[0]);
  }
}

const matchesOf = ({ body }: ServiceReply) =>
  body.matches.map((match) => {
    const { id, content, score } = match as unknown as { id: string; content: string; score: number };
    return { id, content, score: score.toFixed(6) };
  });

/** A key made at one node is good at the other at once; revoked there, it is refused here soon. */
async function expectSharedKeys(here: ServiceProcess, there: ServiceProcess): Promise<void> {
  const make = async (role: string, headers = {}) => {
    const { body } = await ask(here, 'POST', '/admin/keys', { body: { role }, headers });
    const { key, secret } = body as unknown as { readonly key: { readonly id: string }; readonly secret: string };
    return { id: key.id, key: secret };
  };
  const statusAt = async (node: ServiceProcess, key: string) =>
    (await ask(node, 'GET', '/stats', { headers: { 'x-api-key': key } })).status;
  const admin = await make('admin');
  const reader = await make('read', { 'x-api-key': admin.key });
  expect(await statusAt(there, reader.key)).toBe(200);
  const revoked = await ask(there, 'DELETE', `/admin/keys/${reader.id}`, { headers: { 'x-api-key': admin.key } });
  expect(revoked.status).toBeLessThan(300);
  expect(await statusAt(there, reader.key)).toBe(401);
  await expect.poll(() => statusAt(here, reader.key)).toBe(401);
}
