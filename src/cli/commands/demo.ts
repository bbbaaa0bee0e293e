import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { linkItem } from '../../api/wire.ts';
import { readConfig } from '../../engine/config.ts';
import { startService } from '../../main.ts';
import { CliError } from '../cli-error.ts';
import { connect, type Client } from '../client.ts';
import { listDocuments, splitMarkdown, type Passage } from '../documents.ts';
import { startProgress } from '../progress.ts';
import { sendMemories } from '../send-memories.ts';
import { describeHits, type MatchItem, type MemoryItem, type QueryReply } from '../show-hits.ts';
import { bold, counted, cut, cyan, dim, print, widthOfTerminal, wrap } from '../terminal.ts';
import type { JobsReply } from './jobs.ts';

/** Where package.json is, in a checkout and in a published package. */
const ROOT = path.resolve(import.meta.dirname, '../../..');
const QUESTIONS = [
  'How does decay work, and what makes a memory fade?',
  'What happens when the process is killed?',
  'How are duplicates recognised?',
];
const HITS = 2;
const READY_POLL_MS = 25;
const READY_WITHIN_MS = 60_000;

/**
 * `cairn demo`: remembers documents in a store of its own, which is gone afterwards, asks questions about them and shows the reasons
 * for the answers. The server is the real one, on a free port.
 */
export async function demo(
  folder = ROOT,
  { ask = QUESTIONS }: { readonly ask?: readonly string[] } = {},
): Promise<void> {
  const passages = listDocuments(folder).flatMap((file) =>
    splitMarkdown(file, fs.readFileSync(path.join(folder, file), 'utf8')),
  );
  if (passages.length === 0) throw new CliError(`no Markdown files with text in ${folder}: name another folder`);
  const store = makeThrowawayFolder();
  const config = readConfig({ OM_DB_PATH: path.join(store, 'cairn.sqlite'), OM_PORT: '0', OM_LOG_LEVEL: 'silent' });
  const service = await startService(config);
  try {
    const client = connect({ url: service.url }, {});
    print(bold('Cairn demo') + dim(` · a server at ${service.url}, a store in a temporary folder`), '');
    await remember(client, passages);
    const matches: MatchItem[] = [];
    for (const question of ask) matches.push(...(await answer(client, question)));
    await showWaypoint(client, matches);
  } finally {
    await service.stop();
  }
  print('', dim('The store is gone again. To keep one: `npm start`, then `cairn add` and `cairn query`.'));
}

/** Removed however the process ends, short of a kill. */
function makeThrowawayFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-demo-'));
  process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => process.exit(128 + os.constants.signals[signal]));
  }
  return folder;
}

async function remember(client: Client, passages: readonly Passage[]): Promise<void> {
  const files = [...new Set(passages.map(({ file }) => file))];
  print(...wrap(`Remembering ${counted(passages.length, 'passage')} of ${files.join(', ')}`, widthOfTerminal(), 2));
  const startedAt = performance.now();
  const progress = startProgress('Encoding', passages.length);
  try {
    await sendMemories(client, linesOf(passages), (_, refusal) => {
      if (refusal !== undefined) throw new CliError(`passage ${refusal.line} was refused: ${refusal.reason}`);
    });
    const stored = seconds(startedAt);
    for (;;) {
      const { queued, active, failed } = (await client.get<JobsReply>('/jobs?l=1')).counts;
      const waiting = queued + active + failed;
      progress.update(passages.length - waiting, `stored after ${stored}, ready after ${seconds(startedAt)}`);
      if (waiting === 0) break;
      if (performance.now() - startedAt > READY_WITHIN_MS)
        throw new CliError(`${waiting} passages were not ready after a minute`);
      await pause(READY_POLL_MS);
    }
  } finally {
    progress.stop();
  }
}

/** The file is the session, so that the passages before one count as its context. */
async function* linesOf(passages: readonly Passage[]): AsyncGenerator<string> {
  for (const { file, headings, content } of passages) {
    yield `${JSON.stringify({ content, session_id: file, title: [file, ...headings].join(' › ').slice(0, 200) })}\n`;
  }
}

async function answer(client: Client, question: string): Promise<readonly MatchItem[]> {
  const { matches } = await client.post<QueryReply>('/memory/query', { query: question, k: HITS, explain: true });
  print(
    '',
    cyan(`▸ ${question}`),
    '',
    ...(matches.length === 0 ? ['No memory matches.'] : describeHits(matches, question)),
  );
  return matches;
}

/** The link of the best hit that has one, else of any memory: where it leads, and how alike the two are. */
async function showWaypoint(client: Client, matches: readonly MatchItem[]): Promise<void> {
  print('', cyan('▸ A waypoint: the link from a memory to the one most like it'), '');
  const { items: others } = await client.get<{ items: MemoryItem[] }>('/memory/all?l=1000');
  for (const memory of [...matches.toSorted((a, b) => b.score - a.score), ...others]) {
    const { items } = await client.get<{ items: ReturnType<typeof linkItem>[] }>(`/memory/${memory.id}/links`);
    const link = items.find(({ type }) => type === 'waypoint');
    if (link === undefined) continue;
    const other = await client.get<MemoryItem>(`/memory/${link.id}`);
    const [from, to] = link.direction === 'out' ? [memory, other] : [other, memory];
    const facts = `similarity ${(link.similarity ?? 0).toFixed(2)}, weight ${link.weight.toFixed(2)}; each recall over it adds 0.05`;
    print(...textOf(from), `    ${bold('↓')} ${dim(facts)}`, ...textOf(to));
    return;
  }
  print('No two of these passages are alike enough for one.');
}

function textOf({ title, content }: Pick<MemoryItem, 'title' | 'content'>): string[] {
  const width = widthOfTerminal() - 4;
  return [bold(cut(title, width)), ...wrap(content, width, 3)].map((line) => `    ${line}`);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
