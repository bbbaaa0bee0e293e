/**
 * Speed and cost of documents, as one JSON line per figure:
 *
 *     npm run measure -- documents [alone|stream|bulk|erase …] [PDF…]
 *
 * All four parts run by default. `alone` and `stream`: pages a second until the words of a long document, or of a
 * stream of them, can be found, beside the bare parser in the same run. `bulk`: memory of the API and latency of its
 * queries during a bulk ingest. `erase`: time that the deletion of a long document takes.
 */
import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createRandom } from '../src/engine/random.ts';
import { drawLines, makePdf } from '../test/support/make-pdf.ts';
import {
  anonymousMb,
  cpuSeconds,
  createTexts,
  measureAdds,
  reportLatencies,
  residentMb,
  startAsker,
  startProcess,
  untilIdle,
  type Process,
} from './load.ts';
import { createTextSource } from './natural-text.ts';
import { report } from './report.ts';

const PAGES = 350;
const COPIES = 3;
const STREAMED = 8;
const ROUNDS = 3;
/** Number of documents that warm up the child processes of the parser, one for each. */
const WARMING = 2;
const BULK_FILES = 1_000;
const BULK_AT_ONCE = 4;
const MEMORIES = 5_000;
const WARMING_QUERIES = 200;
const IDLE_QUERIES = 2_000;
const DOCUMENT_POLL_MS = 5;
/**
 * Interval at which the state of a stream of documents is requested (ms). It may be long, as the measured times are
 * those of the server's clock.
 */
const STREAM_POLL_MS = 1_000;
const ERASED_DOCUMENTS = 4;
const ERASED_LINES = 2_000;
const ERASED_WORD = 'quizzaciousness';

const MEASUREMENTS = { alone: measureAlone, stream: measureStream, bulk: measureBulk, erase: measureErase };
type Measurement = keyof typeof MEASUREMENTS;
type NamedFile = readonly [name: string, bytes: Uint8Array];

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
try {
  const given = process.argv.slice(2);
  const asked = given.filter((word): word is Measurement => Object.hasOwn(MEASUREMENTS, word));
  const files = given
    .filter((word) => !Object.hasOwn(MEASUREMENTS, word))
    .map((file) => [path.basename(file), new Uint8Array(fs.readFileSync(file))] as const);
  for (const [name, measure] of Object.entries(MEASUREMENTS))
    if (asked.length === 0 || asked.includes(name as Measurement)) await measure(files);
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}

function makeLongPdfs(count: number): NamedFile[] {
  return Array.from({ length: count }, (_, copy) => [`made ${copy + 1}.pdf`, makeLongPdf(copy)] as const);
}

/** Measures the bare parser, then the service from the request until the words can be found, one document at a time. */
async function measureAlone(given: readonly NamedFile[]): Promise<void> {
  const files = [...makeLongPdfs(COPIES), ...given];
  const bare = new Map<string, { pages: number; ms: number }>();
  for (const [name, bytes] of files) {
    await readBare(bytes.slice()); // Once for the compiler: the service's children are warm too.
    bare.set(name, await readBare(bytes.slice()));
  }
  const service = await startProcess('serve', settingsOf('alone'));
  try {
    for (const [name, bytes] of files) {
      const { pages, ms: bareMs } = bare.get(name)!;
      const shownMs = await ingestUntilShown(service, name, bytes);
      report('searchable_pages_per_s', (1_000 * pages) / shownMs, {
        file: name,
        pages,
        ms: shownMs,
        bare_pages_per_s: (1_000 * pages) / bareMs,
        share_of_bare: bareMs / shownMs,
      });
    }
  } finally {
    await service.stop();
  }
}

/**
 * Measures a stream of long documents that are sent at once: from the first commit until the words of the last document
 * can be found. The bare parser reads the same files one after the other, before and after, in several rounds, since
 * the speed of a machine changes. The first files warm up compilers and child processes on both sides.
 */
