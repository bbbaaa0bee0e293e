import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createRandom } from '../src/engine/random.ts';
import { drawLines, makePdf } from '../test/support/make-pdf.ts';
import {
  anonymousMb,
  askQuestions,
  createTexts,
  measureAdds,
  reportLatencies,
  residentMb,
  startProcess,
  type Process,
} from './load.ts';
import { createTextSource } from './natural-text.ts';
import { report } from './report.ts';

/**
 * Documents: `node bench/documents.ts [PDF…]`. Pages a second until the words are searchable beside the bare parser in the same run, and
 * what a bulk ingest costs the API: memory and the latency of queries. Prints one JSON line a figure.
 */
const PAGES = 350;
const COPIES = 3;
const BULK_FILES = 1_000;
const BULK_AT_ONCE = 4;
const MEMORIES = 5_000;
const QUERIES = 200;
const DOCUMENT_POLL_MS = 5;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
try {
  const given = process.argv
    .slice(2)
    .map((file) => [path.basename(file), new Uint8Array(fs.readFileSync(file))] as const);
  const made = Array.from({ length: COPIES }, (_, copy) => [`made ${copy + 1}`, makeLongPdf(copy)] as const);
  await measureParsing([...made, ...given]);
  await measureBulk();
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}

/** The bare parser, then the service from the request until the words can be found. */
async function measureParsing(files: readonly (readonly [name: string, bytes: Uint8Array])[]): Promise<void> {
  const bare = new Map<string, { pages: number; ms: number }>();
  for (const [name, bytes] of files) {
    await readBare(bytes.slice()); // Once for the compiler: the service's children are warm too.
    bare.set(name, await readBare(bytes.slice()));
  }
  const service = await startProcess('serve', settingsOf('parsing'));
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

/** By the server's own clock, from the commit of the upload to the commit that shows it. */
async function ingestUntilShown({ url }: Process, name: string, bytes: Uint8Array): Promise<number> {
  const form = new FormData();
  form.set('file', new Blob([Buffer.from(bytes)], { type: 'application/pdf' }), `${name}.pdf`);
  const reply = await fetch(`${url}/memory/ingest`, { method: 'POST', body: form });
  const { document_id } = (await reply.json()) as { document_id: string };
  for (;;) {
    const document = (await (await fetch(`${url}/documents/${document_id}`)).json()) as ShownDocument;
    if (document.shown_at !== null) return document.shown_at - document.created_at;
    if (document.error !== null) throw new Error(`${name}: ${document.error.code}`);
    await pause(DOCUMENT_POLL_MS);
  }
}

/** An API and a worker as processes of their own, with some memories to ask for. */
async function measureBulk(): Promise<void> {
  const settings = settingsOf('bulk');
  const api = await startProcess('api', settings);
  const worker = await startProcess('worker', settings);
  try {
    await measureAdds(api.url, createTexts(MEMORIES), 16);
    await askQuestions(api.url, (asked) => asked < QUERIES);
    const idle = await askQuestions(api.url, (asked) => asked < QUERIES);
    reportLatencies('query_idle_p95_ms', idle);
    const before = { resident: residentMb(api.child), anonymous: anonymousMb(api.child) };
    const highest = { ...before };
    const watch = setInterval(() => {
      highest.resident = Math.max(highest.resident, residentMb(api.child));
      highest.anonymous = Math.max(highest.anonymous, anonymousMb(api.child));
    }, 100);
    let isDone = false;
    const started = performance.now();
    const sending = sendMany(api.url).finally(() => (isDone = true));
    const busy = await askQuestions(api.url, () => !isDone);
    await sending;
    reportLatencies('query_while_ingesting_p95_ms', busy);
    report('bulk_files_per_s', (1_000 * BULK_FILES) / (performance.now() - started), { files: BULK_FILES });
    clearInterval(watch);
    for (const kind of ['resident', 'anonymous'] as const) {
      report(`${kind}_api_growth_mb`, highest[kind] - before[kind], { before: before[kind], highest: highest[kind] });
    }
  } finally {
    await worker.stop();
    await api.stop();
  }
}

/** Files of some kilobytes, mostly Markdown, sent as `cairn ingest` does, until the last can be found. */
async function sendMany(url: string): Promise<void> {
  const source = createTextSource(7);
  const random = createRandom(8);
  let next = 0;
  const sendSome = async () => {
    while (next < BULK_FILES) {
      const at = next++;
      const text = `# File ${at}\n\n${Array.from({ length: 10 + Math.floor(30 * random()) }, () => source.text(300)).join('\n\n')}`;
      const isPdf = at % 20 === 0;
      const form = new FormData();
      const blob = isPdf
        ? new Blob([
            Buffer.from(
              makePdf({ pages: [{ texts: drawLines(text.split('\n').slice(0, 50), { x: 50, y: 780, size: 10 }) }] }),
            ),
          ])
        : new Blob([text]);
      form.set('file', blob, `file-${at}.${isPdf ? 'pdf' : 'md'}`);
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

/** Pages of natural sentences, some fifty lines each. */
function makeLongPdf(seed: number): Uint8Array {
  const source = createTextSource(seed + 1);
  const pages = Array.from({ length: PAGES }, (_, page) => {
    const lines = Array.from({ length: 48 }, () => source.text(85).replace(/\s+/g, ' '));
    return { texts: drawLines([`Section ${page + 1}`, ...lines], { x: 50, y: 780, size: 10 }) };
  });
  return makePdf({ pages });
}

function settingsOf(name: string): Record<string, string> {
  return {
    OM_DB_PATH: path.join(folder, name, 'cairn.sqlite'),
    OM_PORT: '0',
    OM_LOG_LEVEL: 'info',
    OM_API_KEY: '',
    REDIS_URL: '',
    OM_EMBEDDINGS: 'synthetic',
  };
}
