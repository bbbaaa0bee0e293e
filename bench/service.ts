/**
 * The whole service as a user runs it, with one user who owns everything: `npm run measure -- service [MEMORIES]
 * [CONNECTIONS]`. Prints one JSON line per figure, beside the baseline of the same run: bare group-committed inserts of
 * the same texts.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig } from '../src/engine/config.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openTenant } from '../src/engine/tenant-file/open-tenant.ts';
import { ftsString, queryTerms } from '../src/engine/text/index-text.ts';
import {
  askQuestions,
  cpuSeconds,
  createQuestions,
  createTexts,
  measureAdds,
  measureFloor,
  reportLatencies,
  residentMb,
  startProcess,
  type Process,
} from './load.ts';
import { report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 20_000);
const CONNECTIONS = Number(process.argv[3] ?? 32);
const QUERIES = 500;
/** Time after which a started process has returned the memory of loading, ms. */
const SETTLED_MS = 2_000;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const texts = createTexts(MEMORIES);
const settings = { OM_DB_PATH: path.join(folder, 'bench.sqlite'), OM_PORT: '0', OM_LOG_LEVEL: 'info' };

let service: Process | undefined;
try {
  measureFloor(folder, texts, CONNECTIONS);
  service = await startProcess('serve', settings);
  await pause(SETTLED_MS);
  report('rss_idle_mb', residentMb(service.child));
  await measureAdds(service.url, texts, CONNECTIONS);
  report('cpu_ms_per_memory', (1_000 * cpuSeconds(service.child)) / MEMORIES);
  reportLatencies('query_http_p95_ms', await askQuestions(service.url, (asked) => asked < QUERIES));
  report('rss_loaded_mb', residentMb(service.child));
  await service.stop();
  await measureQueriesInProcess();
  const bytes = fs.statSync(settings.OM_DB_PATH).size;
  const textBytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  report('bytes_beyond_text_per_memory', (bytes - textBytes) / MEMORIES, { text: textBytes / MEMORIES });
  service = await startProcess('serve', settings);
  report('start_to_ready_ms', service.startMs, { memories: MEMORIES });
  await pause(SETTLED_MS);
  report('rss_after_restart_mb', residentMb(service.child));
} finally {
  await service?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

/**
 * Measures the engine without HTTP, in turn with the baseline: one FTS5 query with the same words, and a search for the
 * ten nearest in the vector index.
 */
async function measureQueriesInProcess(): Promise<void> {
  const engine = await openEngine({ config: readConfig(settings), writer: 'inline' });
  const tenant = await engine.tenant('default');
  const { store, index, close } = openTenant(settings.OM_DB_PATH, {
    role: 'reader',
    identity: engine.embedder,
    now: Date.now(),
  });
  const rawWords = store.prepare('SELECT rowid FROM memory_text WHERE memory_text MATCH ? ORDER BY rank LIMIT 10');
  const figures = { query: [] as number[], floor: [] as number[] };
  const nextQuestion = createQuestions();
  for (let count = 0; count < QUERIES; count++) {
    const query = nextQuestion();
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
    reportLatencies(name === 'query' ? 'query_in_process_p95_ms' : 'floor_raw_fts5_and_knn_p95_ms', values);
  }
  close();
  await engine.close();
}