async function measureStream(): Promise<void> {
  const files = makeLongPdfs(WARMING + ROUNDS * STREAMED);
  const pages = STREAMED * PAGES;
  const readAllBare = async (some: readonly NamedFile[]) => {
    let ms = 0;
    for (const [, bytes] of some) ms += (await readBare(bytes.slice())).ms;
    return ms;
  };
  const warming = files.slice(0, WARMING);
  await readAllBare(warming);
  const service = await startProcess('serve', settingsOf('stream'));
  try {
    await Promise.all(warming.map(([name, bytes]) => ingestUntilShown(service, name, bytes)));
    await untilIdle(service.url);
    for (let round = 0; round < ROUNDS; round++) {
      const streamed = files.slice(WARMING + round * STREAMED, WARMING + (round + 1) * STREAMED);
      const bareBeforeMs = await readAllBare(streamed);
      const computed = cpuSeconds(service.child);
      const ids = await Promise.all(streamed.map(([name, bytes]) => handIn(service, name, bytes)));
      const shown = await Promise.all(ids.map((id) => untilShown(service, id, STREAM_POLL_MS)));
      const serviceCpuS = cpuSeconds(service.child) - computed;
      const firstAt = Math.min(...shown.map(({ created_at }) => created_at));
      const ms = Math.max(...shown.map(({ shown_at }) => shown_at!)) - firstAt;
      await untilIdle(service.url);
      const finishedMs = Date.now() - firstAt;
      const bareMs = (bareBeforeMs + (await readAllBare(streamed))) / 2;
      report('stream_searchable_pages_per_s', (1_000 * pages) / ms, {
        documents: STREAMED,
        pages,
        ms,
        bare_pages_per_s: (1_000 * pages) / bareMs,
        share_of_bare: bareMs / ms,
        service_cpu_s: serviceCpuS,
      });
      report('stream_finished_pages_per_s', (1_000 * pages) / finishedMs);
    }
  } finally {
    await service.stop();
  }
}

async function readBare(data: Uint8Array): Promise<{ pages: number; ms: number }> {
  const { getDocument } = await import('pdfjs-dist/legacy/build/pdf.mjs');
  const resources = path.dirname(import.meta.resolve('pdfjs-dist/package.json').replace('file://', ''));
  const started = performance.now();
  const task = getDocument({
    data,
    cMapUrl: `${resources}/cmaps/`,
    cMapPacked: true,
    standardFontDataUrl: `${resources}/standard_fonts/`,
    useSystemFonts: false,
    disableFontFace: true,
    verbosity: 0,
  });
  const pdf = await task.promise;
  for (let page = 1; page <= pdf.numPages; page++) await (await pdf.getPage(page)).getTextContent();
  const ms = performance.now() - started;
  const { numPages } = pdf;
  await task.destroy();
  return { pages: numPages, ms };
}

interface ShownDocument {
  readonly id: string;
  readonly state: string;
  readonly error: { readonly code: string } | null;
  readonly created_at: number;
  readonly shown_at: number | null;
}

/** Time from the commit of the upload to the commit that shows the document, by the server's clock. */
async function ingestUntilShown(service: Process, name: string, bytes: Uint8Array): Promise<number> {
  const { shown_at, created_at } = await untilShown(service, await handIn(service, name, bytes));
  return shown_at! - created_at;
}

async function handIn({ url }: Process, name: string, bytes: Uint8Array, type = 'application/pdf'): Promise<string> {
  const form = new FormData();
  form.set('user_id', 'bench');
  form.set('file', new Blob([Buffer.from(bytes)], { type }), name);
  const reply = await fetch(`${url}/memory/ingest`, { method: 'POST', body: form });
  const { document_id } = (await reply.json()) as { document_id: string };
  return document_id;
}

async function untilShown({ url }: Process, id: string, pollMs = DOCUMENT_POLL_MS): Promise<ShownDocument> {
  for (;;) {
    const document = (await (await fetch(`${url}/documents/${id}`)).json()) as ShownDocument;
    if (document.shown_at !== null) return document;
    if (document.error !== null) throw new Error(`a document ended with ${document.error.code}`);
    await pause(pollMs);
  }
}

/** Measures a bulk ingest with an API and a worker as separate processes, and some memories to query. */
async function measureBulk(): Promise<void> {
  const settings = settingsOf('bulk');
  // The files are made before the service starts, as making them takes CPU time.
  const files = makeFiles();
  const api = await startProcess('api', settings);
  const worker = await startProcess('worker', settings);
  // Another process asks: this one sends files at the same time and would read replies late.
  const asker = startAsker(api.url);
  try {
    await measureAdds(api.url, createTexts(MEMORIES), 16);
    await asker.ask(WARMING_QUERIES);
    const before = watchMemory(api.child);
    reportLatencies('query_idle_p95_ms', await asker.ask(IDLE_QUERIES));
    before.stop();
    const meanwhile = watchMemory(api.child);
    const started = performance.now();
    const asking = asker.ask();
    await sendMany(api.url, files).finally(asker.enough);
    const tookMs = performance.now() - started;
    reportLatencies('query_while_ingesting_p95_ms', await asking);
    report('bulk_files_per_s', (1_000 * BULK_FILES) / tookMs, { files: BULK_FILES });
    meanwhile.stop();
    for (const kind of ['resident', 'anonymous'] as const) {
      const [idle, most] = [before.highest[kind], meanwhile.highest[kind]];
      report(`${kind}_api_growth_mb`, most - idle, { idle, highest: most });
    }
  } finally {
    asker.stop();
    await worker.stop();
    await api.stop();
  }
}

