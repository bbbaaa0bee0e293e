import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { beginningOf, readConfig } from '../../engine/index.ts';
import { startService } from '../../main.ts';
import { CliError } from '../cli-error.ts';
import { connect, type Client } from '../client.ts';
import { listDocuments, splitMarkdown, type Passage } from '../documents.ts';
import { startProgress } from '../progress.ts';
import { sendMemories } from '../send-memories.ts';
import { describeHits, type MatchItem, type MemoryItem } from '../show-hits.ts';
import { makeThrowawayFolder } from '../throwaway-folder.ts';
import { bold, counted, cut, cyan, dim, oneLine, print, widthOfTerminal, wrap } from '../terminal.ts';

/** Folder that contains package.json, in a checkout and in a published package. */
const ROOT = path.resolve(import.meta.dirname, '../../..');
const QUESTIONS = [
  'How does decay work, and what makes a memory fade?',
  'Does killing the process lose a memory?',
  'How are duplicates recognised?',
];
const HITS = 2;
const READY_POLL_MS = 25;
const READY_WITHIN_MS = 60_000;
const NOTE_WITHIN_MS = 20_000;

/**
 * Runs `cairn demo`: stores the Markdown files of a folder in a temporary store, sends queries about them, and prints
 * the answers with their reasons. It runs the real server, on a free port.
 * @throws CliError if the folder has no Markdown with text, or the passages are not ready after a minute
 */
export async function demo(
  folder = ROOT,
  { ask = QUESTIONS }: { readonly ask?: readonly string[] } = {},
): Promise<void> {
  const passages = listDocuments(folder).flatMap((file) =>
    splitMarkdown(file, fs.readFileSync(path.join(folder, file), 'utf8')),
  );
  if (passages.length === 0) throw new CliError(`no Markdown files with text in ${folder}: name another folder`);
  const store = makeThrowawayFolder('demo');
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
  print('', dim('The store was removed. To keep memories: npm start, cairn add, cairn query.'));
}

async function remember(client: Client, passages: readonly Passage[]): Promise<void> {
  const files = [...new Set(passages.map(({ file }) => file))];
  print(...wrap(`Remembering ${counted(passages.length, 'passage')} of ${files.join(', ')}`, widthOfTerminal(), 2));
  const startedAt = performance.now();
  const progress = startProgress('Encoding', passages.length);
  try {
    await sendMemories(client, linesOf(passages), (_, line, refusal) => {
      if (refusal !== undefined) throw new CliError(`passage ${line} was refused: ${refusal}`);
    });
    const stored = seconds(startedAt);
    for (;;) {
      const { queued, active, failed } = (await client.listJobs({ l: 1 })).counts;
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

/**
 * Yields passages as lines of NDJSON. Their session is the file, so that earlier passages of a file count as context.
 */
async function* linesOf(passages: readonly Passage[]): AsyncGenerator<string> {
  for (const { file, headings, content } of passages) {
    const title = beginningOf([file, ...headings].join(' › '), 200);
    yield `${JSON.stringify({ content, session_id: file, title })}\n`;
  }
}

async function answer(client: Client, question: string): Promise<readonly MatchItem[]> {
  const { matches } = await client.queryMemories({ query: question, k: HITS, explain: true });
  print(
    '',
    cyan(`▸ ${question}`),
    '',
    ...(matches.length === 0 ? ['No memory matches.'] : describeHits(matches, question)),
  );
  return matches;
}

/**
 * Adds a note with the beginning of the best hit, as an agent might, and prints the memory to which the note was
 * linked.
 */
async function showWaypoint(client: Client, matches: readonly MatchItem[]): Promise<void> {
  const best = matches.toSorted((a, b) => b.score - a.score)[0];
  if (best === undefined) return;
  print('', cyan('▸ A note is added. Its waypoint is the link to the most similar memory'), '');
  const body = { content: noteOf(best.content), title: 'A note', session_id: 'notes' };
  const { id } = await client.addMemory({ ...body, wait: NOTE_WITHIN_MS });
  const { items } = await client.listLinks({ id });
  const link = items.find(({ type, direction }) => type === 'waypoint' && direction === 'out');
  if (link === undefined) return print('No memory is similar enough for a waypoint.');
  const similarity = `similarity ${(link.similarity ?? 0).toFixed(2)}`;
  const facts = `${similarity}, weight ${link.weight.toFixed(2)}; each recall over it adds 0.05`;
  print(...textOf(body), `    ${bold('↓')} ${dim(facts)}`, ...textOf(await client.getMemory({ id: link.id })));
}

/** Makes a note of the first two thirds of a text, without Markdown. */
function noteOf(content: string): string {
  const plain = oneLine(content.replaceAll(/[*`|#]|^ *- /gm, ''));
  const end = plain.indexOf(' ', Math.floor((plain.length * 2) / 3));
  return `Remember: ${end === -1 ? plain : plain.slice(0, end)}`;
}

function textOf({ title, content }: Pick<MemoryItem, 'title' | 'content'>): string[] {
  const width = widthOfTerminal() - 4;
  return [bold(cut(title, width)), ...wrap(content, width, 3)].map((line) => `    ${line}`);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
