/**
 * Durable adds over HTTP beside their floor: `npm run measure -- adds [MEMORIES] [CONNECTIONS]`. Three servers take the
 * same bodies from the same connections in turns: the floor (bare-adds.ts), the API alone, and the whole service, whose
 * worker computes vectors meanwhile. Single adds come first, then batches. Prints one JSON line per figure; `share` is
 * the median, over the turns, of the server's rate divided by the floor's.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createTexts, cpuSeconds, startProcess, startServer, untilIdle, type Process } from './load.ts';
import { RawClient } from './raw-client.ts';
import { percentile, report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 60_000);
const CONNECTIONS = Number(process.argv[3] ?? 32);
const TURNS = 5;
const BATCH_ITEMS = 100;
/** Number of memories of a conversation. Each memory is indexed with the two before it as its context. */
const SESSION_MEMORIES = 20;

interface Contender {
  readonly name: string;
  readonly process: Process;
}
interface Turn {
  readonly perSecond: number;
  readonly latencies: readonly number[];
  /** CPU time of the server for one memory, µs. */
  readonly cpuUs: number;
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const settingsOf = (name: string) => ({ OM_DB_PATH: path.join(folder, name, 'bench.sqlite'), OM_PORT: '0' });
const contenders: Contender[] = [];
try {
  const floor = [path.join(import.meta.dirname, 'bare-adds.ts'), path.join(folder, 'floor.sqlite')];
  contenders.push({ name: 'floor', process: await startServer(floor, {}) });
  contenders.push({ name: 'api', process: await startProcess('api', settingsOf('api')) });
  contenders.push({ name: 'service', process: await startProcess('serve', settingsOf('service')) });
  await compare('single', 1, MEMORIES);
  await compare('batch', BATCH_ITEMS, MEMORIES);
} finally {
  for (const { process: server } of contenders) await server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Lets every server take the same memories in turns, after a turn that warms it up, and reports their rates. */
async function compare(kind: string, items: number, memories: number): Promise<void> {
  const turns = new Map<string, Turn[]>(contenders.map(({ name }) => [name, []]));
  for (let turn = 0; turn <= TURNS; turn++) {
    const bodies = bodiesOf(createTexts(Math.ceil(memories / TURNS), 100 * items + turn), items, `${kind}${turn}`);
    for (const { name, process: server } of contenders) {
      const taken = await takeTurn(server, items === 1 ? '/memory/add' : '/memory/add/batch', bodies, items);
      if (turn > 0) turns.get(name)!.push(taken);
      if (name === 'service') await untilIdle(server.url);
    }
  }
  const floor = turns.get('floor')!;
  for (const [name, taken] of turns) {
    const median = (value: (turn: Turn, index: number) => number) => percentile(taken.map(value), 0.5);
    report(
      `${kind}_adds_per_s_${name}`,
      median(({ perSecond }) => perSecond),
      {
        share: median(({ perSecond }, index) => perSecond / floor[index]!.perSecond),
        p95_ms: median(({ latencies }) => percentile(latencies, 0.95)),
        cpu_us: median(({ cpuUs }) => cpuUs),
        connections: CONNECTIONS,
      },
    );
  }
}

function bodiesOf(texts: readonly string[], items: number, session: string): readonly string[] {
  const memories = texts.map((content, at) => ({
    content,
    user_id: 'bench',
    session_id: `${session}-${Math.floor(at / SESSION_MEMORIES)}`,
  }));
  if (items === 1) return memories.map((memory) => JSON.stringify(memory));
  return Array.from({ length: Math.ceil(memories.length / items) }, (_, at) =>
    JSON.stringify({ items: memories.slice(at * items, (at + 1) * items) }),
  );
}

async function takeTurn(server: Process, route: string, bodies: readonly string[], items: number): Promise<Turn> {
  const latencies: number[] = [];
  let next = 0;
  const cpuBefore = cpuSeconds(server.child);
  const started = performance.now();
  await Promise.all(
    Array.from({ length: Math.min(CONNECTIONS, bodies.length) }, async () => {
      const client = new RawClient(server.url);
      while (next < bodies.length) {
        const body = bodies[next++]!;
        const begun = performance.now();
        const reply = await client.request('POST', route, body);
        latencies.push(performance.now() - begun);
        if (reply.status !== 202) throw new Error(`add answered ${reply.status}: ${reply.body}`);
      }
      client.close();
    }),
  );
  const ms = performance.now() - started;
  const memories = bodies.length * items;
  return {
    perSecond: (1_000 * memories) / ms,
    latencies,
    cpuUs: (1e6 * (cpuSeconds(server.child) - cpuBefore)) / memories,
  };
}
