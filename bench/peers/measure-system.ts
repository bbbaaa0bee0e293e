/**
 * Measures one system in a process of its own, which main.ts starts: `node measure-system.ts NAME SIZE CORPUS FOLDER`.
 * Each figure is a message to the process that started it.
 */
import fs from 'node:fs';
import path from 'node:path';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { createHashedEmbedder, type HashedEmbedder } from '../../src/engine/adapters/hashed-embedder.ts';
import { percentile } from '../report.ts';
import { addEvenly } from './add-evenly.ts';
import { openCorpus, SPARE_TEXTS } from './corpus.ts';
import type { Ask, OpenSystem, System } from './system.ts';

const DIMENSIONS = 768;
/** Number of texts that a system is given at once while it is loaded. */
const PORTION = 5_000;
const WARM_UP = 100;
const QUESTIONS = 500;
/** Longest time for warming up, and for the questions of one client, ms. */
const LONGEST_ASKING_MS = 60_000;
const CLIENTS = 8;
const CLIENTS_MS = 10_000;
const ADDS_PER_S = 200;
const BESIDE_ADDS_MS = 15_000;
/** Time after which a system has returned the memory that loading and asking took, ms. */
const SETTLED_MS = 5_000;
const PROBE_MS = 1_000;

type More = Readonly<Record<string, number | string>>;

export interface Message {
  readonly figure: string;
  readonly value: number;
  readonly more: More;
}

function tell(figure: string, value: number, more: More = {}): void {
  process.send!({ figure, value, more } satisfies Message);
}

function tellLatencies(figure: string, latencies: readonly number[], more: More = {}): void {
  tell(figure, percentile(latencies, 0.95), { p50: percentile(latencies, 0.5), count: latencies.length, ...more });
}

async function main(name: string, size: number, corpusFolder: string, folder: string): Promise<void> {
  const embedder = createHashedEmbedder({ dimensions: DIMENSIONS });
  probe(embedder);
  const corpus = openCorpus(corpusFolder);
  const { open } = (await import(`./systems/${name}.ts`)) as { open: OpenSystem };
  const bareMb = residentMb([process.pid]);
  const system = await open(folder, embedder);
  await load(system, corpus, size);
  await check(system, corpus);
  await askOne(system, corpus);
  await pause(SETTLED_MS);
  const isServer = system.processIds !== undefined;
  tell('resident_mb', residentMb(system.processIds?.() ?? [process.pid]), isServer ? {} : { before: bareMb });
  const clients = (await system.openClients?.(CLIENTS)) ?? Array.from({ length: CLIENTS }, () => system.ask);
  await askTogether(clients, corpus);
  const added = await askBesideAdds(system, clients[0]!, corpus);
  await system.close();
  const bytes = folderBytes(folder);
  if (bytes > 0) tell('bytes_per_memory', bytes / (size + added));
  process.disconnect();
  // Threads of a native library may still wait for work.
  process.exit();
}

type Corpus = ReturnType<typeof openCorpus>;

/** Tells how fast the machine is just now, by the embedder's work on one core. */
function probe(embedder: HashedEmbedder): void {
  const sample = 'A sentence of some length that is embedded again and again, with a number at its end:';
  let count = 0;
  const begun = performance.now();
  while (performance.now() - begun < PROBE_MS) embedder.embedOne(`${sample} ${count++}`, 'document');
  tell('probe_embedded_per_s', (1000 * count) / (performance.now() - begun));
}

async function load(system: System, corpus: Corpus, size: number): Promise<void> {
  let ms = 0;
  for (let first = 0; first < size; first += PORTION) {
    const texts = await corpus.take(Math.min(PORTION, size - first));
    const begun = performance.now();
    await system.load(texts);
    ms += performance.now() - begun;
    tell('progress', first + texts.length);
  }
  const begun = performance.now();
  await system.finishLoading();
  ms += performance.now() - begun;
  tell('loaded_per_s', (1000 * size) / ms);
}

/** Checks that the system finds what it holds. It is no measure of quality. */
async function check({ ask }: System, { known }: Corpus): Promise<void> {
  let found = 0;
  for (const { question, text } of known) if ((await ask(question)).includes(text)) found++;
  tell('found', found / known.length, { asked: known.length });
}

/**
 * Returns the time until the answer to a question, ms. It includes the time for which the event loop is busy with other
 * work, such as adds.
 */
async function latencyOf(ask: Ask, question: string): Promise<number> {
  const begun = performance.now();
  await nextTurn();
  await ask(question);
  return performance.now() - begun;
}

async function askOne({ ask }: System, { nextQuestion }: Corpus): Promise<void> {
  const until = performance.now() + LONGEST_ASKING_MS;
  for (let count = 0; count < WARM_UP && performance.now() < until / 2; count++) await ask(nextQuestion());
  const latencies: number[] = [];
  while (latencies.length < QUESTIONS && performance.now() < until)
    latencies.push(await latencyOf(ask, nextQuestion()));
  tellLatencies('ask_p95_ms', latencies);
}

async function askTogether(clients: readonly Ask[], { nextQuestion }: Corpus): Promise<void> {
  const latencies: number[] = [];
  const begun = performance.now();
  await Promise.all(
    clients.map(async (ask) => {
      while (performance.now() - begun < CLIENTS_MS) latencies.push(await latencyOf(ask, nextQuestion()));
    }),
  );
  const perSecond = (1000 * latencies.length) / (performance.now() - begun);
  tell('asked_per_s_by_8', perSecond, { p50: percentile(latencies, 0.5), p95: percentile(latencies, 0.95) });
}

/** Asks questions while texts are added. Returns the number of texts that were added. */
async function askBesideAdds(system: System, ask: Ask, { take, nextQuestion }: Corpus): Promise<number> {
  const texts = await take(SPARE_TEXTS);
  const latencies: number[] = [];
  const begun = performance.now();
  const isOver = () => performance.now() - begun > BESIDE_ADDS_MS;
  const [added] = await Promise.all([
    addEvenly(system, texts, { perSecond: ADDS_PER_S, isOver }),
    (async () => {
      while (!isOver()) latencies.push(await latencyOf(ask, nextQuestion()));
    })(),
  ]);
  tellLatencies('ask_p95_ms_beside_adds', latencies);
  tellLatencies('add_p95_ms_beside_asks', added.latencies, { per_s: added.finishedPerSecond });
  return added.latencies.length;
}

function residentMb(processIds: readonly number[]): number {
  // Only this process can be asked to collect its garbage; a server has to do so by itself.
  globalThis.gc?.();
  const ofOne = (id: number) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${id}/status`, 'utf8'))?.[1]);
  return processIds.reduce((sum, id) => sum + ofOne(id), 0) / 1024;
}

function folderBytes(folder: string): number {
  const files = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + fs.statSync(path.join(parentPath, name)).size, 0);
}

const [name, size, corpusFolder, folder] = process.argv.slice(2) as [string, string, string, string];
await main(name, Number(size), corpusFolder, folder);
