import { spawn, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Database from 'better-sqlite3';
import { readConfig } from '../src/engine/config.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openTenant } from '../src/engine/open-tenant.ts';
import { ftsString, queryTerms } from '../src/engine/text/index-text.ts';
import { createRandom, createTextSource } from './natural-text.ts';
import { RawClient } from './raw-client.ts';
import { percentile, report } from './report.ts';

/**
 * The whole service as a user runs it, one user with everything: `node bench/service.ts [MEMORIES] [CONNECTIONS]`.
 * Prints one JSON line a figure, beside the floor of the same run: bare group-committed inserts of the same texts.
 */
const MEMORIES = Number(process.argv[2] ?? 20_000);
const CONNECTIONS = Number(process.argv[3] ?? 32);
const QUERIES = 500;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const source = createTextSource(1);
const random = createRandom(3);
const texts = Array.from({ length: MEMORIES }, () => source.text(60 + Math.floor(160 * random())));
const settings = { OM_DB_PATH: path.join(folder, 'bench.sqlite'), OM_PORT: '0', OM_LOG_LEVEL: 'info' };

let service: Service | undefined;
try {
  measureFloor();
  service = await startService();
  report('rss_idle_mb', residentMb(service.child));
  await measureAdds(service);
  await measureQueries(service);
  report('rss_loaded_mb', residentMb(service.child));
  await service.stop();
  await measureQueriesInProcess();
  const bytes = fs.statSync(settings.OM_DB_PATH).size;
  const textBytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  report('bytes_beyond_text_per_memory', (bytes - textBytes) / MEMORIES, { text: textBytes / MEMORIES });
  service = await startService();
  report('start_to_ready_ms', service.startMs, { memories: MEMORIES });
  report('rss_after_restart_mb', residentMb(service.child));
} finally {
  await service?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

function measureFloor(): void {
  const db = new Database(path.join(folder, 'floor.sqlite'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT NOT NULL)');
  const insert = db.prepare('INSERT INTO memories (content) VALUES (?)');
  const started = performance.now();
  for (let at = 0; at < texts.length; at += CONNECTIONS) {
    db.transaction(() => texts.slice(at, at + CONNECTIONS).forEach((text) => insert.run(text)))();
  }
  report('floor_bare_inserts_per_s', (MEMORIES / (performance.now() - started)) * 1000, { group: CONNECTIONS });
  db.close();
}

async function measureAdds({ url }: Service): Promise<void> {
  const latencies: number[] = [];
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const client = new RawClient(url);
      while (next < MEMORIES) {
        const at = next++;
        const body = JSON.stringify({ content: texts[at], user_id: 'bench', session_id: `s${Math.floor(at / 20)}` });
        const begun = performance.now();
        const { status, body: reply } = await client.request('POST', '/memory/add', body);
        latencies.push(performance.now() - begun);
        if (status !== 202 && status !== 200) throw new Error(`add answered ${status}: ${reply}`);
      }
      client.close();
    }),
  );
  const acceptedMs = performance.now() - started;
  report('accepted_adds_per_s', (MEMORIES / acceptedMs) * 1000, { connections: CONNECTIONS });
  report('accepted_add_p95_ms', percentile(latencies, 0.95), {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  });
  const client = new RawClient(url);
  for (;;) {
    const { counts } = JSON.parse((await client.request('GET', '/jobs?l=1')).body) as {
      counts: Record<string, number>;
    };
    if ((counts.queued ?? 0) + (counts.active ?? 0) + (counts.failed ?? 0) === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  client.close();
  report('finished_adds_per_s', (MEMORIES / (performance.now() - started)) * 1000);
}

async function measureQueries({ url }: Service): Promise<void> {
  const client = new RawClient(url);
  const latencies: number[] = [];
  const questions = createTextSource(2);
  for (let count = 0; count < QUERIES; count++) {
    const words = questions
      .sentence()
      .split(' ')
      .slice(0, 4 + (count % 9));
    const body = JSON.stringify({ query: words.join(' '), user_id: 'bench', k: 10 });
    const begun = performance.now();
    const { status, body: reply } = await client.request('POST', '/memory/query', body);
    latencies.push(performance.now() - begun);
    if (status !== 200) throw new Error(`query answered ${status}: ${reply}`);
  }
  client.close();
  report('query_http_p95_ms', percentile(latencies, 0.95), {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  });
}

/** The engine without HTTP, in turn with the floor: the same words as one FTS5 query, and the ten nearest of the vector index. */
async function measureQueriesInProcess(): Promise<void> {
  const engine = await openEngine({ config: readConfig(settings), writer: 'inline' });
  const tenant = engine.tenant('default');
  const { store, index, close } = openTenant(settings.OM_DB_PATH, {
    role: 'reader',
    identity: engine.embedder,
    now: Date.now(),
  });
  const rawWords = store.prepare('SELECT rowid FROM memory_text WHERE memory_text MATCH ? ORDER BY rank LIMIT 10');
  const figures = { query: [] as number[], floor: [] as number[] };
  const questions = createTextSource(2);
  for (let count = 0; count < QUERIES; count++) {
    const query = questions
      .sentence()
      .split(' ')
      .slice(0, 4 + (count % 9))
      .join(' ');
    const { words } = queryTerms(query);
    const [embedding] = (await engine.embedder?.embed([query], { purpose: 'query' })) ?? [];
    let begun = performance.now();
    await tenant.query({ query, k: 10, filter: { userIds: ['bench'] }, reinforce: false });
    figures.query.push(performance.now() - begun);
    begun = performance.now();
    if (words.length > 0) rawWords.all(words.map(ftsString).join(' OR '));
    if (embedding) index?.search({ embedding, purpose: 'rank', k: 10 });
    figures.floor.push(performance.now() - begun);
  }
  for (const [name, values] of Object.entries(figures)) {
    const figure = name === 'query' ? 'query_in_process_p95_ms' : 'floor_raw_fts5_and_knn_p95_ms';
    report(figure, percentile(values, 0.95), { p50: percentile(values, 0.5), p99: percentile(values, 0.99) });
  }
  close();
  await engine.close();
}

interface Service {
  readonly url: string;
  readonly child: ChildProcess;
  readonly startMs: number;
  stop(): Promise<void>;
}

async function startService(): Promise<Service> {
  const started = performance.now();
  const child = spawn(process.execPath, [path.join(import.meta.dirname, '../bin/cairn.cjs'), 'serve'], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let log = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      log += data.toString();
      const match = /"url":"([^"]+)"/.exec(log);
      if (match) resolve(match[1] as string);
    });
    void exited.then(() => reject(new Error(`the service ended at its start:\n${log}`)));
  });
  const startMs = performance.now() - started;
  return {
    url,
    child,
    startMs,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

function residentMb(child: ChildProcess): number {
  const status = fs.readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}
