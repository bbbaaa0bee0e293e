/**
 * Cost of what is asked for now and then: `npm run measure -- occasional [MEMORIES]`. A difference, a recall that is
 * looked up and asked again, weights that are learned, an evaluation set, the receipt of a document, a delete with its
 * receipt and the proof of it, each among MEMORIES memories with vectors. Prints one JSON line per figure.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { runNextDocument } from '../src/engine/batches/run-document.ts';
import { readConfig } from '../src/engine/config.ts';
import type { Tenant } from '../src/engine/engine.ts';
import { openErasureSearch } from '../src/engine/for-admin.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { newDocument, upload } from '../test/support/new-document.ts';
import { fillFile } from './filled-file.ts';
import { createQuestions, createTexts } from './load.ts';
import { percentile, report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 10_000);
/** Number of runs of each part; the figure of the part is their median. */
const RUNS = 9;
const JUDGED = 100;
const EVALUATED = 50;
const DOCUMENT_TEXTS = 2_000;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const file = path.join(folder, 'cairn.sqlite');
let documentId = '';
await fillFile(file, MEMORIES, async (tenant, worker) => {
  const text = createTexts(DOCUMENT_TEXTS, 7).join('\n\n');
  documentId = (await tenant.addDocument(newDocument(await upload(tenant, text)))).document.id;
  await runNextDocument(worker, { alone: false, onClaimed: () => {} });
  while ((await runBatch(worker, 256)).claimed > 0);
});
const engine = await openEngine({ config: readConfig({ OM_DB_PATH: file }) });
try {
  await measureAll(await engine.tenant('default'));
} finally {
  await engine.close();
  fs.rmSync(folder, { recursive: true, force: true });
}

async function measureAll(tenant: Tenant): Promise<void> {
  const nextQuestion = createQuestions();
  const ask = () => tenant.query({ query: nextQuestion(), k: 10, filter: {}, minScore: 0, reinforce: false });
  const to = Date.now();
  const window = { from: 0, to, filter: {}, fadedBelow: 0.1, limit: 50 } as const;
  await figure('diff_recorded_ms', () => tenant.diff({ ...window, axis: 'recorded' }));
  await figure('diff_valid_ms', () => tenant.diff({ ...window, axis: 'valid' }));
  await figure('diff_of_a_minute_ms', () => tenant.diff({ ...window, from: to - 60_000, axis: 'recorded' }));

  const { recallId } = await ask();
  await figure('query_ms', ask);
  await figure('recall_ms', () => tenant.getRecall(recallId));
  await figure('replay_then_ms', () => tenant.replayRecall(recallId, { state: 'then', changes: {} }));
  await figure('replay_now_ms', () => tenant.replayRecall(recallId, { state: 'now', changes: {} }));

  for (let judged = 0; judged < JUDGED; judged++) {
    const answer = await ask();
    const [first, ...others] = answer.hits.map(({ memory }) => memory.id);
    if (first === undefined || others.length === 0) continue;
    await tenant.giveFeedback(answer.recallId, 'useless', [first]);
    await tenant.giveFeedback(answer.recallId, 'used', others);
  }
  await figure('learn_ms', () => tenant.learnWeights(), { judged: JUDGED });

  const items = Array.from({ length: EVALUATED }, () => ({ query: nextQuestion(), expected: ['nothing of the kind'] }));
  await tenant.putEval({ name: 'bench', guard: true, items });
  await figure('eval_run_ms', () => tenant.runEval('bench'), { items: EVALUATED });
  await figure('guarded_change_ms', () => tenant.putRetrievalDefaults({ minScore: 0 }), { items: EVALUATED });

  const { characters } = await tenant.documentReceipt(documentId, { limit: 1, offset: 0 });
  await figure('document_receipt_ms', () => tenant.documentReceipt(documentId, { limit: 100, offset: 0 }), {
    characters,
  });

  // Parts of the document are not among them; they go with the document alone.
  const doomed = (await tenant.diff({ ...window, axis: 'recorded' })).added.map(({ memory }) => memory.id);
  let receipt = '';
  await figure('delete_ms', async () => void (receipt = (await tenant.deleteMemory(doomed.pop()!)).erasure ?? ''));
  await figure(
    'verify_erasure_ms',
    async () => {
      const places: unknown[] = [];
      const search = openErasureSearch(file, { receipts: [receipt], words: [] });
      for await (const place of search.searchTenant()) places.push(place);
    },
    {
      bytes: fs.statSync(file).size,
    },
  );
}

/** Reports the median time of several runs, ms. */
async function figure(name: string, run: () => unknown, more: Readonly<Record<string, number>> = {}): Promise<void> {
  const took: number[] = [];
  for (let at = 0; at < RUNS; at++) {
    const started = performance.now();
    await run();
    took.push(performance.now() - started);
  }
  report(name, percentile(took, 0.5), { memories: MEMORIES, ...more });
}