/** Watches the highest memory use of a process: it rises and falls between two garbage collections. */
function watchMemory(child: ChildProcess) {
  const highest = { resident: 0, anonymous: 0 };
  const look = () => {
    highest.resident = Math.max(highest.resident, residentMb(child));
    highest.anonymous = Math.max(highest.anonymous, anonymousMb(child));
  };
  const timer = setInterval(look, 100);
  return { highest, stop: () => clearInterval(timer) };
}

/** Makes files of a few kilobytes, mostly Markdown. */
function makeFiles(): File[] {
  const source = createTextSource(7);
  const random = createRandom(8);
  return Array.from({ length: BULK_FILES }, (_, at) => {
    const paragraphs = Array.from({ length: 10 + Math.floor(30 * random()) }, () => source.text(300));
    const text = `# File ${at}\n\n${paragraphs.join('\n\n')}`;
    if (at % 20 > 0) return new File([text], `file-${at}.md`);
    const lines = drawLines(text.split('\n').slice(0, 50), { x: 50, y: 780, size: 10 });
    return new File([Buffer.from(makePdf({ pages: [{ texts: lines }] }))], `file-${at}.pdf`);
  });
}

/** Sends files as `cairn ingest` does, and waits until the last one can be found. */
async function sendMany(url: string, files: readonly File[]): Promise<void> {
  let next = 0;
  const sendSome = async () => {
    while (next < files.length) {
      const form = new FormData();
      form.set('file', files[next++]!);
      const reply = await fetch(`${url}/memory/ingest`, { method: 'POST', body: form });
      if (reply.status !== 202) throw new Error(`ingest answered ${reply.status}: ${await reply.text()}`);
      await reply.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: BULK_AT_ONCE }, sendSome));
  for (;;) {
    const reply = await fetch(`${url}/documents?state=queued&l=1`);
    if (((await reply.json()) as { total: number }).total === 0) return;
    await pause(200);
  }
}

/**
 * Measures the deletion of the longest possible documents, deleted together: the time until the answer, and until none
 * of their words is in a file. Their rarest word is searched as bytes; the index stores words in full.
 */
async function measureErase(): Promise<void> {
  const settings = settingsOf('erase');
  const smallChunks = { OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '0' };
  const service = await startProcess('serve', { ...settings, ...smallChunks });
  try {
    const source = createTextSource(11);
    for (let at = 0; at < ERASED_DOCUMENTS; at++) {
      const lines = Array.from({ length: ERASED_LINES }, () => source.text(190));
      const text = `${lines.join('\n\n')}\n\n${ERASED_WORD}`;
      await untilShown(service, await handIn(service, `long ${at}.txt`, Buffer.from(text), 'text/plain'));
    }
    await untilIdle(service.url);
    const files = ['', '-wal'].map((suffix) => `${settings.OM_DB_PATH}${suffix}`);
    const isGone = () => files.every((file) => !fs.existsSync(file) || !fs.readFileSync(file).includes(ERASED_WORD));
    if (isGone()) throw new Error('the word was never there');
    const computed = cpuSeconds(service.child);
    const begun = performance.now();
    const reply = await fetch(`${service.url}/users/bench/memories`, { method: 'DELETE' });
    const { deleted } = (await reply.json()) as { deleted: number };
    const answeredMs = performance.now() - begun;
    if (!reply.ok || !(deleted > 0)) throw new Error(`the delete answered ${reply.status}`);
    while (!isGone()) await pause(50);
    report('erase_words_gone_ms', performance.now() - begun, {
      deleted,
      answered_ms: answeredMs,
      service_cpu_ms: 1_000 * (cpuSeconds(service.child) - computed),
    });
  } finally {
    await service.stop();
  }
}

/** Makes a PDF with pages of natural sentences, about fifty lines each. */
function makeLongPdf(seed: number): Uint8Array {
  const source = createTextSource(seed + 1);
  const pages = Array.from({ length: PAGES }, (_, page) => {
    const lines = Array.from({ length: 48 }, () => source.text(85).replace(/\s+/g, ' '));
    return { texts: drawLines([`Section ${page + 1}`, ...lines], { x: 50, y: 780, size: 10 }) };
  });
  return makePdf({ pages });
}

function settingsOf(name: string) {
  return {
    OM_DB_PATH: path.join(folder, name, 'cairn.sqlite'),
    OM_PORT: '0',
    OM_LOG_LEVEL: 'info',
    OM_API_KEY: '',
    REDIS_URL: process.env.REDIS_URL ?? '',
    OM_EMBEDDINGS: 'synthetic',
    // On a busy machine a reading must not be ended by its time limit.
    OM_PARSE_TIMEOUT_MS: '600000',
  };
}
